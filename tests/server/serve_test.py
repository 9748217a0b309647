#!/usr/bin/env python3
"""The life of `couplet serve`: how it starts or refuses to, who it lets in, and how it ends."""

import json
import os
import resource
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest

from running import PATIENCE_S, PROGRAM, SMOL, Running, environment
from program import DONE, FAILED, WRONG_USE, Case, main


def write(folder, name, text, mode=0o600):
    path = os.path.join(folder, name)
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, mode), "w") as file:
        file.write(text)
    return path


class WithFolder(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name


class Start(WithFolder):
    def test_says_where_and_ends_with_a_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with Running("--quiet") as server:
                self.assertEqual(server.ready, f"serving {SMOL} on http://127.0.0.1:{server.port}\n")
                status, headers, _ = server.ask("GET", "/health")
                self.assertEqual((status, headers["server"]), (200, "couplet"))
                status, out, _ = server.stop(number)
                self.assertEqual((status, out), (DONE, ""))

    def test_in_json(self):
        with Running("--json", "--model-name", "mine") as server:
            self.assertEqual(json.loads(server.ready), {"address": f"http://127.0.0.1:{server.port}", "model": "mine"})
            self.assertIn('"mine"', server.ask("GET", "/v1/models")[2])

    def test_refuses_before_the_model_is_read(self):
        key = write(self.folder, "keys", "secret\n")
        nothing = write(self.folder, "nothing", "# no key\n\n")
        blanks = write(self.folder, "blanks", "two words\n")
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        port = str(taken.getsockname()[1])
        for status, says, *options in (
                (WRONG_USE, "--api-key-file", "--host", "0.0.0.0"), (WRONG_USE, "--api-key-file", "--host", "::"),
                (WRONG_USE, "--tls-key", "--tls-cert", key), (WRONG_USE, "--tls-cert", "--tls-key", key),
                (WRONG_USE, "--tls-cert", "--tls-cert", key, "--tls-key", key), (WRONG_USE, "blanks", "--api-key-file", blanks),
                (FAILED, "has none", "--api-key-file", nothing), (FAILED, "readable", "--api-key-file", self.folder),
                (FAILED, "readable", "--api-key-file", "/nowhere"), (FAILED, "in use", "--port", port),
                (FAILED, "--host", "--host", "no.such.host.invalid"), (FAILED, "192.0.2.1", "--host", "192.0.2.1", "--api-key-file", key),
                (WRONG_USE, "--port", "--port", "65536"), (WRONG_USE, "--max-queue", "--max-queue", "0"),
                (WRONG_USE, "--drain-timeout", "--drain-timeout", "-1")):
            more = [] if "--port" in options else ["--port", "0"]
            self.refused(status, "serve", "no-such-model.gguf", *more, *options, says=says)
        self.refused(FAILED, "serve", "no-such-model.gguf", "--port", "0", says="no-such-model")

    def test_a_key_file_that_others_can_read_is_noted(self):
        keys = write(self.folder, "keys", "# two\nfirst \r\n\nsecond", 0o644)
        with Running("--api-key-file", keys, "--host", "0.0.0.0") as server:
            self.assertEqual(server.ask("GET", "/v1/models")[0], 401)
            for key in ("first", "second"):
                self.assertEqual(server.ask("GET", "/v1/models", headers={"Authorization": "Bearer " + key})[0], 200)
            self.assertEqual(server.ask("GET", "/health")[0], 200)
            status, _, err = server.stop()
            self.assertEqual(status, DONE)
            self.assertIn("chmod 600", err)
            for key in ("first", "second"):
                self.assertNotIn(key, err)

    def test_foreign_hosts_and_origins_are_refused(self):
        with Running("--allowed-host", "mine.example", "--cors-origin", "https://page.example") as server:
            for headers, status in (({"Host": "evil.example"}, 403), ({"Host": "mine.example"}, 200), ({"Origin": "http://evil.example"}, 403),
                                    ({"Origin": "https://page.example"}, 200), ({"Origin": f"http://127.0.0.1:{server.port}"}, 200)):
                self.assertEqual(server.ask("GET", "/v1/models", headers=headers)[0], status, headers)

    def test_https(self):
        certificate, key = os.path.join(self.folder, "crt"), os.path.join(self.folder, "key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "1",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        with Running("--tls-cert", certificate, "--tls-key", key) as server:
            self.assertEqual(server.scheme, "https")
            context = ssl.create_default_context(cafile=certificate)
            with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as plain:
                with context.wrap_socket(plain, server_hostname="127.0.0.1") as client:
                    client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    reply = b""
                    while piece := client.recv(65536):
                        reply += piece
            self.assertTrue(reply.startswith(b"HTTP/1.1 200 "))


class End(WithFolder):
    def test_running_streams_finish_and_nothing_new_begins(self):
        with Running() as server:
            connection, reply, _ = server.stream(max_tokens=200)
            server.process.send_signal(signal.SIGTERM)
            rest = reply.read().decode()
            self.assertTrue(rest.endswith("data: [DONE]\n\n"), rest[-200:])
            self.assertIn('"finish_reason":"length"', rest)
            connection.close()
            self.assertEqual(server.end()[0], DONE)
            with self.assertRaises(ConnectionRefusedError):
                server.ask("GET", "/health")

    def test_what_takes_too_long_is_cut_with_an_error(self):
        with Running("--drain-timeout", "0.2") as server:
            connection, reply, _ = server.stream(max_tokens=8000)
            server.process.send_signal(signal.SIGTERM)
            events = reply.read().decode().split("\n\n")
            self.assertEqual(events[-1], "")
            self.assertIn("shutting down", json.loads(events[-2].removeprefix("data: "))["error"]["message"])
            connection.close()
            self.assertEqual(server.end()[0], DONE)

    def test_a_second_signal_ends_it_at_once(self):
        with Running() as server:
            connection, _, _ = server.stream(max_tokens=8000)
            server.process.send_signal(signal.SIGTERM)
            while True:  # until the first was seen: nobody listens then
                try:
                    socket.create_connection(("127.0.0.1", server.port)).close()
                except ConnectionRefusedError:
                    break
            self.assertEqual(server.stop(signal.SIGINT)[0], 128 + signal.SIGINT)
            connection.close()

    def test_an_ignored_interrupt_stays_ignored(self):
        with Running(command=["sh", "-c", 'trap "" INT; exec "$@"', "sh"]) as server:
            server.process.send_signal(signal.SIGINT)
            self.assertEqual(server.ask("GET", "/health")[0], 200)
            self.assertEqual(server.stop()[0], DONE)


class Pressure(WithFolder):
    def test_without_file_descriptors_it_waits_and_comes_back(self):
        with Running() as server:
            used = len(os.listdir(f"/proc/{server.process.pid}/fd"))
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (used + 10, used + 10))
            clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
            before = self.cpu_s(server)
            time.sleep(2)
            self.assertLess(self.cpu_s(server) - before, 1)  # it does not ask again and again
            for client in clients:
                client.close()
            self.assertEqual(server.ask("GET", "/health")[0], 200)
            self.assertEqual(server.stop()[0], DONE)

    def cpu_s(self, server):
        with open(f"/proc/{server.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_readers_of_its_words_may_leave(self):
        with Running() as server:
            server.process.stdout.close()
            server.process.stderr.close()
            for _ in range(3):
                self.assertEqual(server.ask("GET", "/v1/models")[0], 200)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(PATIENCE_S), DONE)


if __name__ == "__main__":
    main(needs=(SMOL,))
