"""A pseudo-terminal with a program on it, and what it shows."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

from program import PROGRAM, TIMEOUT_S, environment

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[=>]|\x07")


class Terminal:
    """`couplet` with its three streams on a terminal of `columns`."""

    def __init__(self, *arguments, columns=80, **env):
        self.process, self.file = pty.fork()
        if self.process == 0:
            os.execve(PROGRAM, [PROGRAM, *arguments], environment(**env))
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.raw = b""
        self.ended = False

    def read(self, seconds=0.1):
        if self.ended or not select.select([self.file], [], [], seconds)[0]:
            return
        try:
            data = os.read(self.file, 65536)
        except OSError:
            data = b""
        self.ended = not data
        self.raw += data

    def wait_for(self, pattern, since=0):
        """Reads until the text behind `since` has the pattern; where it ends."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            found = re.search(pattern, self.text()[since:])
            if found:
                return since + found.end()
            if self.ended:
                break
            self.read()
        raise AssertionError(f"{pattern!r} never came; there is {self.text()[since:]!r}")

    def send(self, text):
        os.write(self.file, text.encode())

    def text(self):
        return ESCAPES.sub("", self.raw.decode("utf-8", "replace")).replace("\r\n", "\n")

    def status(self):
        deadline = time.monotonic() + TIMEOUT_S
        while not self.ended and time.monotonic() < deadline:
            self.read()
        os.close(self.file)
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
