#!/usr/bin/env python3
"""--trace of run, explain and bench: a file that Perfetto opens, whole whatever ends the program, and its sums are the run's."""

import json
import os
import signal
import tempfile

from program import FAILED, INTERRUPTED, SMOL, WRONG_USE, Case, couplet, main, start

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
GREEDY = ("--temperature", "0")


class Trace(Case):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "trace.json")

    def tearDown(self):
        self.folder.cleanup()

    def read(self):
        with open(self.path, encoding="utf-8") as file:
            trace = json.load(file)
        for event in trace["traceEvents"]:
            self.assertIn(event["ph"], "XCiM")
            self.assertEqual(event["pid"], 1)
            if event["ph"] != "M":
                self.assertGreaterEqual(event["ts"], 0)
            if event["ph"] == "X":
                self.assertGreaterEqual(event["dur"], 0)
        return trace

    def slices(self, category):
        return [e for e in self.read()["traceEvents"] if e["ph"] == "X" and e["cat"] == category]

    def test_a_run(self):
        figures = self.done("run", SMOL, "The sun is very", "--raw", *GREEDY, "--max-tokens", "9", "--json", "--trace", self.path,
                            TRACEPARENT=PARENT).json()
        prefill, decode, steps = (self.slices(c) for c in ("prefill", "decode", "step"))
        self.assertEqual(sum(s["args"]["rows"] for s in prefill), figures["prompt_tokens"])
        self.assertEqual(len(decode), figures["figures"]["decode_steps"])
        self.assertEqual(len(steps), len(prefill) + len(decode))
        self.assertAlmostEqual(sum(s["dur"] for s in decode) / 1e3, figures["figures"]["decode_ms"], delta=0.01)
        for whole, part in zip(steps, prefill + decode):  # one sequence: its part is the whole
            self.assertEqual((whole["ts"], whole["dur"]), (part["ts"], part["dur"]))
            self.assertEqual(whole["args"]["weights_bytes"], part["args"]["weights_bytes"])
        text = "".join(s["args"]["choice"]["text"] for s in prefill + decode if "choice" in s["args"])
        self.assertEqual(text, figures["text"])
        self.assertEqual([w["args"].get("traceparent") for w in self.slices("queue")], [PARENT])

    def test_a_traceparent_of_another_form_is_left_out(self):
        self.done("run", SMOL, "hi", "--max-tokens", "1", "--trace", self.path, TRACEPARENT="x\"};alert(1)")
        self.assertNotIn("traceparent", self.slices("queue")[0]["args"])

    def test_explain_knows_the_peaks(self):
        data = self.done("explain", SMOL, "hi", *GREEDY, "--max-tokens", "4", "--json", "--trace", self.path).json()
        decode = self.slices("decode")
        self.assertEqual(len(decode), data["decode"]["passes"])
        for slice in decode:
            self.assertGreater(slice["args"]["whole_step"]["of_memory_peak"], 0)

    def test_a_batch_shares_steps(self):
        self.done("bench", SMOL, "--prefill", "32", "--decode", "5", "--depth", "0", "--batch", "4", "--repeat", "1", "--json",
                  "--trace", self.path)
        steps = self.slices("step")
        parts = self.slices("prefill") + self.slices("decode")
        self.assertEqual(len({p["tid"] for p in parts}), 8)  # four for each row of the bench
        for step in steps:
            own = [p for p in parts if p["ts"] == step["ts"]]
            self.assertEqual(len(own), step["args"]["sequences"])
            self.assertEqual(sum(p["args"]["weights_bytes"] for p in own), step["args"]["weights_bytes"])
            self.assertEqual(sum(p["args"]["integer_operations"] + p["args"]["float_operations"] for p in own),
                             step["args"]["operations"])

    def test_whatever_ends_it_the_file_is_whole(self):
        for signals, status in (([signal.SIGINT], INTERRUPTED), ([signal.SIGKILL], -signal.SIGKILL)):
            if os.path.exists(self.path):
                os.remove(self.path)
            process = start(("run", SMOL, "The sun is very", "--raw", *GREEDY, "--ignore-eos", "--trace", self.path))
            process.stdout.read(40)
            for each in signals:
                process.send_signal(each)
            process.communicate(timeout=100)
            self.assertEqual(process.returncode, status)
            self.assertGreater(len(self.slices("decode")), 2)

    def test_a_file_that_is_there_is_kept(self):
        with open(self.path, "w") as file:
            file.write("mine")
        arguments = ("run", SMOL, "hi", "--max-tokens", "2", "--trace", self.path)
        self.refused(WRONG_USE, *arguments, says="--force replaces it")
        with open(self.path) as file:
            self.assertEqual(file.read(), "mine")
        self.done(*arguments, "--force")
        self.assertEqual(len(self.slices("decode")), 1)
        self.refused(WRONG_USE, *arguments[:-1], self.folder.name, says="expected a file to write, got something else")
        self.refused(FAILED, *arguments[:-1], "/nowhere/trace.json", says=r"\[trace\] /nowhere/trace.json: ")

    def test_a_full_disk_is_said_at_the_end(self):
        result = couplet("run", SMOL, "hi", "--max-tokens", "2", "--trace", "/dev/full")
        self.assertEqual(result.status, WRONG_USE)  # no file: nothing was run
        self.assertEqual(result.out, "")


if __name__ == "__main__":
    main(needs=(SMOL,))
