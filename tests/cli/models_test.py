#!/usr/bin/env python3
"""What was pulled: named by every command, listed, removed; and nothing else is."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from hub_server import Hub
from program import FAILED, MODELS, PROGRAM, SMOL, SOURCE, WRONG_USE, Case, main

REPO = "hf.co/maker/tiny"


class Models(Case):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.made.cleanup)
        path = os.path.join(cls.made.name, "tiny.gguf")
        subprocess.run([sys.executable, os.path.join(SOURCE, "tools", "make_synthetic.py"), "tiny", "Q4_K_M", path], check=True)
        with open(path, "rb") as file:
            cls.model = file.read()

    def setUp(self):
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        self.hub.repositories["maker/tiny"] = {"tiny-Q4_K_M.gguf": self.model, "sub/tiny-Q8_0.gguf": self.model}
        self.hub.repositories["maker/folder"] = {"config.json": b"{}", "model.safetensors": b"w"}
        folder = tempfile.TemporaryDirectory(dir=os.path.dirname(PROGRAM))  # there is room
        self.addCleanup(folder.cleanup)
        self.models = os.path.join(folder.name, "models")
        self.packed = os.path.join(folder.name, "packed")
        self.env = {"COUPLET_MODELS": self.models, "COUPLET_PACKED": self.packed, "HF_ENDPOINT": self.hub.url, "HOME": folder.name,
                    "HF_TOKEN": "", "HF_HOME": "", "no_proxy": "127.0.0.1"}

    def pull(self, *names):
        self.done("pull", *names, "--quiet", **self.env)

    def listed(self):
        return self.done("list", "--json", **self.env).json_lines()

    def names(self):
        return [model["name"] for model in self.listed()]

    def files(self):
        return sorted(os.path.relpath(os.path.join(where, file), self.models) for where, _, files in os.walk(self.models) for file in files)

    def url(self):
        self.hub.plain["/m.gguf"] = self.model
        return self.hub.files_url + "/m.gguf"


class Names(Models):
    def tokenizes(self, name):
        self.assertTrue(self.done("tokenize", name, "a b", **self.env).out, name)

    def test_every_way_to_write_it_opens_it_without_the_network(self):
        self.pull(REPO, f"{REPO}:Q8_0", self.url())
        self.hub.close()
        for name in (REPO, f"{REPO}:tiny-Q4_K_M.gguf", f"{REPO}:q8_0", f"{REPO}:sub/tiny-Q8_0.gguf", "hf://maker/tiny:Q4_K_M",
                     "huggingface.co/maker/tiny", "https://huggingface.co/maker/tiny", self.url(), self.url() + "?key=1"):
            self.tokenizes(name)

    def test_one_that_is_not_there_says_how_to_get_it(self):
        self.pull(REPO)
        before = len(self.hub.requests)
        for name in (f"{REPO}:Q8_0", "hf.co/maker/none", f"{REPO}@v1.0", self.url(), f"{REPO}:safetensors"):
            self.refused(FAILED, "run", name, "hi", says=f"{name} is not in {self.models}: get it with: couplet pull {name}", **self.env)
        self.refused(WRONG_USE, "run", "hf.co/maker", "hi", says="expected hf.co/OWNER/NAME", **self.env)
        self.assertEqual(len(self.hub.requests), before)

    def test_several_must_be_told_apart(self):
        self.hub.repositories["maker/tiny"] = {"a.gguf": self.model, "b.gguf": self.model}
        self.pull(f"{REPO}:a.gguf")
        self.tokenizes(REPO)
        self.pull(f"{REPO}:b.gguf")
        self.refused(FAILED, "tokenize", REPO, "hi", says="expected :FILE that says which, there are a.gguf, b.gguf", **self.env)
        self.tokenizes(f"{REPO}:b.gguf")

    def test_half_a_model_is_none(self):
        self.hub.misbehave("/maker/tiny/tiny-Q4_K_M.gguf", {"cut": 1000})
        self.refused(FAILED, "pull", REPO, "--retries", "0", "--quiet", says=".", **self.env)
        self.refused(FAILED, "run", REPO, "hi", says="couplet pull hf.co/maker/tiny", **self.env)


class List(Models):
    def test_nothing(self):
        result = self.done("list", **self.env)
        self.assertEqual(result.out, "")
        self.assertIn("couplet pull", result.err)

    def test_everything(self):
        self.pull(REPO, self.url(), "hf.co/maker/folder")
        shutil.copy(os.path.join(self.models, "hf.co/maker/tiny/tiny-Q4_K_M.gguf"), os.path.join(self.models, "smollm2.gguf"))
        self.hub.misbehave("/maker/tiny/sub/tiny-Q8_0.gguf", {"cut": 1000})
        self.refused(FAILED, "pull", f"{REPO}:Q8_0", "--retries", "0", "--quiet", says=".", **self.env)
        models = {model["name"]: model for model in self.listed()}
        self.assertEqual(list(models), ["smollm2", "hf.co/maker/folder", f"{REPO}:sub/tiny-Q8_0.gguf", f"{REPO}:tiny-Q4_K_M.gguf", self.url()])
        states = [model["state"] for model in models.values()]
        self.assertEqual(states, ["not verified", "verified", "begun", "verified", "verified"])
        tiny = models[f"{REPO}:tiny-Q4_K_M.gguf"]
        self.assertEqual((tiny["path"], tiny["format"], tiny["family"]),
                         (os.path.join(self.models, "hf.co/maker/tiny/tiny-Q4_K_M.gguf"), "GGUF v3", "llama"))
        self.assertGreaterEqual(tiny["bytes"], len(self.model))
        self.assertRegex(tiny["verified"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertIsNotNone(models["hf.co/maker/folder"]["problem"])  # what was served is no model
        text = self.done("list", **self.env)
        for name in models:
            self.assertIn(name, text.out)
        for word in ("GGUF v3 llama", "can't be opened", "only begun"):
            self.assertIn(word, text.out)
        self.assertIn(self.models, text.err)

    def test_packed_copies(self):
        os.makedirs(self.models)
        shutil.copy(os.path.join(MODELS, SMOL + ".gguf"), self.models)
        self.assertEqual(self.listed()[0]["packed_bytes"], 0)
        self.done("score", SMOL, "--quiet", "--json", stdin='{"text": "a"}\n', **self.env)
        (copy,) = os.listdir(self.packed)
        size = os.path.getsize(os.path.join(self.packed, copy))
        self.assertTrue(0.95 * size < self.listed()[0]["packed_bytes"] <= size)
        self.assertRegex(self.done("list", **self.env).err, r"\d\d MB in packed copies")
        self.done("rm", SMOL, **self.env)
        self.assertEqual((self.files(), os.listdir(self.packed)), ([], []))


class Remove(Models):
    def test_a_model_with_all_that_is_its_own(self):
        self.pull(REPO, f"{REPO}:Q8_0", self.url(), "hf.co/maker/folder")
        self.done("rm", f"{REPO}:Q4_K_M", **self.env)
        self.assertEqual(self.names(), ["hf.co/maker/folder", f"{REPO}:sub/tiny-Q8_0.gguf", self.url()])
        self.done("rm", REPO, self.url(), **self.env)
        self.assertEqual(os.listdir(self.models), ["hf.co"])
        self.assertEqual(os.listdir(os.path.join(self.models, "hf.co")), ["maker"])
        result = self.done("rm", "hf.co/maker/folder", **self.env)
        self.assertRegex(result.err, r"^hf.co/maker/folder: removed, \d+ B free again\n$")
        self.assertEqual(os.listdir(self.models), [])

    def test_files_of_others_stay(self):
        self.pull("hf.co/maker/folder")
        mine = os.path.join(self.models, "hf.co/maker/folder/notes.txt")
        with open(mine, "w"):
            pass
        self.done("rm", "hf.co/maker/folder", **self.env)
        self.assertEqual(self.files(), ["hf.co/maker/folder/notes.txt"])

    def test_the_catalogues_with_stamp_and_terms(self):
        os.makedirs(self.models)
        for name in ("smollm2.gguf", "smollm2.gguf.verified", "smollm2.TERMS.txt", "mine.gguf"):
            with open(os.path.join(self.models, name), "wb") as file:
                file.write(self.model)
        self.done("rm", "smollm2", **self.env)
        self.assertEqual(self.files(), ["mine.gguf"])

    def test_a_begun_one(self):
        self.hub.misbehave("/maker/tiny/tiny-Q4_K_M.gguf", {"cut": 1000})
        self.refused(FAILED, "pull", REPO, "--retries", "0", "--quiet", says=".", **self.env)
        self.done("rm", REPO, **self.env)
        self.assertEqual(self.files(), [])

    def test_by_path(self):
        self.pull(REPO)
        self.done("rm", os.path.join(self.models, "hf.co/maker/tiny/tiny-Q4_K_M.gguf"), **self.env)
        self.assertEqual(self.files(), [])

    def test_what_is_not_there_or_not_ours(self):
        outside = os.path.join(self.made.name, "tiny.gguf")
        self.refused(FAILED, "rm", "smollm2", says="is not in .*, which has nothing", **self.env)
        self.pull(REPO, f"{REPO}:Q8_0")
        before = self.files()
        has = f"which has {REPO}:sub/tiny-Q8_0.gguf, {REPO}:tiny-Q4_K_M.gguf"
        for name in (outside, "smollm2", "hf.co/maker/none", "", "/", self.models, os.path.join(self.models, "hf.co")):
            self.refused(FAILED, "rm", name, says=has, **self.env)
        self.refused(FAILED, "rm", REPO, says="expected one model's name, there are", **self.env)
        self.refused(FAILED, "rm", f"{REPO}:Q4_K_M", "smollm2", says="smollm2", **self.env)  # all or none
        self.refused(WRONG_USE, "rm", says="NAME", **self.env)
        self.assertEqual(self.files(), before)
        self.assertTrue(os.path.exists(outside))


if __name__ == "__main__":
    main((SMOL,))
