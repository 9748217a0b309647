#!/usr/bin/env python3
"""tools/make_synthetic.py: its files have the sizes and types of the models they stand in for, and run."""

import collections
import importlib.util
import math
import os
import subprocess
import sys
import tempfile
import unittest

from program import FAILED, SOURCE, Case, main

TOOL = os.path.join(SOURCE, "tools", "make_synthetic.py")
spec = importlib.util.spec_from_file_location("make_synthetic", TOOL)
tool = importlib.util.module_from_spec(spec)
sys.modules["make_synthetic"] = tool
spec.loader.exec_module(tool)


def make(*arguments):
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True, check=False)


class Synthetic(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def made(self, mix, *more):
        path = os.path.join(self.folder, "-".join([mix, *more]) + ".gguf")
        done = make("tiny", mix, path, *more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return path

    def test_types_and_parameters_of_the_real_models(self):
        # llama.cpp's own Q4_K_M files: Q4_K, Q6_K and F32 tensors without rope_freqs, and the parameters in billions.
        for name, counts, parameters in (("llama3.2-1b", (96, 17, 33), 1.236), ("llama3.1-8b", (193, 33, 65), 8.030)):
            table = list(tool.tensors(tool.SHAPES[name], "Q4_K_M"))
            kinds = collections.Counter(kind for _, kind, _, _ in table)
            self.assertEqual(tuple(kinds[kind] for kind in (tool.Q4_K, tool.Q6_K, tool.F32)), counts)
            self.assertAlmostEqual(sum(max(rows, 1) * cols for _, _, rows, cols in table) / 1e9, parameters, 3)

    def test_what_inspect_sees(self):
        for mix, types in (("Q4_K_M", ["F32", "Q4_K", "Q6_K"]), ("Q4_0", ["F32", "Q4_0", "Q6_K"])):
            seen = self.done("inspect", self.made(mix), "--json").json()
            self.assertEqual(sorted(entry["type"] for entry in seen["tensors"]), types)
            self.assertEqual((seen["num_layers"], seen["vocab_size"], seen["tokenizer"]["adds_bos"]), (8, 1024, True))

    def test_it_runs(self):
        for mix in ("Q4_K_M", "Q4_0"):
            path = self.made(mix)
            reply = self.done("run", path, "--raw", "the sun", "--max-tokens", "5", "--ignore-eos", "--json").json()
            self.assertEqual((reply["stop"], reply["completion_tokens"]), ("max_tokens", 5))
            row = self.done("score", path, "--json", stdin='{"text": "the sun is very bright"}\n').json()
            self.assertTrue(all(math.isfinite(p) and p < 0 for p in row["next_logprob"]), row)
            self.done("bench", path, "--prefill", "8", "--decode", "2", "--depth", "0", "--batch", "1", "--repeat", "1")

    def test_pieces_merge(self):
        rows = self.done("tokenize", self.made("Q4_0"), "ab ab", "--json").json_lines()
        self.assertEqual([row["text"] for row in rows], ["ab", " a", "b"])

    def test_the_seed_fixes_every_byte(self):
        def content(*arguments):
            with open(self.made(*arguments), "rb") as file:
                return file.read()

        first = content("Q4_0")
        self.assertEqual(first, content("Q4_0", "--seed", "1"))
        self.assertNotEqual(first, content("Q4_0", "--seed", "2"))

    def test_no_room_leaves_no_file(self):
        path = os.path.join(self.folder, "cut.gguf")
        limited = f"ulimit -f 64; exec {sys.executable} {TOOL} tiny Q4_0 {path}"
        done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, FAILED)
        self.assertRegex(done.stderr, r"\Amake_synthetic: [^\n]+\n\Z")
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    main(needs=())
