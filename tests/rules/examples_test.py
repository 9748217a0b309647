#!/usr/bin/env python3
"""Every command in docs/prefill_and_decode.md, run: what it answers still fits the text. Tokens, probabilities and counts by value,
what was measured (times, rates, shares of limits) by form.

    examples_test.py PROGRAM           compares
    examples_test.py PROGRAM --write   puts this run's figures into the text
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "prefill_and_decode.md")
MODELS = os.environ.get("COUPLET_MODELS") or os.path.expanduser("~/.cache/couplet")
NUMBER = r"(?<![\w.])[\d,]+(?:\.\d+)?"
MEASURED = (  # in their order
    (re.compile(r"^(what is|weights|operations|the cache|\"hash\")"), None),  # counted: nothing in these lines may differ
    (re.compile(r"^(prefill|decode) +(\d+) +(\d+) .*"), r"\1 \2 \3 <measured>"),
    (re.compile(r"^tokens a second .*"), "tokens a second <measured>"),
    (re.compile(r"^bound by .*"), "bound by <measured>"),
    (re.compile(r".* kernels, \d+ threads, .*peaks: .*"), "<measured>"),
    (re.compile(NUMBER + r" m?s\b"), "<time>"),
    (re.compile(r"^( +\d+ .* %  .*?) +\d+\.\d(  |$)"), r"\1 <ms>\2"),  # a row of decode's table
)


def normal(line):
    for pattern, form in MEASURED:
        if form is None:
            if pattern.search(line):
                break
        else:
            line = pattern.sub(form, line)
    return " ".join(line.split())


def examples(text):
    """[command, its lines in the page, the number of the first]"""
    found, inside = [], False
    for number, line in enumerate(text.split("\n")):
        if line.startswith("```"):
            inside = not inside
        elif inside and line.startswith("$ "):
            found.append([line[2:], [], number + 1])
        elif inside:
            found[-1][1].append(line)
    return found


def run(command):
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(PROGRAM, os.path.join(folder, "couplet"))
        path = folder + os.pathsep + os.environ["PATH"]
        kept = {k: v for k, v in os.environ.items() if k not in ("COUPLET_KERNELS", "COLUMNS")}
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command.replace("yes ", "trap '' PIPE; yes ", 1)], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, env={**kept, "PATH": path, "COUPLET_PACKED": "off"})
    return done.stdout.rstrip("\n").split("\n"), done.stderr


def align(wanted, lines):
    """For each line of the page the number of the line that it is; None for "...". Raises at the first that isn't there."""
    at, gap, numbers = 0, False, []
    for line in wanted:
        if line == "...":
            gap = True
            numbers.append(None)
            continue
        while gap and at < len(lines) and normal(lines[at]) != normal(line):
            at += 1
        if at == len(lines) or normal(lines[at]) != normal(line):
            raise AssertionError(f"the page says\n  {line}\nand there is\n  " + ("(no such line)" if at == len(lines) else lines[at]))
        numbers.append(at)
        at, gap = at + 1, False
    if not gap and at < len(lines):
        raise AssertionError(f"the page ends before\n  {lines[at]}")
    return numbers


class Examples(unittest.TestCase):
    def setUp(self):
        with open(PAGE, encoding="utf-8") as file:
            self.text = file.read()

    def test_the_page_is_what_the_program_says(self):
        found = examples(self.text)
        self.assertGreater(len(found), 6)
        page, answers = self.text.split("\n"), {}
        for command, wanted, first in found:
            if command not in answers:
                answers[command] = run(command)
            lines, errors = answers[command]
            with self.subTest(command=command):
                try:
                    for number, line in enumerate(align(wanted, lines)):
                        if line is not None:
                            page[first + number] = lines[line]
                except AssertionError as problem:
                    self.fail(f"{command}\n{problem}\n{errors}")
        if WRITE:
            with open(PAGE, "w", encoding="utf-8") as file:
                file.write("\n".join(page))

    def test_what_is_equal_in_the_text_is_equal(self):
        hashes = [line for _, wanted, _ in examples(self.text) for line in wanted if line.startswith('"hash"')]
        self.assertEqual(len(hashes), 3)
        self.assertEqual(len(set(hashes)), 1)

    def test_a_page_that_does_not_fit_fails(self):
        lines = ["PREFILL   5 positions in one pass          11.7 ms", "   hot      38.0 %  ###", "  1   hot   in   16 %   and 16    7.7   hot in"]
        align(["PREFILL   5 positions in one pass        2.5 s", "...", "  1   hot   in   16 %   and 16    812.7   hot in"], lines)
        for wrong in (["PREFILL   6 positions in one pass   11.7 ms", "..."], ["...", "   hot      38.1 %  ###", "..."],
                      ["...", "  1   hot   in   17 %   and 16    7.7   hot in"], ["...", "   cold   38.0 %  ###", "..."], lines[:2]):
            with self.assertRaises(AssertionError):
                align(wrong, lines)


WRITE = sys.argv[-1] == "--write" and bool(sys.argv.pop())
PROGRAM = os.path.abspath(sys.argv.pop())
missing = [name for name in ("smollm2", "gemma3") if not os.path.exists(os.path.join(MODELS, name + ".gguf"))]
if missing:
    sys.exit(f"FAILED: {MODELS} lacks {', '.join(missing)}: get it with `couplet pull {' '.join(missing)}`")
unittest.main()
