#!/usr/bin/env python3
"""Wrong use, missing things and broken pipes: one line on stderr, the right exit status, nothing else."""

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

from program import (DONE, FAILED, PROGRAM, SMOL, WRONG_USE, Case, couplet, environment, main, start)

COMMANDS = ("run", "chat", "explain", "tokenize", "score", "template", "inspect", "bench", "serve", "quantize", "convert", "pull", "list",
            "rm")


class Help(Case):
    def test_lists_every_command(self):
        for arguments in (["--help"], ["-h"], ["help"]):
            text = self.done(*arguments).out
            for command in COMMANDS:
                self.assertIn(f"\n  {command} ", text)

    def test_each_command_has_one(self):
        for command in COMMANDS:
            self.assertIn("--quiet", self.done(command, "--help").out)
            self.assertRegex(self.done(command, "--version").out, r"\Acouplet \d+\.\d+\.\d+\n\Z")
        for option in ("--threads", "--precision", "--context", "--json", "--temperature", "--logit-bias", "--steps"):
            self.assertIn(option, self.done("run", "--help").out)

    def test_version(self):
        self.assertRegex(self.done("--version").out, r"\Acouplet \d+\.\d+\.\d+\n\Z")

    def test_score_says_that_it_computes_every_position(self):
        self.assertIn("computes every position", " ".join(self.done("score", "--help").out.split()))


class WrongUse(Case):
    def test_no_or_unknown_command(self):
        self.refused(WRONG_USE, says="expected a command")
        self.refused(WRONG_USE, "rum", says='"rum"')
        self.refused(WRONG_USE, "r\x1b[31m\n", says="x1b")
        self.refused(WRONG_USE, b"\xff\xfe", says="xff")

    def test_bad_options(self):
        for arguments in (["--nope"], ["--threads", "0"], ["--threads", "two"], ["--threads", "99999"], ["--precision", "best"],
                          ["--context", "0"], ["--context", "1e3"], ["--temperature", "hot"], ["--max-tokens", "-1"],
                          ["--logit-bias", "x=1"], ["--logit-bias", "1=nan"], ["--stop", ""], ["--logprobs", "1000000"],
                          ["--seed", "-1"], ["--top-p", "0"], ["--threads"], ["a", "b"]):
            self.refused(WRONG_USE, "run", SMOL, "hi", *arguments)
        self.refused(WRONG_USE, "run", says="MODEL")
        self.refused(WRONG_USE, "score", SMOL, "--chunk", "0", says="--chunk")
        self.refused(WRONG_USE, "score", SMOL, "--chunk", "70000", says="--chunk: expected a whole number from 1 to 65536")
        self.refused(WRONG_USE, "bench", SMOL, "--batch", "1000000", says="--batch: expected a whole number from 1 to 1024")
        self.refused(WRONG_USE, "bench", SMOL, "--prefill", "9000", says="--prefill: expected at most 8192")
        self.refused(WRONG_USE, "bench", SMOL, "--context", "64", "--prefill", "4", "--depth", "63", says="--decode: expected at most 63")
        self.refused(WRONG_USE, "score", SMOL, "--decode-from", "0", says="--decode-from")
        self.refused(WRONG_USE, "bench", SMOL, "--batch", "1,,2", says="--batch")
        self.refused(WRONG_USE, "explain", SMOL, "hi", "--alternatives", "0", says="--alternatives")

    def test_prompts_that_are_none(self):
        for command in ("run", "explain"):
            self.refused(WRONG_USE, command, SMOL, "", says="PROMPT")
            self.refused(WRONG_USE, command, SMOL, "-", stdin=b"\n", says="PROMPT")
            self.refused(WRONG_USE, command, SMOL, b"caf\xe9", says="byte 0xe9 at offset 3")
            self.refused(WRONG_USE, command, SMOL, stdin=b"ab\xff", says="byte 0xff at offset 2")

    def test_texts_that_are_no_utf8(self):
        for command in (["run", SMOL, "hi"], ["chat", SMOL], ["explain", SMOL, "hi"]):
            for option in ("--system", "--stop"):
                self.refused(WRONG_USE, *command, option, b"caf\xe9", says=option + ": expected UTF-8, got byte 0xe9 at offset 3")


class Missing(Case):
    def test_models(self):
        for command in ("run", "inspect", "tokenize", "score", "chat", "explain", "bench", "template"):
            self.refused(FAILED, command, "/nowhere/model.gguf", says="/nowhere/model.gguf")
        self.refused(FAILED, "run", "smolm2", "hi", says="smolm2")
        with tempfile.TemporaryDirectory() as folder:
            self.refused(FAILED, "run", SMOL, "hi", COUPLET_MODELS=folder, says="couplet pull smollm2")

    def test_a_file_that_is_no_model(self):
        with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
            self.refused(FAILED, "inspect", file.name)
            file.write(b"GGUF\x03\x00\x00\x00" + b"\xff" * 16)
            file.flush()
            self.refused(FAILED, "inspect", file.name, says="gguf")

    def test_input_files(self):
        self.refused(FAILED, "score", SMOL, "/nowhere/lines", says="/nowhere/lines")
        self.refused(FAILED, "score", SMOL, "/", says="/")
        self.refused(FAILED, "template", SMOL, "--template", "/nowhere/t", says="/nowhere/t")

    def test_kernels_that_are_not_there(self):
        self.refused(WRONG_USE, "run", SMOL, "hi", COUPLET_KERNELS="sse9", says="sse9")


class Bench(Case):
    def test_a_context_beyond_what_it_needs(self):
        rows = self.done("bench", SMOL, "--context", "8192", "--batch", "1", "--prefill", "4", "--depth", "0", "--decode", "2",
                         "--repeat", "1", "--json").json_lines()
        self.assertEqual([(r["what"], r["n"]) for r in rows], [("prefill", 4), ("decode", 0)])

    def test_requests_run_one_by_one_in_any_order(self):
        limits = ("--prefill", "8", "--depth", "16", "--batch", "2", "--decode", "2", "--requests")
        result = self.done("bench", SMOL, *limits, stdin="decode 16 2\npeaks\nprefill 8 1\ndecode 0 1\n")
        rows = result.json_lines()
        self.assertEqual([(r["what"], r.get("n"), r.get("batch")) for r in rows],
                         [("decode", 16, 2), ("peaks", None, None), ("prefill", 8, 1), ("decode", 0, 1)])
        self.assertGreater(rows[1]["read_bytes_per_s"], 1e6)
        for asked, says in (("decode 17 1", "DEPTH: .* 0 to 16"), ("prefill 8 3", "BATCH: .* 1 to 2")):
            self.refused(WRONG_USE, "bench", SMOL, *limits, "--quiet", stdin=asked, says="line 1: .*" + says)
        for asked in ("prefill 8", "score 1 1", "decode 1 1 1"):
            self.refused(FAILED, "bench", SMOL, *limits, "--quiet", stdin=asked, says="line 1: expected")


class Signals(Case):
    def test_a_mapped_file_that_lost_its_bytes(self):
        process = start(["tokenize", SMOL])  # it waits for its text
        time.sleep(1)
        process.send_signal(signal.SIGBUS)
        _, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (FAILED, b"couplet: the model file changed while it was read\n"))

    def test_an_ignored_ctrl_c_stays_ignored(self):
        process = subprocess.Popen(["sh", "-c", 'trap "" INT; exec "$0" tokenize smollm2', PROGRAM], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(b"hi", timeout=60)
        self.assertEqual((process.returncode, err), (DONE, b""))
        self.assertIn(b"hi", out)


class Output(Case):
    def test_a_reader_that_leaves_is_no_error(self):
        text = "word " * 200_000
        process = subprocess.Popen([PROGRAM, "tokenize", SMOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment())
        process.stdin.write(text.encode())
        process.stdin.close()
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.wait(60), DONE)
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_full_disk_is_one(self):
        with open("/dev/full", "wb") as full:
            process = subprocess.run([PROGRAM, "tokenize", SMOL, "hi"], stdout=full, stderr=subprocess.PIPE, check=False,
                                     env=environment())
        self.assertEqual(process.returncode, FAILED)
        self.one_line(process.stderr.decode())

    def test_pipes_that_do_not_block(self):
        text = ("word " * 50_000).encode()
        expected = self.done("tokenize", SMOL, stdin=text).bytes
        lines = (json.dumps({"text": "a b"}) + "\n").encode() * 2
        batch = self.done("tokenize", SMOL, "--batch", stdin=lines).bytes
        for arguments, given, answer in ((["tokenize", SMOL], text, expected), (["tokenize", SMOL, "--batch"], lines, batch)):
            (in_end, in_start), (out_end, out_start) = os.pipe(), os.pipe()
            os.set_blocking(in_end, False)
            os.set_blocking(out_start, False)
            process = subprocess.Popen([PROGRAM, *arguments], stdin=in_end, stdout=out_start, stderr=subprocess.PIPE, env=environment())
            os.close(in_end)
            os.close(out_start)
            time.sleep(0.5)  # it finds no input yet, and later no room for its output
            with os.fdopen(in_start, "wb") as file:
                file.write(given)
            time.sleep(0.5)
            with os.fdopen(out_end, "rb") as file:
                self.assertEqual(file.read(), answer)
            self.assertEqual(process.wait(60), DONE, process.stderr.read())
            process.stderr.close()

    def test_quiet(self):
        result = couplet("run", SMOL, "hi", "--quiet", "--max-tokens", "2", "--temperature", "0")
        self.assertEqual((result.status, result.err), (DONE, ""))


if __name__ == "__main__":
    main()
