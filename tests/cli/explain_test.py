#!/usr/bin/env python3
"""explain: every part is there, by form, in a pipe and on terminals; and what it says fits together."""

import re
import unicodedata

from program import DONE, GEMMA, SMOL, Case, couplet, main
from terminal import Terminal

EMAIL = "Reply politely to this email: “Can we meet tomorrow?”"
GREEDY = ("--temperature", "0")
ESCAPE = "\x1b"


def width(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


class Explain(Case):
    def test_all_parts_in_their_order(self):
        text = self.done("explain", SMOL, EMAIL, *GREEDY).out
        places = [re.search(part, text, re.M) for part in (
            r"^PROMPT    43 tokens: 13 are yours, 30 come from the chat template$",
            r"^ +Rep\|ly\|",
            r"^PREFILL   43 positions in one pass, each seeing those before it +[\d.]+ ms$",
            r"weights read once \(\d+ MB\), [\d.]+ [GM] operations, [\d.]+ a byte:$",
            r"^ +bound by (arithmetic|memory)$",
            r"every one of 49,152 tokens gets a probability",
            r"\d+\.\d %  #+$",
            r"\(49,147 others\) +[\d.]+ % +entropy [\d.]+ bits",
            r"chosen: .* first token after [\d.]+ ms",
            r"^DECODE    one token a pass, each fed back$",
            r"^ +step  in +out +p +others, % +ms  reply so far$",
            r"^ +1  ",
            r"stopped: the model ended its turn after \d+ tokens",
            r"^ +prefill +decode$",
            r"^what is known",
            r"^tokens / passes +43 / 1 +\d+ / \d+$",
            r"^time ",
            r"^tokens a second",
            r"^weights read +(\d+) MB for 43 tokens +(\d+) MB for each token$",
            r"^operations a byte",
            r"^bound by +(arithmetic|memory) \(\d+ % of it\) +(arithmetic|memory) \(\d+ % of it\)$",
            r"op/byte$")]
        for number, place in enumerate(places):
            self.assertIsNotNone(place, f"part {number} is missing from:\n{text}")
        self.assertEqual([p.start() for p in places], sorted(p.start() for p in places))

    def test_it_fits_in_a_pipe_and_has_no_escapes(self):
        for arguments in ((SMOL, EMAIL, *GREEDY), (SMOL, "日本語で短く答えて。😊\n\ttabs", "--seed", "1", "--max-tokens", "40"),
                          (GEMMA, "The sun is very", "--raw", *GREEDY, "--max-tokens", "5")):
            for env in ({}, {"NO_COLOR": "1"}):
                text = self.done("explain", *arguments, **env).out
                self.assertNotIn(ESCAPE, text)
                for line in text.splitlines():
                    self.assertLessEqual(width(line), 80, line)

    def test_on_a_terminal(self):
        for columns, env in ((80, {}), (60, {}), (20, {}), (120, {}), (80, {"NO_COLOR": "1"}), (80, {"TERM": "dumb"})):
            terminal = Terminal("explain", SMOL, EMAIL, *GREEDY, "--max-tokens", "8", columns=columns, **env)
            self.assertEqual(terminal.status(), DONE)
            self.assertEqual(ESCAPE in terminal.raw.decode(), not env)
            for line in terminal.text().splitlines():
                if columns >= 80:
                    self.assertLessEqual(width(line), columns, line)

    def test_a_long_reply_leaves_out_its_middle(self):
        text = self.done("explain", SMOL, "The sun is very", "--raw", *GREEDY, "--ignore-eos", "--max-tokens", "61").out
        rows = [int(n) for n in re.findall(r"^ +(\d+)  .* % ", text, re.M)]
        left_out = int(re.search(r"^ +\.\.\.  (\d+) steps left out here$", text, re.M).group(1))
        self.assertEqual(len(rows) + left_out, 60)
        self.assertEqual((rows[0], rows[-1]), (1, 60))
        short = self.done("explain", SMOL, "The sun is very", "--raw", *GREEDY, "--ignore-eos", "--max-tokens", "30").out
        self.assertNotIn("left out", short)

    def test_why_it_stopped(self):
        for options, reason in ((("--max-tokens", "3"), "the token limit was reached after 3 tokens"),
                                (("--context", "16", "--ignore-eos"), "the context is full after 12 tokens"),
                                (("--stop", " ", "--max-tokens", "50"), "a stop text was reached")):
            self.assertIn(reason, self.done("explain", SMOL, "The sun is very", "--raw", *GREEDY, *options).out)

    def test_no_or_one_token(self):
        text = self.done("explain", SMOL, "hi", "--max-tokens", "0").out
        self.assertIn("no token was asked for", text)
        self.assertNotIn("DECODE", text)
        text = self.done("explain", SMOL, "hi", *GREEDY, "--max-tokens", "1").out
        self.assertIn("chosen:", text)
        self.assertNotIn("DECODE", text)
        self.assertIn("after 1 token\n", text)

    def test_drawing_is_explained(self):
        text = self.done("explain", SMOL, "The sun is very", "--raw", "--seed", "5", "--max-tokens", "2").out
        self.assertRegex(text, r"drawn from \d+ candidate")
        self.assertRegex(text, r"at temperature 0\.8, top-p 0\.95, seed 5")

    def test_the_data(self):
        data = self.done("explain", SMOL, EMAIL, *GREEDY, "--json", "--alternatives", "7").json()
        prefill, decode = data["prefill"], data["decode"]
        self.assertEqual((prefill["tokens"], prefill["passes"]), (43, 1))
        self.assertEqual(decode["tokens"], decode["passes"])
        self.assertEqual(len(decode["steps"]), decode["passes"])
        self.assertEqual(decode["passes"], data["completion_tokens"])  # the end token is one more, prefill's one less
        self.assertEqual(len(prefill["choice"]["top"]), 7)
        self.assertEqual(decode["steps"][0]["in"], prefill["choice"]["id"])
        for before, after in zip(decode["steps"], decode["steps"][1:]):
            self.assertEqual(after["in"], before["choice"]["id"])
        first = self.done("tokenize", SMOL, "--detokenize", str(prefill["choice"]["id"]), "--json").json()["text"]
        self.assertEqual(data["text"], first + "".join(s["text"] for s in decode["steps"]))
        self.assertEqual(data["stop"], "end_of_turn")
        self.assertGreater(prefill["operations_per_byte"], decode["operations_per_byte"])
        self.assertAlmostEqual(sum(s["ms"] for s in decode["steps"]), decode["ms"], places=6)
        each = decode["weights_bytes"] / decode["passes"]  # but for the embedding rows, the same in every pass
        self.assertAlmostEqual(each / prefill["weights_bytes"], 1, delta=0.01)
        text = self.done("run", SMOL, EMAIL, *GREEDY).out
        self.assertEqual(text, data["text"] + "\n")

    def test_every_figure_is_of_this_run(self):
        one, other = (self.done("explain", SMOL, "hi", *GREEDY, "--max-tokens", "4", "--json").json() for _ in range(2))
        self.assertNotEqual(one["prefill"]["ms"], other["prefill"]["ms"])
        self.assertNotEqual(one["machine"]["read_bytes_per_s"], other["machine"]["read_bytes_per_s"])

    def test_a_long_prompt_takes_several_passes(self):
        result = couplet("explain", SMOL, "--raw", *GREEDY, "--max-tokens", "2", stdin="one two three four five six seven eight nine ten " * 59 + "one two three four five six seven eight nine ten")
        self.assertEqual(result.status, DONE, result.err)
        self.assertRegex(result.out, r"PREFILL   600 positions in 2 passes")
        self.assertRegex(result.out, r"weights read 2 times")
        self.assertRegex(result.out, r"(?m)^ +\.\.\. \d+ more$")


if __name__ == "__main__":
    main()
