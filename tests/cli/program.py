"""Runs the built `couplet` for the tests of this folder. Each test file calls main(), with the program as first argument."""

import json
import os
import re
import signal
import subprocess
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DATA = os.path.join(SOURCE, "tests", "data")
MODELS = os.environ.get("COUPLET_MODELS") or os.path.expanduser("~/.cache/couplet")
TIMEOUT_S = 300

DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130


SMOL = "smollm2"
GEMMA = "gemma3"


class Result:
    def __init__(self, status, out, err):
        self.status, self.bytes = status, out
        self.out, self.err = out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def lines(self):
        return self.out.splitlines()

    def json(self):
        return json.loads(self.out)

    def json_lines(self):
        return [json.loads(line) for line in self.bytes.decode("utf-8").split("\n") if line]


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COUPLET_KERNELS", "COLUMNS")}
    return {**kept, "TERM": "xterm", "COUPLET_PACKED": "off", **more}


def start(arguments, **more):
    return subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=environment(**more))


def couplet(*arguments, stdin=b"", **env):
    if isinstance(stdin, str):
        stdin = stdin.encode()
    process = start(arguments, **env)
    try:
        out, err = process.communicate(stdin, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Result(process.returncode, out, err)


class Case(unittest.TestCase):
    maxDiff = 4000

    def done(self, *arguments, **more):
        """Runs to a good end."""
        result = couplet(*arguments, **more)
        self.assertEqual(result.status, DONE, result.err)
        return result

    def refused(self, status, *arguments, says=".", **more):
        """Runs to an error: the status, nothing of an answer, and one clean line that says what was meant."""
        result = couplet(*arguments, **more)
        self.assertEqual(result.status, status, result.err)
        self.one_line(result.err)
        self.assertRegex(result.err, says)
        return result

    def one_line(self, text):
        self.assertRegex(text, r"\Acouplet: [^\n]+\n\Z")
        self.assertIsNone(re.search("[\x00-\x09\x0b-\x1f\x7f]", text), repr(text))
        self.assertNotIn("�", text)


def main(needs=(SMOL, GEMMA)):
    missing = [name for name in needs if not os.path.exists(os.path.join(MODELS, name + ".gguf"))]
    if missing:
        sys.exit(f"FAILED: {MODELS} lacks {', '.join(missing)}: get it with `couplet pull {' '.join(missing)}`")
    del sys.argv[1]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(module="__main__", verbosity=1)
