#!/usr/bin/env python3
"""score: probabilities, and the same hash whatever the schedule."""

import json
import math
import os
import subprocess
import sys

from program import DATA, DONE, FAILED, GEMMA, PROGRAM, SMOL, SOURCE, Case, environment, main

SUN = {SMOL: [504, 2388, 314, 1035], GEMMA: [2, 818, 3768, 563, 1401]}
LINES = {SMOL: [[504], SUN[SMOL], [(i * 7919 + 13) % 49152 for i in range(83)]],
         GEMMA: [[2], SUN[GEMMA], [2] + [(i * 7919 + 13) % 262144 for i in range(60)]]}
FLOATS = ("next_logprob", "top_logprobs", "want_logprobs")


def as_lines(lists, **more):
    return "".join(json.dumps({"ids": ids, **more}) + "\n" for ids in lists)


class Score(Case):
    def score(self, name, lines, *options, **env):
        return self.done("score", name, "-", "--json", *options, stdin=as_lines(lines), **env).json_lines()

    def test_the_answer(self):
        for name in (SMOL, GEMMA):
            ids = SUN[name]
            want = [[5, 6], [], [7], []] + [[]] * (len(ids) - 4)
            line = json.dumps({"ids": ids, "want": want})
            answer = self.done("score", name, "--json", "--top", "3", stdin=line).json()
            self.assertEqual(list(answer), ["ids", "next_logprob", "top_ids", "top_logprobs", "want_logprobs", "hash", "numerics",
                                            "precision", "cache_format", "kernels", "threads", "steps"])
            self.assertEqual(answer["ids"], ids)
            self.assertEqual(len(answer["next_logprob"]), len(ids) - 1)
            self.assertTrue(all(p < 0 for p in answer["next_logprob"]))
            self.assertEqual([len(x) for x in answer["top_ids"]], [3] * len(ids))
            self.assertEqual([len(x) for x in answer["want_logprobs"]], [len(w) for w in want])
            self.assertRegex(answer["hash"], r"\A[0-9a-f]{32}\Z")
            self.assertEqual((answer["precision"], answer["steps"]), ("fast", [[len(ids), 0]]))
            self.assertGreaterEqual(answer["numerics"], 1)
            for best in answer["top_logprobs"]:
                self.assertEqual(best, sorted(best, reverse=True))
            plain = self.done("score", name, "--json", stdin=json.dumps({"ids": ids})).json()
            self.assertNotIn("top_ids", plain)
            self.assertNotIn("want_logprobs", plain)
            self.assertEqual(plain["hash"], answer["hash"])

    def test_probabilities_sum_to_one(self):
        answer = self.done("score", SMOL, "--json", "--top", "49152", stdin=as_lines([[504, 2388]])).json()
        for best in answer["top_logprobs"]:
            self.assertEqual(len(best), 49152)
            self.assertAlmostEqual(sum(math.exp(p) for p in best), 1, places=9)
        self.assertEqual(sorted(answer["top_ids"][0]), list(range(49152)))

    def test_text_is_scored_as_its_tokens(self):
        for name, text in ((SMOL, "The sun is very"), (GEMMA, "The sun is very")):
            by_text = self.done("score", name, "--json", stdin=json.dumps({"text": text})).json()
            by_ids = self.score(name, [by_text["ids"]])[0]
            self.assertEqual(by_text, by_ids)
        self.assertEqual(by_text["ids"][0], 2)

    def test_no_schedule_changes_a_hash(self):
        for name, lines in LINES.items():
            expected = self.score(name, lines)
            longest = len(lines[-1])
            schedules = [["--threads", "1"], ["--threads", "2"], ["--threads", "3"], ["--chunk", "1"], ["--chunk", "7"],
                         ["--chunk", "64"], ["--decode-from", "1"], ["--decode-from", str(longest // 2)], ["--parallel", "3"],
                         ["--cold"], ["--parallel", "3", "--chunk", "5", "--decode-from", "9", "--threads", "1", "--cold"]]
            for options in schedules:
                for one, other in zip(expected, self.score(name, lines, *options), strict=True):
                    self.assertEqual(one["hash"], other["hash"], (name, options))
                    for key in FLOATS[:1]:
                        self.assertEqual(one[key], other[key])

    def test_no_instruction_set_changes_a_hash(self):
        for name, lines in LINES.items():
            expected = [a["hash"] for a in self.score(name, lines[:2])]
            seen = set()
            for level in ("reference", "avx2", "avx2_vnni", "avx512", "amx"):
                line = as_lines(lines[:2])
                process = subprocess.run([PROGRAM, "score", name, "--json"], input=line.encode(), capture_output=True,
                                         check=False, env=environment(COUPLET_KERNELS=level))
                if process.returncode != DONE:  # only for want of the instructions
                    self.one_line(process.stderr.decode())
                    self.assertIn(level, process.stderr.decode())
                    continue
                answers = [json.loads(x) for x in process.stdout.splitlines()]
                self.assertEqual([a["hash"] for a in answers], expected, (name, level))
                seen.update(a["kernels"] for a in answers)
            self.assertIn("reference", seen)

    def test_steps_show_the_schedule(self):
        ids = LINES[SMOL][-1][:20]
        steps = lambda *options: self.score(SMOL, [ids], *options)[0]["steps"]  # noqa: E731
        self.assertEqual(steps(), [[20, 0]])
        self.assertEqual(steps("--chunk", "7"), [[7, 0], [7, 0], [6, 0]])
        self.assertEqual(steps("--decode-from", "15"), [[15, 0]] + [[0, 1]] * 5)
        self.assertEqual(steps("--decode-from", "1"), [[1, 0]] + [[0, 1]] * 19)
        self.assertEqual(steps("--decode-from", "20"), [[20, 0]])
        self.assertEqual(steps("--decode-from", "99"), [[20, 0]])
        self.assertEqual(steps("--decode-from", "10", "--chunk", "4"), [[4, 0], [4, 0], [2, 0]] + [[0, 1]] * 10)
        together = self.score(SMOL, [ids, ids[:4]], "--parallel", "2")
        self.assertEqual([a["steps"] for a in together], [[[24, 0]], [[24, 0]]])
        # The first decode step beside a waiting prompt goes alone, to be measured; those behind it take prompt rows along.
        mixed = self.score(SMOL, [ids[:14], ids], "--parallel", "2", "--chunk", "6", "--decode-from", "5")
        self.assertTrue(any(p > 0 and d > 0 for a in mixed for p, d in a["steps"]))

    def test_fine_and_fast_are_two_functions(self):
        fast, fine = (self.score(SMOL, [SUN[SMOL]], "--precision", p)[0] for p in ("fast", "fine"))
        self.assertNotEqual(fast["hash"], fine["hash"])
        self.assertEqual(fine["precision"], "fine")
        for a, b in zip(fast["next_logprob"], fine["next_logprob"], strict=True):
            self.assertAlmostEqual(a, b, delta=0.5)

    def test_a_greedy_reply_scores_as_the_best(self):
        reply = self.done("run", SMOL, "The sun is very", "--raw", "--temperature", "0", "--max-tokens", "12", "--json",
                          "--logprobs", "0").json()
        chosen = [t["id"] for t in reply["tokens"]]
        answer = self.score(SMOL, [SUN[SMOL] + chosen], "--top", "1")[0]
        self.assertEqual([best[0] for best in answer["top_ids"][3:-1]], chosen)

    def test_a_table_and_the_perplexity(self):
        result = self.done("score", SMOL, stdin=as_lines([SUN[SMOL]]))
        answer = self.score(SMOL, [SUN[SMOL]])[0]
        perplexity = math.exp(-sum(answer["next_logprob"]) / 3)
        self.assertIn(f"perplexity {perplexity:.4f} over 3 tokens", result.out)
        self.assertIn(answer["hash"], result.out)
        self.assertIn('" very"', result.out)

    def test_bad_lines(self):
        for bad in ("-1", "49152", "1.5", "null", "2147483647"):
            result = self.refused(FAILED, "score", SMOL, "--json", stdin='{"ids": [504]}\n{"ids": [504, 7, %s]}\n' % bad,
                                  says=r"line 2: ids\[2\]: expected a token id from 0 to 49151")
            self.assertEqual(len(result.json_lines()), 1)
        for bad in ('{"ids": []}', '{"text": ""}', "{}", "[1]", "x", '{"ids": [1], "want": [[1], [2]]}', '{"ids": [1], "want": [[-1]]}',
                    '{"ids": [1], "text": "a"}', "[" * 1_000_000):
            self.refused(FAILED, "score", SMOL, "--json", "--parallel", "4", stdin=bad, says="line 1: ")

    def test_a_line_longer_than_the_context_is_refused_with_both_numbers(self):
        self.refused(FAILED, "score", SMOL, "--context", "32", stdin=as_lines([[1] * 33]), says="line 1: .*32.*33")
        self.done("score", SMOL, "--context", "32", stdin=as_lines([[1] * 32]))

    def test_accuracy_against_float32(self):
        limits = {SMOL: (0.8 * 0.00241, 0.0127, 0.966), GEMMA: (0.5 * 0.00401, 0.0221, 0.963)}
        for name, (mean, p99, _) in limits.items():
            golden = os.path.join(DATA, f"logits.{name}.jsonl")
            tool = os.path.join(SOURCE, "tools", "accuracy.py")
            for precision in ("fast", "fine"):
                done = subprocess.run([sys.executable, tool, golden, "--", PROGRAM, "score", name, "-", "--json", "--precision",
                                       precision], capture_output=True, check=True, env=environment())
                figures = json.loads(done.stdout)
                self.assertGreater(figures["positions"], 1000)
                if precision == "fast":
                    self.assertLessEqual(figures["kl_mean"], mean, figures)
                    self.assertLessEqual(figures["kl_p99"], p99, figures)
                else:
                    self.assertLessEqual(figures["kl_mean"], 0.00002, figures)
                    self.assertGreaterEqual(figures["top1"], 0.998, figures)


if __name__ == "__main__":
    main()
