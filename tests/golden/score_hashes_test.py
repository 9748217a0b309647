#!/usr/bin/env python3
"""The hashes of all logits of both real models, committed, under every schedule, thread count and kernel level.

Use: score_hashes_test.py COUPLET [--quick] [--write]
The ids are those of the golden log probabilities. --quick is for the same bits from another compiler or a sanitizer
build: the shortest prompts, the plain run and every level. --write makes tests/data/score_hashes.json anew, after a change of the numerics version alone.
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
HASHES = DATA / "score_hashes.json"
MODELS = ("smollm2", "gemma3")
PRECISIONS = ("fast", "fine")
FORMATS = ("q16", "f16")  # of the cache, the default first
LONG = 100  # tokens
REFERENCE = 10  # the plain scalar level is slow: prompts up to this length

couplet = sys.argv[1] if len(sys.argv) > 1 else "couplet"
quick = "--quick" in sys.argv


def prompts(model):
    lines = (DATA / f"logits.{model}.jsonl").read_text().splitlines()
    return [json.loads(line)["ids"] for line in lines]


def score(model, lines, *options, kernels=None):
    environment = dict(os.environ)
    environment.pop("COUPLET_KERNELS", None)
    if kernels:
        environment["COUPLET_KERNELS"] = kernels
    asked = "".join(json.dumps({"ids": ids}) + "\n" for ids in lines)
    done = subprocess.run([couplet, "score", model, "-", "--json", "--quiet", *map(str, options)], input=asked,
                          capture_output=True, text=True, env=environment)
    if done.returncode:
        raise AssertionError(f"couplet score {model} {options} ended with {done.returncode}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def levels():
    """The levels this machine runs, asked one by one."""
    runnable = []
    for level in ("avx2", "avx2_vnni", "avx512", "amx"):
        environment = dict(os.environ, COUPLET_KERNELS=level)
        done = subprocess.run([couplet, "score", "smollm2", "-", "--json"], input='{"ids": [1, 2]}\n', text=True,
                              capture_output=True, env=environment)
        if done.returncode == 0:
            runnable.append(level)
    return runnable


class ScoreHashes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.committed = json.loads(HASHES.read_text())
        cls.levels = levels()
        cls.usable_cpus = score("smollm2", [[1]])[0]["threads"]

    def check(self, model, precision, which, *options, kernels=None, cache="q16"):
        lines = prompts(model)
        chosen = [i for i in which if not quick or len(lines[i]) <= REFERENCE]
        answers = score(model, [lines[i] for i in chosen], "--precision", precision, "--cache-format", cache, *options,
                        kernels=kernels)
        expected = [self.committed[model][cache][precision][i] for i in chosen]
        self.assertEqual([a["hash"] for a in answers], expected, f"{model} {cache} {precision} {options} {kernels}")
        return answers

    def all_of(self, model):
        return range(len(prompts(model)))

    def short_of(self, model):
        return [i for i, ids in enumerate(prompts(model)) if len(ids) < LONG]

    def test_the_plain_run(self):
        for model in MODELS:
            for cache in FORMATS:
                for precision in PRECISIONS:
                    for answer in self.check(model, precision, self.all_of(model), cache=cache):
                        self.assertEqual(answer["precision"], precision)
                        self.assertEqual(answer["cache_format"], cache)
                        self.assertEqual(answer["numerics"], self.committed["numerics"])

    def test_threads(self):
        for model in MODELS:
            for threads in (1, 2, 3):
                for answer in self.check(model, "fast", self.short_of(model), "--threads", threads):
                    self.assertEqual(answer["threads"], min(threads, self.usable_cpus))  # more would only take turns

    def test_chunks(self):
        for model in MODELS:
            for chunk in (1, 7, 64):
                answers = self.check(model, "fast", self.short_of(model), "--chunk", chunk)
                for answer in answers:
                    self.assertTrue(all(rows <= chunk for rows, _ in answer["steps"]), answer["steps"])
            for answer in self.check(model, "fast", self.all_of(model), "--chunk", 100):
                self.assertEqual(sum(rows for rows, _ in answer["steps"]), len(answer["ids"]))

    def test_decode(self):
        for model in MODELS:
            lines = prompts(model)
            for answer in self.check(model, "fast", self.short_of(model), "--decode-from", 1):
                self.assertEqual(answer["steps"], [[1, 0]] + [[0, 1]] * (len(answer["ids"]) - 1))
            longest = max(self.all_of(model), key=lambda i: len(lines[i]))
            half = len(lines[longest]) // 2
            for answer in self.check(model, "fast", [longest], "--decode-from", half):
                self.assertEqual(sum(rows for _, rows in answer["steps"]), half)
            for precision in PRECISIONS:
                self.check(model, precision, self.short_of(model), "--decode-from", 2)

    def test_neighbours(self):
        for model in MODELS:
            for precision in PRECISIONS:
                self.check(model, precision, self.short_of(model), "--parallel", 4, "--decode-from", 3)
            self.check(model, "fast", self.all_of(model), "--parallel", 8, "--chunk", 200)
            self.check(model, "fast", self.short_of(model), "--cold")

    def test_levels(self):
        self.assertTrue(self.levels, "this machine runs none but the reference")
        for model in MODELS:
            for level in self.levels:
                for answer in self.check(model, "fast", self.all_of(model), kernels=level):
                    self.assertEqual(answer["kernels"], level)
                self.check(model, "fine", self.short_of(model), "--decode-from", 3, kernels=level)
                self.check(model, "fast", self.short_of(model), "--decode-from", 3, kernels=level, cache="f16")
            tiny = [i for i, ids in enumerate(prompts(model)) if len(ids) <= REFERENCE]
            for cache in FORMATS:
                self.check(model, "fast", tiny, kernels="reference", cache=cache)
            self.check(model, "fine", tiny[:1], "--decode-from", 2, kernels="reference")


def write():
    made = {model: {cache: {p: [a["hash"] for a in score(model, prompts(model), "--precision", p, "--cache-format", cache)]
                            for p in PRECISIONS} for cache in FORMATS} for model in MODELS}
    made["numerics"] = score("smollm2", [[1]])[0]["numerics"]
    HASHES.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    else:
        chosen = ["ScoreHashes.test_the_plain_run", "ScoreHashes.test_levels"] if quick else []
        unittest.main(argv=sys.argv[:1] + chosen, verbosity=2)
