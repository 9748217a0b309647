#!/usr/bin/env python3
"""The man page and the three completions name what the program's own --help names, and nothing else.

    docs_test.py PROGRAM
"""

import os
import re
import subprocess
import sys
import unittest

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")
COMPLETIONS = ("completions/couplet.bash", "completions/_couplet", "completions/couplet.fish")
OPTION = re.compile(r"--[a-z][a-z-]*[a-z]")


def read(name):
    with open(os.path.join(DOCS, name)) as file:
        return file.read().replace("\\-", "-")


def ask(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=True).stdout


def options_of(command):
    """Those that --help lists, not those its sentences mention."""
    return {option for line in ask(command, "--help").splitlines() if re.match(r"\s+-", line)
            for option in OPTION.findall(line.split("   ")[0] if line.strip().startswith("-") else "")}


class Docs(unittest.TestCase):
    def setUp(self):
        self.commands = re.findall(r"^  ([a-z]+) ", ask("--help"), re.MULTILINE)
        self.assertIn("explain", self.commands)
        self.options = set().union(*(options_of(command) for command in self.commands))
        self.assertIn("--temperature", self.options)

    def test_man_page(self):
        page = read("couplet.1")
        described = set(re.findall(r'^\.BI "([a-z]+) "', page, re.MULTILINE))
        self.assertEqual(described, set(self.commands))
        items = [line for before, line in zip(page.splitlines(), page.splitlines()[1:]) if before == ".TP"]
        self.assertEqual({option for line in items for option in OPTION.findall(line)}, self.options)

    def test_completions(self):
        for name in COMPLETIONS:
            text = read(name)
            fish = re.findall(r"^complete .* -l ([a-z-]+)", text, re.MULTILINE)
            found = set(OPTION.findall(text)) | {"--" + option for option in fish}
            self.assertEqual(found, self.options, name)
            for command in self.commands:
                self.assertRegex(text, rf"\b{command}\b", name)


PROGRAM = os.path.abspath(sys.argv.pop())
unittest.main()
