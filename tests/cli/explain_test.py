#!/usr/bin/env python3
"""explain: every part is there, by form, in a pipe and on terminals; and what it says fits together."""

import collections
import html.parser
import os
import re
import signal
import tempfile
import time
import unicodedata

from program import DONE, GEMMA, INTERRUPTED, SMOL, Case, couplet, main, start
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
            r"^a token came after +[\d.]+ ms, the first +[\d.]+ ms each, the others$",
            r"^tokens a second",
            r"^weights read +(\d+) MB for 43 tokens +(\d+) MB for each token$",
            r"^operations a byte",
            r"^the cache saved +0 of 43 positions +[\d,]+ positions run again$",
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
                if columns >= 40:
                    self.assertLessEqual(width(line), columns, line)

    def test_narrow_terminals(self):
        for columns in (40, 47, 60, 64, 72):
            terminal = Terminal("explain", SMOL, EMAIL, "--seed", "3", "--max-tokens", "12", "--logit-bias", "33=2",
                                columns=columns, NO_COLOR="1")
            self.assertEqual(terminal.status(), DONE)
            for line in terminal.text().splitlines():
                self.assertLessEqual(width(line), columns, line)
                self.assertEqual(line, line.rstrip(" "), repr(line))

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

    def test_only_the_users_own_tokens_are_marked(self):
        for text in ("a", "ass", "assistant", "system", "user", "You are", "<|im_start|>", "  assistant\n", "user\nuser", "z q"):
            prompt = self.done("explain", SMOL, text, "--max-tokens", "0", "--json").json()["prompt"]
            own = [n for n, token in enumerate(prompt) if token["own"]]
            self.assertIn("".join(prompt[n]["text"] for n in own).strip(), (text.strip(),), text)
            self.assertEqual(own, list(range(own[0], own[-1] + 1)))
            self.assertEqual("".join(t["text"] for t in prompt[own[-1] + 1:]), "<|im_end|>\n<|im_start|>assistant\n")
        for text in ("\n", "\t"):  # one token may hold the template's newline too
            prompt = self.done("explain", SMOL, text, "--max-tokens", "0", "--json").json()["prompt"]
            self.assertIn("".join(t["text"] for t in prompt if t["own"]), (text, "\n" + text))
        prompt = self.done("explain", GEMMA, "model", "--max-tokens", "0", "--json").json()["prompt"]
        self.assertEqual([t["text"] for t in prompt if t["own"]], ["model"])
        self.assertIn("2 tokens: 1 is yours, 1 marks", self.done("explain", GEMMA, "model", "--raw", "--max-tokens", "0").out)

    def test_a_full_context_is_said(self):
        size = len(self.done("explain", SMOL, "hi", "--max-tokens", "0", "--json").json()["prompt"])
        text = self.done("explain", SMOL, "hi", "--context", str(size), *GREEDY).out
        self.assertIn("no token: the context is full", text)
        self.assertNotIn("asked for", text)
        self.refused(1, "explain", SMOL, "hi", "--context", str(size - 1))
        self.assertEqual(couplet("explain", SMOL, "hi", "--context", str(size - 1)).out, "")

    def test_what_shapes_a_choice_is_named(self):
        arguments = ("explain", SMOL, "hi", *GREEDY, "--max-tokens", "2", "--logit-bias", "31234=100")
        text = self.done(*arguments).out
        self.assertIn(", the best one after bias", text)
        self.assertIn("after a bias on 1 token", text)
        self.assertRegex(text, r"(?m)^ +1  .* <0\.1 % ")
        self.assertNotRegex(text, r"(?m)^ +1  .* 0 % ")
        text = self.done(*arguments, "--repetition-penalty", "1.5").out
        self.assertIn(", the best one after bias and penalties", text)
        self.assertIn("repetition penalty 1.5", text)
        sampling = self.done(*arguments, "--presence-penalty", "0.5", "--json").json()["sampling"]
        self.assertEqual(sampling["logit_bias"], {"31234": 100})
        self.assertEqual([sampling[k + "_penalty"] for k in ("repetition", "presence", "frequency")], [1, 0.5, 0])

    def test_an_interrupted_run_keeps_its_prefill(self):
        process = start(("explain", SMOL, "hi", *GREEDY, "--ignore-eos"))
        seen = line = process.stdout.readline()
        while line and not line.startswith(b"      3  "):
            line = process.stdout.readline()
            seen += line
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=100)
        out = (seen + out).decode()
        self.assertEqual(process.returncode, INTERRUPTED)
        self.assertEqual(out.count("PREFILL"), 1)
        self.assertEqual(out.count("chosen:"), 1)
        self.assertIn("stopped: it was interrupted", out)

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

    def test_the_ledger(self):
        data = self.done("explain", SMOL, "Say 😀", *GREEDY, "--json", "--max-tokens", "6").json()
        ledger = data["ledger"]
        self.assertEqual(data["format"], 1)
        self.assertEqual(len(ledger), data["prefill"]["passes"] + data["decode"]["passes"])
        for stage in ("prefill", "decode"):
            own = [entry for entry in ledger if entry["stage"] == stage]
            self.assertEqual(sum(e["rows"] for e in own), data[stage]["tokens"])
            self.assertEqual(sum(e["weights_bytes"] for e in own), data[stage]["weights_bytes"])
            self.assertEqual(sum(e["cache_read_bytes"] + e["cache_write_bytes"] for e in own), data[stage]["cache_bytes"])
            self.assertEqual(sum(e["integer_operations"] + e["float_operations"] for e in own),
                             data[stage]["matmul_operations"] + data[stage]["attention_operations"])
            self.assertAlmostEqual(sum(e["whole_step"]["ms"] for e in own), data[stage]["ms"], places=6)
        self.assertEqual("".join(e.get("text", "") for e in ledger), data["text"])
        self.assertEqual([e["choice"]["how"] for e in ledger], ["greedy"] * len(ledger))
        position = len(data["prompt"])
        for entry in ledger[1:]:
            self.assertEqual(entry["first_position"], position)
            position += 1

    def test_the_draw_and_characters_of_several_tokens(self):
        # The reply begins with an emoji of several tokens, which the ids force on it.
        ids = [t["id"] for t in self.done("tokenize", SMOL, "🦄", "--json").json_lines()]
        self.assertGreater(len(ids), 1)
        data = self.done("explain", SMOL, "hi", "--seed", "5", "--max-tokens", str(len(ids) + 1), "--json", "--choose",
                         stdin="".join(f"#{i}\n" for i in ids)).json()
        chosen = [e["choice"] for e in data["ledger"]]
        self.assertEqual([c["id"] for c in chosen[:-1]], ids)
        self.assertEqual([c["how"] for c in chosen], ["forced"] * len(ids) + ["drawn"])
        self.assertEqual([c["text_tokens"] for c in chosen[:len(ids)]], [0] * (len(ids) - 1) + [len(ids)])
        self.assertTrue(0 <= chosen[-1]["draw"] < 1)
        self.assertTrue(data["text"].startswith("🦄"))

    def test_choosing_from_a_pipe(self):
        arguments = ("explain", SMOL, "The sun is very", "--raw", *GREEDY, "--max-tokens", "4", "--choose")
        plain = self.done(*arguments[:-1], "--json").json()
        none = self.done(*arguments, "--json").json()  # no line at all: the engine's own
        self.assertEqual(none["text"], plain["text"])
        second = plain["prefill"]["choice"]["top"][1]
        text = self.done(*arguments, stdin="2\n\n").out
        self.assertIn('chosen: "' + second["text"] + '", your choice', text)
        self.assertRegex(text, r"FIRST     1: .* %   2: ")
        self.assertRegex(text, r"STEP 1    1: ")
        self.assertEqual(text.count("which?"), 3)  # two answers, and the end of the input
        data = self.done(*arguments, "--json", stdin="2\n\n").json()
        self.assertEqual(data["prefill"]["choice"]["id"], second["id"])
        what_if = self.done(*arguments[:-1], "--json", "--what-if", f"0={second['id']}").json()["what_if"]
        self.assertEqual(what_if["text"], data["text"])
        for line, number in (("9\n", 1), ("\n#99999999\n", 2), ("one\n", 1)):
            result = couplet(*arguments, stdin=line)
            self.assertEqual(result.status, 2)
            self.assertRegex(result.err, rf"line {number}: expected a number from 1 to 5, #ID with a token id from 0 to 49151")
        self.refused(2, "explain", SMOL, "--choose", stdin="hi", says="expected PROMPT as an argument")

    def test_choosing_on_a_terminal(self):
        for columns in (80, 40):
            terminal = Terminal("explain", SMOL, "The sun is very", "--raw", *GREEDY, "--max-tokens", "4", "--choose",
                                columns=columns, NO_COLOR="1")
            place = terminal.wait_for(r"which\? \(Enter: [^\n]*\) ")
            terminal.send("x\n")
            place = terminal.wait_for(r"expected a number", place)
            place = terminal.wait_for(r"which\? \(Enter: ", place)
            terminal.send("2\n")
            place = terminal.wait_for(r"your choice", place)
            place = terminal.wait_for(r"which\? \(Enter: ", place)
            terminal.send("\n")
            place = terminal.wait_for(r"which\? \(Enter: ", place)
            terminal.send("\x04")  # the engine goes on alone
            terminal.wait_for(r"stopped: the token limit was\s+reached\s+after 4 tokens", place)
            self.assertEqual(terminal.status(), DONE)
            for line in terminal.text().splitlines():
                if "expected" not in line:
                    self.assertLessEqual(width(line), columns, line)
        terminal = Terminal("explain", SMOL, "hi", "--choose", NO_COLOR="1")
        terminal.wait_for(r"which\? ")
        terminal.send("\x03")
        terminal.wait_for("stopped: it was interrupted")
        self.assertEqual(terminal.status(), INTERRUPTED)
        self.assertEqual(Terminal("explain", SMOL, "hi", "--choose", "--json").status(), 2)

    def test_the_users_time_is_not_the_engines(self):
        terminal = Terminal("explain", SMOL, "hi", *GREEDY, "--max-tokens", "2", "--choose", NO_COLOR="1")
        terminal.wait_for(r"which\? ")
        time.sleep(3)
        terminal.send("\n")
        terminal.wait_for(r"STEP 1 ")
        terminal.send("\n")
        terminal.wait_for("op/byte")
        terminal.status()
        self.assertRegex(terminal.text(), r"first token after (\d+\.\d|[12]?\d\d\d) ms")

    def test_what_if(self):
        arguments = ("explain", SMOL, EMAIL, *GREEDY, "--max-tokens", "12")
        data = self.done(*arguments, "--json").json()
        other = data["ledger"][3]["choice"]["top"][1]
        text = self.done(*arguments, "--what-if", f"3={other['id']}").out
        self.assertRegex(text, rf"WHAT IF   step 3 had taken \"{re.escape(other['text'])}\" \({other['id']}, [\d.<]+ %\) instead of")
        flat = re.sub(r"\s+", " ", text)
        self.assertRegex(flat, r"the cache still had 32 of 43 prompt positions: [\d.]+ [GM] operations less")
        again = self.done(*arguments, "--what-if", f"3={other['id']}", "--json").json()
        what_if = again["what_if"]
        self.assertEqual((what_if["step"], what_if["id"], what_if["instead_of"]), (3, other["id"], data["ledger"][3]["choice"]["id"]))
        self.assertEqual(what_if["prefill"]["cached_tokens"], 32)
        self.assertEqual(what_if["prefill"]["tokens"], 43 - 32)
        ids = [e["choice"]["id"] for e in what_if["ledger"]]
        self.assertEqual(ids[:4], [e["choice"]["id"] for e in data["ledger"]][:3] + [other["id"]])
        # The replay is the same function: the same probabilities up to where it parts.
        for before, after in zip(data["ledger"][:3], what_if["ledger"][:3]):
            self.assertEqual(before["choice"]["logprob"], after["choice"]["logprob"])
            self.assertEqual(before["choice"]["entropy_bits"], after["choice"]["entropy_bits"])
        same = self.done(*arguments, "--what-if", f"3={data['ledger'][3]['choice']['id']}", "--json").json()
        self.assertEqual(same["what_if"]["text"], data["text"])
        self.refused_late("expected a step of the reply, which has 0 to 11, got 12", *arguments, "--what-if", "12=5")
        self.refused(2, *arguments, "--what-if", "3=49152", says="expected a token id from 0 to 49151, got 49152")
        self.refused(2, *arguments, "--what-if", "3", says="expected N=ID")

    def refused_late(self, says, *arguments):
        """The reply itself was made and shown."""
        result = couplet(*arguments)
        self.assertEqual(result.status, 2)
        self.assertIn(says, result.err)
        self.assertIn("op/byte", result.out)

    def test_the_page(self):
        prompt = "<script>alert(1)</script> & \"quotes\" 日本 🦄"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.html")
            arguments = ("explain", SMOL, prompt, *GREEDY, "--max-tokens", "8", "--html", path)
            data = self.done(*arguments, "--what-if", "2=123", "--json").json()
            with open(path, encoding="utf-8") as file:
                html = file.read()
            page = Page()
            page.feed(html)
            page.close()
            self.assertEqual(page.open, [])
            self.assertFalse({"script", "link", "img", "iframe"} & page.tags)
            self.assertEqual(page.addresses, [])
            self.assertNotRegex(html, r"https?://|url\(|@import")
            self.assertIn("default-src 'none'", html)
            self.assertEqual(len(page.texts["li"]), len(data["prompt"]))
            self.assertIn("<script>", "".join(page.texts["li"]).replace("|", ""))
            self.assertEqual([t for t in page.texts["h2"] if "What if" in t][0].count("step 2"), 1)
            self.assertIn("prefill", page.texts["circle"] + page.texts["text"])
            self.assertEqual(os.listdir(folder), ["page.html"])
            self.refused(2, *arguments, says="--html: .*--force replaces it")
            self.done(*arguments, "--force")
            self.refused(2, *arguments[:-1], folder, says="expected a file to write")


class Page(html.parser.HTMLParser):
    """What stands in which element, and whether all were closed."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.addresses, self.texts = [], set(), [], collections.defaultdict(list)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.texts[tag].append("")
        self.addresses += [value for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        for tag in self.open:
            self.texts[tag][-1] += data


if __name__ == "__main__":
    main()
