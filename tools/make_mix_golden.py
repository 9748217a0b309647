#!/usr/bin/env python3
"""Writes tests/data/mixes.txt: the type that llama.cpp gives each tensor of some small models under each mix's name.

A line "model NAME ARCHITECTURE LAYERS HIDDEN INNER HEADS KV_HEADS HEAD_DIM VOCABULARY TIED EXPERTS FUSED" tells a model's
shape, a line "MODEL MIX NAME TYPE..." the types of a tensor, of layers one a layer; those of the mix's usual type are left
out. Run from the root of the repository: python3 tools/make_mix_golden.py (needs gguf, numpy, llama-cpp-python).
"""

import ctypes
import pathlib
import tempfile

import gguf
import llama_cpp
import numpy

# Fused: query, key and value are one tensor, gate and up another.
MODELS = {  # architecture, layers, hidden, inner, heads, kv heads, head_dim, vocabulary, tied, experts, fused
    "llama": ("llama", 10, 256, 256, 4, 2, 64, 64, 0, 0, 0),
    "tied": ("llama", 16, 256, 256, 4, 1, 64, 64, 1, 0, 0),
    "odd": ("llama", 9, 576, 512, 9, 3, 64, 64, 1, 0, 0),
    "odder": ("llama", 4, 96, 133, 6, 3, 40, 64, 0, 0, 0),
    "large": ("llama", 80, 256, 256, 8, 1, 32, 64, 0, 0, 0),
    "gemma3": ("gemma3", 18, 640, 512, 4, 1, 256, 64, 1, 0, 0),
    "moe": ("llama", 12, 256, 256, 8, 2, 32, 64, 0, 8, 0),
    "qwen3moe": ("qwen3moe", 8, 256, 256, 4, 1, 64, 64, 0, 16, 0),
    "qwen2": ("qwen2", 80, 256, 256, 4, 1, 64, 64, 0, 0, 0),
    "phi3": ("phi3", 8, 256, 256, 4, 4, 64, 64, 0, 0, 1),
}
MIXES = {  # llama.cpp's number of each, and the type most tensors get
    "q4_0": (2, "Q4_0"), "q4_1": (3, "Q4_1"), "q5_0": (8, "Q5_0"), "q5_1": (9, "Q5_1"), "q8_0": (7, "Q8_0"),
    "q2_k": (10, "Q2_K"), "q3_k_s": (11, "Q3_K"), "q3_k_m": (12, "Q3_K"), "q3_k_l": (13, "Q3_K"),
    "q4_k_s": (14, "Q4_K"), "q4_k_m": (15, "Q4_K"), "q5_k_s": (16, "Q5_K"), "q5_k_m": (17, "Q5_K"), "q6_k": (18, "Q6_K"),
    "f16": (1, "F16"), "bf16": (32, "BF16"),
}


def tensors(shape):
    """(name, dims), the row length first."""
    architecture, layers, hidden, inner, heads, kv, head_dim, vocabulary, tied, experts, fused = shape
    yield "token_embd.weight", (hidden, vocabulary)
    yield "output_norm.weight", (hidden,)
    if not tied:
        yield "output.weight", (hidden, vocabulary)
    for layer in range(layers):
        block = f"blk.{layer}."
        yield block + "attn_norm.weight", (hidden,)
        yield block + "ffn_norm.weight", (hidden,)
        yield block + "attn_output.weight", (heads * head_dim, hidden)
        if architecture == "gemma3":
            for name, size in (("attn_q_norm", head_dim), ("attn_k_norm", head_dim), ("post_attention_norm", hidden),
                               ("post_ffw_norm", hidden)):
                yield f"{block}{name}.weight", (size,)
        if fused:
            yield block + "attn_qkv.weight", (hidden, (heads + 2 * kv) * head_dim)
            yield block + "ffn_up.weight", (hidden, 2 * inner)
            yield block + "ffn_down.weight", (inner, hidden)
            continue
        yield block + "attn_q.weight", (hidden, heads * head_dim)
        yield block + "attn_k.weight", (hidden, kv * head_dim)
        yield block + "attn_v.weight", (hidden, kv * head_dim)
        if experts:
            yield block + "ffn_gate_inp.weight", (hidden, experts)
        end, more = ("_exps.weight", (experts,)) if experts else (".weight", ())
        yield block + "ffn_gate" + end, (hidden, inner, *more)
        yield block + "ffn_up" + end, (hidden, inner, *more)
        yield block + "ffn_down" + end, (inner, hidden, *more)


def write_model(path, shape):
    architecture, layers, hidden, inner, heads, kv, head_dim, vocabulary, _, experts, _ = shape
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(layers)
    writer.add_context_length(128)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(head_dim)
    writer.add_vocab_size(vocabulary)
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(2)
    if architecture == "gemma3":
        writer.add_sliding_window(64)
    writer.add_string("tokenizer.ggml.model", "none")
    for name, dims in tensors(shape):
        writer.add_tensor(name, numpy.zeros(dims[::-1], dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def lines_of(model, mix, path, usual):
    types = {}
    for tensor in gguf.GGUFReader(path).tensors:
        kind = tensor.name.split(".", 2)[2] if tensor.name.startswith("blk.") else tensor.name
        layer = int(tensor.name.split(".")[1]) if tensor.name.startswith("blk.") else 0
        types.setdefault(kind, {})[layer] = tensor.tensor_type.name
    for kind, by_layer in types.items():
        row = [by_layer[layer] for layer in sorted(by_layer)]
        is_plain = kind.endswith("_norm.weight") or "ffn_gate_inp" in kind
        if set(row) != {"F32" if is_plain else usual}:
            yield f"{model} {mix} {kind} {' '.join(row)}\n"


def main():
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        source, made = f"{folder}/source.gguf", f"{folder}/made.gguf"
        for model, shape in MODELS.items():
            write_model(source, shape)
            lines.append(f"model {model} {' '.join(map(str, shape))}\n")
            for mix, (number, usual) in MIXES.items():
                options = llama_cpp.llama_model_quantize_default_params()
                options.ftype, options.nthread = number, 1
                failed = llama_cpp.llama_model_quantize(source.encode(), made.encode(), ctypes.byref(options))
                assert failed == 0, (model, mix)
                lines += lines_of(model, mix, made, usual)
    pathlib.Path("tests/data/mixes.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
