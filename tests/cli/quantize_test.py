#!/usr/bin/env python3
"""couplet quantize, couplet convert and --quantize: what they write is what they say, and a failure leaves nothing."""

import json
import os
import signal
import subprocess
import tempfile
import time

import folder_test
from folder_test import SPECIAL, TEMPLATE, write_json, write_model, write_tokenizer
from program import FAILED, INTERRUPTED, PROGRAM, SMOL, WRONG_USE, Case, environment, main, start

# Rows that the blocks of K types fit, rows that those of 32 fit, and, of 48, rows that neither does.
folder_test.HIDDEN, folder_test.INNER = 256, 320

LINE = '{"text": "the sun is very bright"}\n'
MIXES = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k_s", "q3_k_m", "q3_k_l", "q4_k_s", "q4_k_m", "q5_k_s", "q5_k_m",
         "q6_k", "f16", "bf16")


class InFolder(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="couplet_quantize", dir=os.path.dirname(PROGRAM))  # there is room
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.model = self.path("model")
        os.mkdir(self.model)
        write_tokenizer(self.model)
        write_model(self.model)

    def path(self, name):
        return os.path.join(self.folder, name)

    def names(self):
        return sorted(os.listdir(self.folder))

    def score(self, model, *more):
        return self.done("score", model, "--json", *more, stdin=LINE).json()

    def converted(self, *more):
        self.done("convert", self.model, self.path("f32.gguf"), *more)
        return self.path("f32.gguf")


class Convert(InFolder):
    def test_the_file_is_the_folder(self):
        file = self.converted()
        self.assertEqual(self.score(file)["hash"], self.score(self.model)["hash"])
        seen, folder = (self.done("inspect", model, "--json").json() for model in (file, self.model))
        self.assertEqual(seen["format"], "GGUF v3")
        self.assertEqual((seen["tokenizer"]["family"], seen["tokenizer"]["pre_tokenizer"]), ("bpe", "gpt-2"))
        self.assertEqual(seen["chat_template"], TEMPLATE)
        for key in ("name", "family", "num_parameters", "head_dim", "vocab_size", "context_length", "sampling"):
            self.assertEqual(seen[key], folder[key], key)
        for key in ("bos", "eos", "ends", "adds_bos"):
            self.assertEqual(seen["tokenizer"][key], folder["tokenizer"][key], key)
        text = "a" + SPECIAL[1] + " é 12"
        rows = [self.done("tokenize", model, text, "--special", "--json").json_lines() for model in (file, self.model)]
        self.assertEqual(*[[row["id"] for row in row_list] for row_list in rows])
        self.assertEqual(self.names(), ["f32.gguf", "model"])

    def test_types(self):
        reply = self.done("convert", self.model, self.path("q.gguf"), "--type", "q8_0", "--json").json()
        self.assertEqual([entry["type"] for entry in reply["tensors"]], ["Q8_0", "F16", "F32"])
        self.assertEqual(reply["output_bytes"], os.path.getsize(self.path("q.gguf")))
        self.assertEqual(self.score(self.path("q.gguf"))["hash"], self.score(self.model, "--quantize", "q8_0")["hash"])

    def test_a_file_is_no_folder(self):
        self.refused(WRONG_USE, "convert", self.converted(), self.path("o.gguf"), says="expected a folder")
        self.refused(FAILED, "convert", self.path("none"), self.path("o.gguf"), says="none")
        os.remove(os.path.join(self.model, "model.safetensors"))
        self.refused(FAILED, "convert", self.model, self.path("o.gguf"), says="there is neither")
        self.assertEqual(self.names(), ["f32.gguf", "model"])

    def test_what_gguf_has_no_words_for(self):
        path = os.path.join(self.model, "tokenizer.json")
        with open(path, encoding="utf-8") as file:
            tokenizer = json.load(file)
        for change, says in (({"normalizer": {"type": "Lowercase"}}, "normalizer"),
                             ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                                 {"type": "Split", "pattern": {"Regex": "[aeiou]"}, "behavior": "Isolated"},
                                 {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]}}, "pre-tokenizer")):
            write_json(self.model, "tokenizer.json", {**tokenizer, **change})
            self.refused(FAILED, "convert", self.model, self.path("o.gguf"), says=says)
        self.assertEqual(self.names(), ["model"])


class Quantize(InFolder):
    def test_every_mix_at_load_has_the_bits_of_its_file(self):
        file = self.converted()
        plain = self.score(file)["hash"]
        hashes = set()
        for mix in MIXES:
            self.done("quantize", file, self.path("q.gguf"), "--type", mix, "--force", "--quiet")
            row = self.score(file, "--quantize", mix, "--threads", "1")
            self.assertEqual(row["quantize"], mix)
            self.assertEqual(row["hash"], self.score(self.path("q.gguf"))["hash"], mix)
            self.assertEqual(row["hash"], self.score(self.model, "--quantize", mix)["hash"], mix)
            hashes.add(row["hash"])
        self.assertNotIn(plain, hashes)
        self.assertGreater(len(hashes), 6)

    def test_the_number_of_threads_changes_no_byte(self):
        file = self.converted()
        contents = []
        for threads in ("1", "2"):
            self.done("quantize", file, self.path("q.gguf"), "--type", "q4_1", "--threads", threads, "--force")
            with open(self.path("q.gguf"), "rb") as made:
                contents.append(made.read())
        self.assertEqual(*contents)

    def test_inspect_knows_the_sizes(self):
        file = self.converted()
        self.done("quantize", file, self.path("q.gguf"), "--type", "q8_0")
        at_load, of_file = (self.done("inspect", *what, "--json").json() for what in ((file, "--quantize", "q8_0"), (self.path("q.gguf"),)))
        self.assertEqual(at_load["quantize"], "q8_0")
        for key in ("tensors", "memory"):
            self.assertEqual(at_load[key], of_file[key])
        self.assertIn("q8_0", self.done("inspect", file, "--quantize", "q8_0").out)

    def test_what_is_quantized_already(self):
        self.refused(WRONG_USE, "quantize", SMOL, self.path("o.gguf"), "--type", "q8_0", says="--allow-requantize")
        self.refused(WRONG_USE, "run", SMOL, "x", "--quantize", "q8_0", says="changes none")
        self.done("quantize", SMOL, self.path("o.gguf"), "--type", "q4_0", "--allow-requantize")
        seen = self.done("inspect", self.path("o.gguf"), "--json").json()
        self.assertIn("Q4_0", [entry["type"] for entry in seen["tensors"]])
        self.done("run", self.path("o.gguf"), "hi", "--max-tokens", "3")
        self.assertEqual(self.names(), ["model", "o.gguf"])

    def test_where_the_output_goes(self):
        file = self.converted()
        self.refused(WRONG_USE, "quantize", file, file, "--type", "q8_0", "--force", says="another file than the input")
        os.link(file, self.path("same.gguf"))
        self.refused(WRONG_USE, "quantize", file, self.path("same.gguf"), "--type", "q8_0", "--force", says="another file")
        os.remove(self.path("same.gguf"))
        weights = os.path.join(self.model, "model.safetensors")
        self.refused(WRONG_USE, "convert", self.model, weights, "--force", says="another file than the input")
        self.refused(WRONG_USE, "quantize", file, self.model, "--type", "q8_0", "--force", says="expected a file")
        self.done("quantize", file, self.path("q.gguf"), "--type", "q8_0")
        self.refused(WRONG_USE, "quantize", file, self.path("q.gguf"), "--type", "q4_0", says="there is one")
        self.done("quantize", file, self.path("q.gguf"), "--type", "q4_0", "--force")
        self.refused(FAILED, "quantize", file, self.path("no/q.gguf"), "--type", "q4_0", says="No such file")
        self.assertEqual(self.names(), ["f32.gguf", "model", "q.gguf"])
        self.assertEqual(os.stat(self.path("q.gguf")).st_mode & 0o777, 0o666 & ~current_umask())

    def test_bad_types(self):
        file = self.converted()
        for mix in ("q4_k", "Q8_0", "", "as-is"):
            self.refused(WRONG_USE, "quantize", file, self.path("o.gguf"), "--type", mix, says="q4_k_m")
            self.refused(WRONG_USE, "run", file, "x", "--quantize", mix, says="q4_k_m")
        self.refused(WRONG_USE, "quantize", file, self.path("o.gguf"), says="--type")
        self.refused(WRONG_USE, "convert", self.model, self.path("o.gguf"), "--type", "q9", says="q4_k_m")

    def test_numbers_that_no_block_holds(self):
        path = os.path.join(self.model, "model.safetensors")
        with open(path, "r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(b"\x00\x00\xc0\x7f")  # NaN
        for command in (("quantize", self.model, self.path("o.gguf"), "--type", "q8_0"),
                        ("score", self.model, "--quantize", "q8_0", "-")):
            self.refused(FAILED, *command, stdin=LINE, says='tensor "blk.1.ffn_(up|down).weight": .*NaN')
        self.assertEqual(self.names(), ["model"])

    def test_no_room_leaves_no_file(self):
        file = self.converted()
        command = f"ulimit -f 64; exec {PROGRAM} quantize {file} {self.path('o.gguf')} --type f16"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment(), check=False)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.one_line(done.stderr)
        self.assertIn("o.gguf: File too large", done.stderr)
        self.assertEqual(self.names(), ["f32.gguf", "model"])

    def test_an_interrupt_leaves_no_file(self):
        big = self.path("big.gguf")
        self.done("quantize", SMOL, big, "--type", "f32", "--allow-requantize")
        process = start(["quantize", big, self.path("o.gguf"), "--type", "q4_k_m", "--threads", "1"])
        while len(self.names()) < 3 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate()
        self.assertEqual(process.returncode, INTERRUPTED)
        self.assertEqual(self.names(), ["big.gguf", "model"])

    def test_a_packed_copy_for_each_mix(self):
        packed, big = self.path("packed"), self.path("big.gguf")
        self.done("quantize", SMOL, big, "--type", "f16", "--allow-requantize")
        hashes = {}
        for mix in ("q8_0", "q5_1", "q8_0"):
            row = self.done("score", big, "--json", "--quantize", mix, stdin=LINE, COUPLET_PACKED=packed).json()
            self.assertEqual(hashes.setdefault(mix, row["hash"]), row["hash"])
            state = self.done("inspect", big, "--json", "--quantize", mix, COUPLET_PACKED=packed).json()["packed_copy"]
            self.assertEqual(state["state"], "present")
            self.assertIn(f"-{mix}-", os.path.basename(state["path"]))
        self.assertEqual(len(os.listdir(packed)), 2)


def current_umask():
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


if __name__ == "__main__":
    main(needs=(SMOL,))
