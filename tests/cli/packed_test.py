#!/usr/bin/env python3
"""The packed copies of weights: kept, used, turned off, damaged, impossible, raced for; and how much memory a run takes."""

import glob
import os
import signal
import stat
import subprocess
import tempfile
import time
import unittest

from program import DONE, GEMMA, MODELS, PROGRAM, SMOL, SOURCE, Case, couplet, environment, main, start

LINE = '{"text": "The sun is very bright today."}\n'


def peak_bytes(arguments, **env):
    """Of a run's resident memory, from start to end."""
    process = subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, env=environment(**env))
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_maxrss * 1024


class Packed(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.path.dirname(PROGRAM))  # there is room
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "packed")
        self.expected = self.hash(COUPLET_PACKED="off")

    def score(self, **env):
        return self.done("score", SMOL, "--json", stdin=LINE, **{"COUPLET_PACKED": self.folder, **env})

    def hash(self, **env):
        return self.score(**env).json()["hash"]

    def copies(self):
        return sorted(glob.glob(os.path.join(self.folder, "*")))

    def said(self, result, *words):
        notes = [line for line in result.err.splitlines() if "packed" in line]
        self.assertEqual(len(notes), 1 if words else 0, result.err)
        for word in words:
            self.assertIn(word, notes[0])

    def state(self, **env):
        return self.done("inspect", SMOL, "--json", **{"COUPLET_PACKED": self.folder, **env}).json()["packed_copy"]

    def test_kept_once_and_used(self):
        self.assertEqual(self.state()["state"], "absent")
        first = self.score()
        self.assertEqual(first.json()["hash"], self.expected)
        copy = self.state()
        self.assertEqual((copy["state"], self.copies()), ("present", [copy["path"]]))
        self.said(first, "kept a packed copy", copy["path"], "COUPLET_PACKED=off")
        before = os.stat(copy["path"])
        second = self.score()
        self.assertEqual(second.json()["hash"], self.expected)
        self.said(second)
        after = os.stat(copy["path"])
        self.assertEqual((before.st_ino, before.st_mtime_ns), (after.st_ino, after.st_mtime_ns))
        for level in ("reference", "avx2"):
            result = couplet("score", SMOL, "--json", stdin=LINE, COUPLET_PACKED=self.folder, COUPLET_KERNELS=level)
            if result.status == DONE:  # all levels read the same copy
                self.assertEqual(result.json()["hash"], self.expected)
                self.said(result)
        self.assertIn(copy["path"], self.done("inspect", SMOL, COUPLET_PACKED=self.folder).out)

    def test_turned_off(self):
        self.assertEqual(self.state(COUPLET_PACKED="off"), {"state": "none"})
        self.said(self.score(COUPLET_PACKED="off"))
        self.assertEqual(self.copies(), [])

    def test_a_folder_nobody_can_write_to_costs_one_line(self):
        os.mkdir(self.folder)
        path = os.path.join(self.folder, "file")
        with open(path, "w"):
            pass
        for folder in (path, "/proc/nowhere"):
            result = self.score(COUPLET_PACKED=folder)
            self.assertEqual(result.json()["hash"], self.expected)
            self.said(result, "packed anew at each start", folder)
        quiet = couplet("score", SMOL, "--json", "--quiet", stdin=LINE, COUPLET_PACKED=path)
        self.assertEqual((quiet.status, quiet.err), (DONE, ""))

    def test_a_limit_on_files_costs_one_line(self):
        limited = f"ulimit -f 1000; exec {PROGRAM} score {SMOL} --json"
        result = subprocess.run(["bash", "-c", limited], input=LINE, capture_output=True, text=True, check=False,
                                env=environment(COUPLET_PACKED=self.folder))
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertIn(self.expected, result.stdout)
        self.assertIn("packed anew at each start", result.stderr)
        self.assertEqual(self.copies(), [])

    def test_damage_is_found_and_mended(self):
        self.score()
        copy = self.copies()[0]
        size = os.path.getsize(copy)

        def flip(offset):
            with open(copy, "r+b") as file:
                file.seek(offset)
                byte = file.read(1)[0]
                file.seek(offset)
                file.write(bytes([byte ^ 1]))

        for damage in (lambda: flip(size // 2), lambda: flip(0), lambda: os.truncate(copy, size - 1)):
            damage()
            result = self.score()
            self.assertEqual(result.json()["hash"], self.expected)
            self.said(result, "kept a packed copy")
            self.assertEqual((self.copies(), os.path.getsize(copy)), ([copy], size))

    def test_two_at_once(self):
        processes = [start(["score", SMOL, "--json"], COUPLET_PACKED=self.folder) for _ in range(2)]
        for process in processes:
            process.stdin.write(LINE.encode())
            process.stdin.flush()
        for process in processes:
            out, err = process.communicate(timeout=300)
            self.assertEqual(process.returncode, DONE, err)
            self.assertIn(self.expected, out.decode())
        self.assertEqual(self.state()["state"], "present")
        self.assertEqual(len(self.copies()), 1)

    def test_killed_on_the_way_leaves_no_copy_and_the_next_sweeps(self):
        process = start(["score", SMOL, "--json"], COUPLET_PACKED=self.folder)
        deadline = time.monotonic() + 60
        while not self.copies() and process.poll() is None and time.monotonic() < deadline:
            pass
        process.send_signal(signal.SIGKILL)
        process.communicate()
        # It may have been done by then; under the name of a copy there is a whole one or none.
        self.assertEqual(self.hash(), self.expected)
        for path in self.copies():
            if path.endswith(".packed"):
                continue
            os.utime(path, (0, 0))
        os.truncate(self.state()["path"], 100)  # so that another is written
        self.assertEqual(self.hash(), self.expected)
        self.assertEqual(self.copies(), [self.state()["path"]])

    def test_readable_by_those_who_may_read_the_model(self):
        self.score()
        model = os.stat(os.path.join(MODELS, SMOL + ".gguf"))
        self.assertEqual(stat.S_IMODE(os.stat(self.copies()[0]).st_mode), stat.S_IMODE(model.st_mode) & 0o666)

    def test_peak_memory(self):
        # 1.15 times the file, the cache, and what these small models' files don't outweigh: code, tokenizer, activations.
        program_bytes = 32e6
        with open(os.path.join(SOURCE, "README.md")) as file:
            prompt = file.read()[:1500]  # of many different tokens
        for model in (SMOL, GEMMA):
            memory = self.done("inspect", model, "--json", "--context", "768").json()
            bound = 1.15 * memory["file_bytes"] + memory["memory"]["cache_bytes"] + program_bytes
            run = ["run", model, "--raw", prompt, "--context", "768", "--max-tokens", "200", "--ignore-eos"]
            for packed, what in ((self.folder, "packing to disk"), (self.folder, "mapped"), ("off", "packing in memory")):
                status, peak = peak_bytes(run, COUPLET_PACKED=packed)
                self.assertEqual(status, DONE)
                self.assertLess(peak, bound, f"{model}, {what}: {peak / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
