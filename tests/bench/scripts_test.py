#!/usr/bin/env python3
"""The measuring scripts of bench/: what they compute and print, without a peer and without a look at any time."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")
sys.path.insert(0, BENCH)

import compare
import engines
import neighbours
import serving
import soak
import tokenize_bench

MODELS = os.environ.get("COUPLET_MODELS") or os.path.expanduser("~/.cache/couplet")


def run(script, *arguments):
    return subprocess.run([sys.executable, os.path.join(BENCH, script), *arguments], capture_output=True, text=True, check=False)


def answers(*rates):
    return [{"tokens_per_s": rate, "gflops": rate, "gbytes_per_s": rate / 10} for rate in rates]


PEAKS = {"int8_operations_per_s": 1000e9, "float_operations_per_s": 100e9, "read_bytes_per_s": 20e9}


class Figures(unittest.TestCase):
    def row(self, stage="prefill", n=512, model="smollm2.gguf", **peers):
        given = {"couplet": answers(300, 500, 400), **{name.replace("_", "."): answers(*rates) for name, rates in peers.items()}}
        return compare.row_of(model, stage, n, given, PEAKS)

    def test_the_best_round_counts_on_both_sides(self):
        row = self.row(llama_cpp=(50, 100, 80), openvino=(250, 200, 10))
        self.assertEqual(row["tokens_per_s"], {"couplet": 500, "llama.cpp": 100, "openvino": 250})
        self.assertEqual(row["median"]["couplet"], 400)
        self.assertEqual(row["over_fastest_peer"], 2)
        self.assertAlmostEqual(row["of_arithmetic"], 0.5)
        self.assertAlmostEqual(row["of_memory"], 50 / 20)

    def test_the_derived_peer_is_a_multiple_of_llama_cpp(self):
        row = self.row(llama_cpp=(100,))
        self.assertAlmostEqual(row["ik_llama.cpp_derived"], 390)
        self.assertAlmostEqual(row["over_fastest_peer"], 5)
        self.assertAlmostEqual(row["over_fastest_with_derived"], 500 / 390)
        self.assertIsNone(self.row(n=128, llama_cpp=(100,))["ik_llama.cpp_derived"])
        self.assertIsNone(self.row(openvino=(100,))["ik_llama.cpp_derived"])
        self.assertAlmostEqual(self.row("decode", 7, "gemma3.gguf", llama_cpp=(100,))["ik_llama.cpp_derived"], 100)
        self.assertIsNone(compare.derived_multiple("other.gguf", "decode", 0))

    def test_no_peer_no_ratio(self):
        row = self.row()
        self.assertIsNone(row["over_fastest_peer"])
        self.assertNotIn("over fastest", compare.table({"rows": [row]}, []))

    def test_the_table(self):
        row = self.row(llama_cpp=(100,))
        text = compare.table({"rows": [row]}, ["llama.cpp", "openvino"])
        head, line = text.splitlines()
        self.assertEqual(len(head), len(line))
        self.assertEqual(line.split(), ["prefill", "512", "500", "50%", "250%", "100", "-", "390", "5.00", "1.28"])

    def test_two_threads_over_one(self):
        def one(rate, threads):
            return {"model": "a.gguf", "threads": threads, "rows": [{"stage": "decode", "n": 0, "tokens_per_s": {"couplet": rate}}]}
        self.assertEqual(compare.scaling([one(100, 1), one(185, 2)]), ["a.gguf, two threads over one: decode 0 1.85"])
        self.assertEqual(compare.scaling([one(100, 1)]), [])


class Turns(unittest.TestCase):
    def test_every_engine_is_asked_each_round_and_another_begins(self):
        asked = []

        class Engine:
            def __init__(self, name):
                self.name = name

            def measure(self, stage, n):
                asked.append(self.name)
                return {"tokens_per_s": len(asked)}

            def peaks(self):
                return {"what": "peaks", "read_bytes_per_s": len(asked)}

            def cpu_seconds(self):
                return 1.0 if self.name == "b" and len(asked) % 2 else 0.0

        children = [Engine("couplet"), Engine("b")]
        quiet = compare.Quiet(children)
        given, peaks = compare.measure(children, "decode", 0, 2, quiet)
        self.assertEqual(asked, ["couplet", "b", "b", "couplet"])
        self.assertEqual({name: len(of) for name, of in given.items()}, {"couplet": 2, "b": 2})
        self.assertEqual(peaks, {"read_bytes_per_s": 4})
        self.assertGreater(quiet.report(children)["idle_engines"]["b"], compare.IDLE_CPU_SHARE)

    def test_a_child_that_ends_is_an_error(self):
        class Broken(engines.Child):
            name = "broken"

        child = Broken([sys.executable, "-c", "input(); raise SystemExit(3)"])
        with self.assertRaisesRegex(engines.EngineError, "broken ended with status 3"):
            child.ask("prefill 1")
        child.process.stdin.close()
        child.process.stdout.close()

    def test_a_child_answers_and_counts_its_time(self):
        child = engines.Child([sys.executable, "-c", "import sys\nfor line in sys.stdin: print('[' + line.strip() + ']', flush=True)"])
        self.assertEqual(child.ask("7"), [7])
        self.assertGreaterEqual(child.cpu_seconds(), 0)
        child.close()
        self.assertEqual(child.process.returncode, 0)


class Neighbours(unittest.TestCase):
    def test_the_share_that_is_left(self):
        self.assertAlmostEqual(neighbours.share(2, 2, 0), 1)
        self.assertAlmostEqual(neighbours.share(2, 2, 1), 2 / 3)
        self.assertAlmostEqual(neighbours.share(8, 2, 2), 0.8)
        self.assertAlmostEqual(neighbours.share(1, 2, 1), 1)

    def test_a_collapse_is_less_than_half_of_the_share(self):
        self.assertTrue(neighbours.result([100, 100], [30, 34], 0.67)["collapsed"])
        self.assertFalse(neighbours.result([100, 100], [35, 35], 0.67)["collapsed"])
        self.assertAlmostEqual(neighbours.result([100, 50, 90], [45, 10, 60], 1.0)["ratio"], 0.5)

    def test_what_cannot_be_measured_says_why(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(
                neighbours, "quota_folders", lambda: [(os.path.join(folder, "none"), {"cpu.max": "{quota} {period}"})]):
            made, reason = neighbours.make_quota(0.5)
        self.assertIsNone(made)
        self.assertIn("No such file", reason)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            neighbours.show([{"name": "half a CPU", "left_out": reason}])
        self.assertIn("left out: half a CPU: ", out.getvalue())

    def test_a_quota_is_written_as_each_version_wants_it(self):
        for files, wanted in (({"cpu.max": "{quota} {period}"}, {"cpu.max": "50000 100000"}),
                              ({"cpu.cfs_period_us": "{period}", "cpu.cfs_quota_us": "{quota}"},
                               {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"})):
            with tempfile.TemporaryDirectory() as folder, mock.patch.object(neighbours, "quota_folders", lambda: [(folder, files)]):
                made, _ = neighbours.make_quota(0.5)
                found = {}
                for name in os.listdir(made):
                    with open(os.path.join(made, name), encoding="ascii") as file:
                        found[name] = file.read()
                self.assertEqual(found, wanted)


class Soaks(unittest.TestCase):
    def test_a_share_of_the_values(self):
        self.assertEqual([soak.percentile([4, 1, 3, 2], share) for share in (0, 0.5, 0.75, 0.99)], [1, 2, 3, 4])
        self.assertNotEqual(soak.percentile([], 0.5), soak.percentile([], 0.5))  # not a number

    def test_the_mix(self):
        self.assertEqual(soak.parse_mix("chat=6,vanish=3"), {"chat": 6, "vanish": 3})
        self.assertEqual(set(soak.parse_mix(soak.MIX)), set(soak.KINDS))
        for wrong in ("", "chat", "chat=-1", "nobody=1", "chat=1,"):
            self.assertRaisesRegex(engines.EngineError, "--mix: expected NAME=WEIGHT of chat, prompt,", soak.parse_mix, wrong)

    def test_a_reply_is_the_same_whole_and_in_pieces(self):
        logprobs = [{"token": token, "logprob": -0.5, "bytes": [1], "top_logprobs": []} for token in "ab"]
        usage = {"prompt_tokens": 3, "completion_tokens": 2}
        told = serving.Told()
        told.add({"choices": [{"index": 0, "message": {"content": "ab"}, "logprobs": {"content": logprobs}, "finish_reason": "stop"}], "usage": usage})
        streamed = serving.Told()
        for piece in ({"delta": {"role": "assistant", "content": ""}}, {"delta": {"content": "a"}, "logprobs": {"content": logprobs[:1]}},
                      {"delta": {"content": "b"}, "logprobs": {"content": logprobs[1:]}}, {"delta": {}, "finish_reason": "stop"}):
            streamed.add({"choices": [{"index": 0, "logprobs": None, "finish_reason": None, **piece}], "usage": None})
        streamed.add({"choices": [], "usage": usage})
        self.assertEqual(told.same(), streamed.same())
        self.assertEqual((told.same()[0], told.same()[3]), ({0: "ab"}, (3, 2)))
        self.assertEqual((len(streamed.times), len(streamed.gaps)), (2, 1))
        with self.assertRaisesRegex(serving.ServingError, "error: .*out of order"):
            told.add({"error": {"message": "out of order"}})

    def test_what_a_server_says_of_itself(self):
        text = '# HELP a_total x\na_total{kind="x"} 2\na_total{kind="y",le="+Inf"} 3.5\nb:c 4e+2\n'
        figures = serving.Figures(text)
        self.assertEqual((figures("a_total"), figures("a_total", 'kind="y"'), figures("b:c")), (5.5, 3.5, 400))
        self.assertRaisesRegex(serving.ServingError, "no c_total", figures, "c_total")

    def test_growth_is_a_failure(self):
        load = soak.Soak(None)
        soak.check_growth(load, 0, soak.GROWTH_BYTES)
        self.assertEqual(load.failures, [])
        soak.check_growth(load, 0, soak.GROWTH_BYTES + 1)
        self.assertEqual(load.failures, ["the memory grew by 24.0 MiB"])

    def test_a_short_one_from_end_to_end(self):
        done = run("soak.py", "smollm2", "--couplet", PROGRAM, "--seconds", "2", "--windows", "2", "--clients", "6", "--prompt-words", "100",
                   "--option=--context=256", "--json")
        told = json.loads(done.stdout)
        self.assertEqual((done.returncode, told["failures"], len(told["rows"])), (0, [], 2), done.stderr)
        self.assertGreater(told["rows"][0]["visits"], 5)


class Texts(unittest.TestCase):
    def test_pieces_join_to_the_text(self):
        for text in ("", "a", "line\n" * 10_000, "x" * 100_000, "ä€\n" * 9000):
            pieces = tokenize_bench.cut(text)
            self.assertEqual("".join(pieces), text)
            self.assertTrue(all(0 < len(piece) <= tokenize_bench.PIECE_BYTES for piece in pieces))
        self.assertTrue(all(piece.endswith("\n") for piece in tokenize_bench.cut("line\n" * 10_000)))
        self.assertNotIn("\0", "".join(tokenize_bench.cut("a\0b")))

    def test_every_python_has_texts(self):
        for text in (tokenize_bench.prose(), tokenize_bench.code()):
            self.assertGreater(len(text), 100_000)


class Program(unittest.TestCase):
    def refused(self, result, says):
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        self.assertRegex(result.stderr, rf"\A[^\n]*{says}[^\n]*\n\Z")

    def test_peers_that_are_missing_are_one_line_that_says_how_to_get_them(self):
        with tempfile.TemporaryDirectory() as folder:  # a Python without anything
            python = os.path.join(folder, "python")
            with open(python, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
            os.chmod(python, 0o755)
            for more, names in ((), "llama.cpp and no openvino"), (("--peers", "openvino"), "openvino"):
                self.refused(run("compare.py", "--couplet", PROGRAM, "--python", python, *more), f"has no {names}; to install: .*pip install")
        self.refused(run("compare.py", "--couplet", PROGRAM, "--peers", "vllm"), "--peers: expected of llama.cpp, openvino, got vllm")

    def test_a_program_that_is_missing(self):
        for script, more in (("compare.py", ("--peers", "none")), ("neighbours.py", ())):
            self.refused(run(script, "--couplet", "/nowhere/couplet", *more), "/nowhere/couplet: No such file.*make bench")
        self.refused(run("compare.py", "/nowhere.gguf", "--couplet", PROGRAM, "--peers", "none", "--json"), "/nowhere.gguf")

    def test_couplet_alone_from_end_to_end(self):
        done = run("compare.py", "smollm2", "--couplet", PROGRAM, "--peers", "none", "--threads", "1", "--prefill", "4", "--depth", "0",
                   "--decode", "2", "--rounds", "2", "--option=--precision=fine", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertTrue(told["machine"]["cpu"])
        self.assertIn("--precision=fine", told["runs"][0]["engines"]["couplet"]["settings"])
        rows = told["runs"][0]["rows"]
        self.assertEqual([(row["stage"], row["n"], len(row["rounds"]["couplet"])) for row in rows], [("prefill", 4, 2), ("decode", 0, 2)])
        self.assertTrue(all(row["tokens_per_s"]["couplet"] > 0 and row["peaks"]["read_bytes_per_s"] > 0 for row in rows))


PROGRAM = os.path.abspath(sys.argv.pop())
if not os.path.exists(os.path.join(MODELS, "smollm2.gguf")):
    sys.exit(f"FAILED: {MODELS} lacks smollm2: get it with `couplet pull smollm2`")
unittest.main()
