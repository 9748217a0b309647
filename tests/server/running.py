"""A `couplet serve` process for the tests of this folder, and plain HTTP to it."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from program import PROGRAM, SMOL, environment  # noqa: E402

PATIENCE_S = 120


class Running:
    """Serves until it is stopped; port 0, so that many can run beside each other."""

    def __init__(self, *options, model=SMOL, command=()):
        self.process = subprocess.Popen([*command, PROGRAM, "serve", model, "--port", "0", *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=environment())
        self.ready = self.process.stdout.readline().decode()
        found = re.search(r"(https?)://([^\"\s]+):(\d+)", self.ready)
        if not found:
            raise AssertionError("no address: " + self.ready + self.process.communicate()[1].decode())
        self.scheme, self.host, self.port = found.group(1), found.group(2).strip("[]"), int(found.group(3))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def ask(self, method, path, body=None, headers=None):
        """(status, headers, text) of one request on a connection of its own."""
        connection = self.connect()
        try:
            data = json.dumps(body).encode() if body is not None else None
            connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read().decode()
        finally:
            connection.close()

    def stream(self, max_tokens):
        """A reply under way: its first event has come."""
        connection = self.connect()
        body = {"prompt": "One two three", "max_tokens": max_tokens, "stream": True, "ignore_eos": True, "temperature": 0}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        if reply.status != 200:
            raise AssertionError(reply.read().decode())
        first = reply.readline()
        return connection, reply, first

    def stop(self, number=signal.SIGTERM):
        """(exit status, the rest of standard output, standard error) after a signal."""
        self.process.send_signal(number)
        return self.end()

    def end(self):
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out.decode(), err.decode()
