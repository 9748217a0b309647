#!/usr/bin/env python3
"""run: the reply, how it grows, why it stops, and how it is interrupted."""

import re
import signal
import time

from program import (DONE, FAILED, GEMMA, INTERRUPTED, SMOL, WRONG_USE, Case, couplet, main, start)

EMAIL = "Reply politely to this email: “Can we meet tomorrow?”"
GREEDY = ("--temperature", "0")


class Run(Case):
    def reply(self, *arguments):
        return self.done("run", SMOL, *arguments, "--json").json()

    def test_the_two_prompts_of_the_mission(self):
        result = self.done("run", SMOL, EMAIL, *GREEDY)
        self.assertGreater(len(result.out), 20)
        self.assertTrue(result.out.endswith("\n"))
        self.assertNotIn("<|im_end|>", result.out)
        for figure in ("ttft_ms", "prefill_tokens_per_s", "tpot_ms", "decode_tokens_per_s"):
            self.assertRegex(result.err, figure + r" \d")
        answer = self.reply(EMAIL, *GREEDY)
        self.assertEqual(answer["stop"], "end_of_turn")
        self.assertEqual(answer["text"] + "\n", result.out)
        sun = self.done("run", GEMMA, "The sun is very", "--raw", *GREEDY, "--max-tokens", "1", "--logprobs", "8", "--json").json()
        best = [t["text"] for t in sun["tokens"][0]["top"]]
        for word in (" hot", " bright", " warm"):
            self.assertIn(word, best)

    def test_a_model_without_a_template_completes_raw_and_says_so(self):
        with_note = self.done("run", GEMMA, "The sun is very", *GREEDY, "--max-tokens", "4")
        self.assertIn("no chat template", with_note.err)
        raw = self.done("run", GEMMA, "The sun is very", "--raw", *GREEDY, "--max-tokens", "4")
        self.assertNotIn("no chat template", raw.err)
        self.assertEqual(with_note.out, raw.out)
        self.refused(WRONG_USE, "run", GEMMA, "hi", "--raw", "--system", "x", says="--system")

    def test_standard_input_is_a_prompt_too(self):
        expected = self.done("run", SMOL, "The sun is very", "--raw", *GREEDY, "--max-tokens", "5").out
        for arguments in ([], ["-"]):
            for text in ("The sun is very", "The sun is very\n"):
                self.assertEqual(self.done("run", SMOL, *arguments, "--raw", *GREEDY, "--max-tokens", "5", stdin=text).out, expected)

    def test_a_system_prompt_counts(self):
        plain, told = (self.reply("hi", *GREEDY, "--max-tokens", "1", *more) for more in ((), ("--system", "You are a very terse pirate.")))
        self.assertNotEqual(plain["prompt_tokens"], told["prompt_tokens"])

    def test_steps_show_the_reply_growing(self):
        rows = self.done("run", SMOL, EMAIL, *GREEDY, "--steps", "--max-tokens", "12").lines()
        self.assertEqual(len(rows), 12)
        for before, after in zip(rows, rows[1:]):
            self.assertTrue(after.startswith(before), (before, after))
        self.assertEqual(len(set(rows)), 12)
        text = self.done("run", SMOL, EMAIL, *GREEDY, "--max-tokens", "12").out
        self.assertEqual(rows[-1], text[:-1].replace("\n", "\\n"))

    def test_numbers_are_the_shortest(self):
        text = self.done("run", SMOL, "hi", "--temperature", "0.8", "--max-tokens", "1", "--json").out
        self.assertIn('"temperature":0.8,', text)
        answer = self.reply("hi", *GREEDY, "--max-tokens", "0")
        self.assertIsNone(answer["figures"]["ttft_ms"])
        sure = self.done("run", SMOL, "hi", *GREEDY, "--logit-bias", "5=100000", "--max-tokens", "1", "--logprobs", "1", "--json").out
        self.assertNotIn("-0.0,", sure)

    def test_options_that_would_do_nothing(self):
        self.refused(WRONG_USE, "run", SMOL, "hi", "--json", "--steps", says="--steps")
        self.refused(WRONG_USE, "run", SMOL, "hi", "--quiet", "--logprobs", "1", says="--logprobs")

    def test_limits_are_exact(self):
        for limit in (0, 1, 2, 7):
            answer = self.reply("The sun is very", "--raw", *GREEDY, "--max-tokens", str(limit), "--ignore-eos", "--logprobs", "0")
            self.assertEqual((answer["completion_tokens"], answer["stop"], len(answer["tokens"])), (limit, "max_tokens", limit))
        self.assertEqual(self.reply("x", "--raw", *GREEDY, "--max-tokens", "0")["text"], "")

    def test_the_context_is_the_last_limit(self):
        answer = self.reply("The sun is very", "--raw", *GREEDY, "--context", "64", "--ignore-eos")
        self.assertEqual((answer["stop"], answer["prompt_tokens"] + answer["completion_tokens"]), ("context_full", 64))
        self.refused(FAILED, "run", SMOL, "word " * 100, "--raw", "--context", "64", says="64.*101")

    def test_stop_texts(self):
        whole = self.reply("The sun is very", "--raw", *GREEDY, "--max-tokens", "24")["text"]
        for stop in (whole[9:14], whole[7:8], whole[3:20]):
            answer = self.reply("The sun is very", "--raw", *GREEDY, "--max-tokens", "24", "--stop", "never", "--stop", stop)
            self.assertEqual((answer["stop"], answer["text"]), ("stop_text", whole[:whole.index(stop)]))
            streamed = self.done("run", SMOL, "The sun is very", "--raw", *GREEDY, "--max-tokens", "24", "--stop", stop)
            self.assertEqual(streamed.out, answer["text"] + "\n")

    def test_seeds(self):
        def text(*seed):
            return self.reply("The sun is very", "--raw", "--temperature", "1", "--max-tokens", "16", *seed)
        self.assertEqual(text("--seed", "42")["text"], text("--seed", "42")["text"])
        self.assertNotEqual(text("--seed", "42")["text"], text("--seed", "43")["text"])
        self.assertNotEqual(text()["seed"], text()["seed"])
        drawn = self.done("run", SMOL, "The sun is very", "--raw", "--max-tokens", "16")
        seed = re.search(r"^seed (\d+)$", drawn.err, re.M).group(1)
        again = self.done("run", SMOL, "The sun is very", "--raw", "--max-tokens", "16", "--seed", seed, "--threads", "1")
        self.assertEqual(again.out, drawn.out)
        self.assertNotIn("seed", again.err)

    def test_greedy_is_greedy_whatever_else_is_set(self):
        expected = self.reply("The sun is very", "--raw", *GREEDY, "--max-tokens", "8")["text"]
        for odd in (["--top-k", "1000000000"], ["--top-p", "0.01"], ["--min-p", "1"], ["--seed", "7"]):
            self.assertEqual(self.reply("The sun is very", "--raw", *GREEDY, "--max-tokens", "8", *odd)["text"], expected)
        self.assertEqual(self.reply("The sun is very", "--raw", "--temperature", "1e-40", "--max-tokens", "8")["text"], expected)

    def test_logit_bias(self):
        plain = self.reply("The sun is very", "--raw", *GREEDY, "--max-tokens", "1", "--logprobs", "0")
        best = plain["tokens"][0]["id"]
        banned = self.reply("The sun is very", "--raw", *GREEDY, "--max-tokens", "1", "--logprobs", "0", "--logit-bias", f"{best}=-1000")
        self.assertNotEqual(banned["tokens"][0]["id"], best)
        self.refused(WRONG_USE, "run", SMOL, "x", "--logit-bias", "49152=1", says="--logit-bias.*49151")

    def test_logprobs(self):
        result = self.done("run", SMOL, "The sun is very", "--raw", *GREEDY, "--max-tokens", "3", "--logprobs", "2")
        plain = self.done("run", SMOL, "The sun is very", "--raw", *GREEDY, "--max-tokens", "3")
        self.assertEqual(result.out, plain.out)
        self.assertGreater(len(result.err.splitlines()), len(plain.err.splitlines()) + 2)
        tokens = self.reply("The sun is very", "--raw", *GREEDY, "--max-tokens", "3", "--logprobs", "2")["tokens"]
        self.assertEqual([len(t["top"]) for t in tokens], [2, 2, 2])
        for token in tokens:
            self.assertEqual(token["top"][0]["id"], token["id"])
            self.assertAlmostEqual(token["top"][0]["logprob"], token["logprob"], places=5)
            self.assertEqual(bytes(token["bytes"]).decode(), token["text"])

    def test_a_character_in_three_tokens_comes_whole(self):
        bias = [x for i in (10813, 242, 228) for x in ("--logit-bias", f"{i}=1000")]
        rows = self.done("run", SMOL, "smile", "--raw", *GREEDY, *bias, "--max-tokens", "9", "--steps").bytes
        rows.decode("utf-8")  # whole characters, each time

    def test_odd_prompts_are_only_prompts(self):
        for prompt in ("[1, 2]", "a\tb\\n", "--", "😀" * 5, "\x1b[31m", "a" * 2000):
            result = couplet("run", SMOL, *GREEDY, "--max-tokens", "2", "--", prompt)
            self.assertEqual(result.status, DONE, result.err)


class Interrupt(Case):
    def test_ctrl_c_stops_with_130_and_keeps_what_is_there(self):
        process = start(["run", SMOL, "Tell me a story.", "--raw", *GREEDY, "--ignore-eos"])
        first = process.stdout.read(20)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED)
        self.assertEqual(len(first), 20)
        self.assertTrue((first + out).decode("utf-8").endswith("\n"))
        self.assertIn("interrupted", err.decode())

    def test_ctrl_c_while_reading_input(self):
        process = start(["run", SMOL])
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        process.wait(60)
        self.assertEqual(process.returncode, INTERRUPTED)
        process.communicate()

    def test_a_reader_that_leaves_ends_it_quietly(self):
        process = start(["run", SMOL, "Tell me a story.", "--raw", *GREEDY, "--ignore-eos", "--quiet"])
        process.stdin.close()
        process.stdout.read(10)
        process.stdout.close()
        self.assertEqual(process.wait(60), DONE)
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()


if __name__ == "__main__":
    main()
