#!/usr/bin/env python3
"""A Hugging Face folder in every command, on a tiny model written here; and folders that are none, or a tokenizer alone."""

import array
import json
import os
import random
import struct
import tempfile

from program import FAILED, Case, main

HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, HEAD_DIM, VOCAB = 48, 80, 2, 3, 1, 16, 261
SPECIAL = ["<|start|>", "<|stop|>", "<|pad|>", "<|pause|>", "<|unused|>"]  # ids from 256 on
TEMPLATE = "{% for m in messages %}{{ bos_token }}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}"


def byte_letters():
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {**{byte: chr(byte) for byte in shown}, **{byte: chr(256 + i) for i, byte in enumerate(hidden)}}


def write_tokenizer(folder):
    letters = byte_letters()
    file = {
        "added_tokens": [{"id": 256 + i, "content": text, "special": True, "normalized": False} for i, text in enumerate(SPECIAL)],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {letters[byte]: byte for byte in range(256)}, "merges": []},
    }
    config = {"bos_token": SPECIAL[0], "eos_token": {"content": SPECIAL[1], "__type": "AddedToken"}, "pad_token": SPECIAL[2],
              "chat_template": TEMPLATE, "model_max_length": 10 ** 30}
    for name, text in (("tokenizer.json", file), ("tokenizer_config.json", config)):
        write_json(folder, name, text)


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file)


def shapes():
    yield "model.embed_tokens.weight", (VOCAB, HIDDEN)
    yield "model.norm.weight", (HIDDEN,)
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        yield from ((prefix + "input_layernorm.weight", (HIDDEN,)), (prefix + "post_attention_layernorm.weight", (HIDDEN,)))
        for name, rows, cols in (("self_attn.q_proj", HEADS * HEAD_DIM, HIDDEN), ("self_attn.k_proj", KV_HEADS * HEAD_DIM, HIDDEN),
                                 ("self_attn.v_proj", KV_HEADS * HEAD_DIM, HIDDEN), ("self_attn.o_proj", HIDDEN, HEADS * HEAD_DIM),
                                 ("mlp.gate_proj", INNER, HIDDEN), ("mlp.up_proj", INNER, HIDDEN), ("mlp.down_proj", HIDDEN, INNER)):
            yield f"{prefix}{name}.weight", (rows, cols)


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def write_model(folder, num_shards=1):
    """The same weights in any number of shards."""
    draw = random.Random(7)
    tensors = {}
    for name, shape in shapes():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors[name] = (shape, array.array("f", (draw.uniform(-0.3, 0.3) + ("norm" in name) for _ in range(count))))
    config = {"model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
              "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM, "vocab_size": VOCAB,
              "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "eos_token_id": 257}
    write_json(folder, "config.json", config)
    write_json(folder, "generation_config.json", {"eos_token_id": [257, 259], "do_sample": True, "temperature": 0.5, "top_k": 7})
    if num_shards == 1:
        return write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
    weight_map = {}
    for shard in range(num_shards):
        name = f"model-{shard + 1:05}-of-{num_shards:05}.safetensors"
        part = dict(list(tensors.items())[shard::num_shards])
        write_safetensors(os.path.join(folder, name), part)
        weight_map |= dict.fromkeys(part, name)
    return write_json(folder, "model.safetensors.index.json", {"metadata": {}, "weight_map": weight_map})


class FolderCase(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="couplet_folder")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name


class Folder(FolderCase):
    def setUp(self):
        super().setUp()
        write_tokenizer(self.folder)
        write_model(self.folder)

    def test_what_inspect_sees(self):
        seen = self.done("inspect", self.folder, "--json").json()
        self.assertEqual((seen["format"], seen["family"], seen["name"]), ("safetensors", "llama", os.path.basename(self.folder)))
        self.assertEqual((seen["num_layers"], seen["head_dim"], seen["vocab_size"]), (LAYERS, HEAD_DIM, VOCAB))
        self.assertEqual([t["type"] for t in seen["tensors"]], ["F32"])
        self.assertEqual([end["id"] for end in seen["tokenizer"]["ends"]], [257, 259])
        self.assertEqual((seen["tokenizer"]["bos"]["id"], seen["tokenizer"]["eos"]["id"]), (256, 257))
        self.assertEqual(seen["sampling"], {"temperature": 0.5, "top_k": 7})
        self.assertEqual(seen["chat_template"], TEMPLATE)
        self.assertIn("safetensors", self.done("inspect", self.folder).out)

    def test_generation_config_may_ask_for_the_best_token(self):
        write_json(self.folder, "generation_config.json", {"do_sample": False, "eos_token_id": 257})
        self.assertEqual(self.done("inspect", self.folder, "--json").json()["sampling"], {"temperature": 0})
        replies = {self.done("run", self.folder, "--raw", "ab", "--max-tokens", "8", "--seed", seed).out for seed in "12"}
        self.assertEqual(len(replies), 1)

    def test_it_runs(self):
        reply = self.done("run", self.folder, "--raw", "the sun", "--max-tokens", "5", "--ignore-eos", "--json").json()
        self.assertEqual((reply["stop"], reply["completion_tokens"]), ("max_tokens", 5))
        self.done("run", self.folder, "the sun", "--max-tokens", "2")
        self.done("explain", self.folder, "--raw", "ab", "--max-tokens", "2")
        self.done("bench", self.folder, "--prefill", "8", "--decode", "2", "--depth", "0", "--batch", "1", "--repeat", "1")

    def test_text_and_back(self):
        rows = self.done("tokenize", self.folder, "a<|stop|> é", "--special", "--json").json_lines()
        self.assertEqual([row["id"] for row in rows], [97, 257, 32, 0xC3, 0xA9])
        rendered = self.done("template", self.folder, stdin='{"messages": [{"role": "user", "content": "hi"}]}\n').json()
        self.assertEqual(rendered, {"text": "<|start|>user: hi<|stop|>"})

    def test_shards_are_the_whole(self):
        question = '{"text": "the sun is very bright"}\n'
        whole = self.done("score", self.folder, "--json", stdin=question).json()
        os.remove(os.path.join(self.folder, "model.safetensors"))
        write_model(self.folder, 3)
        parts = self.done("score", self.folder, "--json", stdin=question).json()
        self.assertEqual(parts["hash"], whole["hash"])
        os.remove(os.path.join(self.folder, "model-00002-of-00003.safetensors"))
        self.refused(FAILED, "score", self.folder, stdin=question, says="model-00002-of-00003.safetensors.*there is none")

    def test_ends_outside_the_vocabulary_are_refused(self):
        write_json(self.folder, "generation_config.json", {"eos_token_id": [257, 261]})
        self.refused(FAILED, "inspect", self.folder, says='"eos_token_id": expected ids below 261, .* 261')

    def test_a_model_without_a_tokenizer_is_refused(self):
        os.remove(os.path.join(self.folder, "tokenizer.json"))
        self.refused(FAILED, "run", self.folder, "x", says="tokenizer.json: expected it in the folder")


class TokenizerAlone(FolderCase):
    def test_text_works_and_running_says_what_lacks(self):
        write_tokenizer(self.folder)
        self.assertEqual(self.done("tokenize", self.folder, "ab", "--json").json_lines()[1]["id"], 98)
        seen = self.done("inspect", self.folder, "--json").json()
        self.assertEqual((seen["format"], seen["chat_template"]), ("tokenizer files", TEMPLATE))
        self.assertIn("there is neither", seen["lacks_weights"])
        self.assertIn("weights", self.done("inspect", self.folder).out)
        rendered = self.done("template", self.folder, stdin='{"messages": [{"role": "user", "content": "hi"}]}\n').json()
        self.assertEqual(rendered, {"text": "<|start|>user: hi<|stop|>"})
        lack = "expected model.safetensors or model.safetensors.index.json, there is neither"
        self.refused(FAILED, "run", self.folder, "x", says=lack)
        self.refused(FAILED, "score", self.folder, stdin='{"text": "a"}\n', says=lack)
        self.refused(FAILED, "bench", self.folder, says=lack)
        self.refused(FAILED, "explain", self.folder, "x", says=lack)


class NoModel(FolderCase):
    def test_it_says_what_to_do(self):
        self.refused(FAILED, "run", self.folder, "x", says="there is neither")
        with open(os.path.join(self.folder, "tiny.gguf"), "wb"):
            pass
        self.refused(FAILED, "run", self.folder, "x", says='the GGUF file "tiny.gguf": give its own path')
        path = os.path.join(self.folder, "model.safetensors")
        with open(path, "wb"):
            pass
        self.refused(FAILED, "run", path, "x", says="give the folder's path")


if __name__ == "__main__":
    main(needs=())
