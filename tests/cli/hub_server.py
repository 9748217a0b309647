"""A model hub on this machine: its web API on one port, its files on another, as the real one has them on another host. It
keeps what it was asked, and misbehaves as a test tells it to."""

import collections
import hashlib
import http.server
import json
import socket
import threading
import urllib.parse

Request = collections.namedtuple("Request", "host path headers")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def git_blob(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients that leave are part of the tests


class Hub:
    """`repositories`: {"owner/name": {path: bytes}}; `plain`: {path: bytes} at files_url. `misbehave(path, fault...)` makes
    the next answers for that path, on either port, faulty: each fault is a dict of what `Handler` reads."""

    def __init__(self, tls=None):
        self.repositories, self.plain, self.listings = {}, {}, {}
        self.gated, self.token, self.page = set(), None, 1000
        self.requests, self.faults = [], collections.defaultdict(list)
        self.go_on = threading.Event()  # ends all stalls
        self.servers = {}
        for host in ("hub", "files"):
            handler = type("Handler", (Handler,), {"hub": self, "host": host})
            self.servers[host] = Server(("127.0.0.1", 0), handler)
            if tls:
                self.servers[host].socket = tls.wrap_socket(self.servers[host].socket, server_side=True)
            threading.Thread(target=self.servers[host].serve_forever, args=(0.05,), daemon=True).start()
        scheme = "https" if tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self.servers['hub'].server_port}"
        self.files_url = f"{scheme}://127.0.0.1:{self.servers['files'].server_port}"

    def close(self):
        self.go_on.set()
        for server in self.servers.values():
            server.shutdown()
            server.server_close()

    def misbehave(self, path, *faults):
        self.faults[path] += faults

    def asked(self, host, part=""):
        return [request for request in self.requests if request.host == host and part in request.path]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    hub = host = None

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = urllib.parse.unquote(self.path.partition("?")[0])
        self.hub.requests.append(Request(self.host, self.path, dict(self.headers)))
        faults = self.hub.faults[path]
        fault = faults.pop(0) if faults else {}
        if "status" in fault:
            return self.answer(fault["status"], b"busy", fault.get("headers", {}))
        parts = path.split("/")[1:]
        if self.host == "files":
            files = {f"/{name}/{file}": data for name, all_files in self.hub.repositories.items() for file, data in all_files.items()}
            files.update(self.hub.plain)
            return self.file(files.get(path), fault)
        if parts[:2] == ["api", "models"] and parts[4] == "tree":
            return self.listing("/".join(parts[2:4]), parts[5])
        if parts[2] == "resolve":
            return self.resolve("/".join(parts[:2]), parts[3], "/".join(parts[4:]), fault)
        return self.answer(404)

    def allowed(self, name, revision):
        """As the hub answers: unknown repositories look like private ones to those it doesn't know."""
        token = self.headers.get("Authorization")
        if token and token != f"Bearer {self.hub.token}":
            self.answer(401)
        elif name not in self.hub.repositories:
            self.answer(404 if token else 401, headers={"X-Error-Code": "RepoNotFound"})
        elif name in self.hub.gated:
            self.answer(403 if token else 401, headers={"X-Error-Code": "GatedRepo"})
        elif revision not in ("main", "v1.0"):
            self.answer(404, headers={"X-Error-Code": "RevisionNotFound"})
        else:
            return True
        return False

    def listing(self, name, revision):
        if not self.allowed(name, revision):
            return
        if name in self.hub.listings:
            return self.answer(200, self.hub.listings[name])
        entries = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": "sub"}]
        for path, data in self.hub.repositories[name].items():
            entry = {"type": "file", "oid": git_blob(data), "size": len(data), "path": path}
            if is_large(path):
                entry.update(oid=git_blob(b"pointer"), lfs={"oid": sha256(data), "size": len(data), "pointerSize": 134})
            entries.append(entry)
        query = urllib.parse.parse_qs(self.path.partition("?")[2])
        assert query["recursive"] == ["true"], self.path
        begin = int(query.get("cursor", ["0"])[0])
        end = begin + self.hub.page
        headers = {}
        if end < len(entries):
            headers["Link"] = f'<{self.hub.url}{self.path.partition("?")[0]}?recursive=true&cursor={end}>; rel="next"'
        self.answer(200, json.dumps(entries[begin:end]).encode(), headers)

    def resolve(self, name, revision, path, fault):
        if not self.allowed(name, revision):
            return
        data = self.hub.repositories[name].get(path)
        if data is None:
            return self.answer(404, headers={"X-Error-Code": "EntryNotFound"})
        if not is_large(path):
            return self.file(data, fault)
        self.answer(302, b"moved", headers={"Location": fault.get("location", self.hub.files_url + urllib.parse.quote(f"/{name}/{path}")),
                                  "X-Linked-ETag": f'"{fault.get("linked", sha256(data))}"', "X-Linked-Size": str(len(data))})

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for key, value in {"Content-Length": len(body), **dict(headers)}.items():
            self.send_header(key, str(value))
        self.end_headers()
        self.wfile.write(body)

    def file(self, data, fault):
        """Faults: `data` is sent in its place; `cut` or `stall` after so many bytes; `extra` bytes without end; another
        `length` or `etag`; no `ranges`; `range` is Content-Range's text; `chunked`, so without a length."""
        if data is None:
            return self.answer(404)
        data = fault.get("data", data)
        etag = fault.get("etag", f'"{hashlib.md5(data).hexdigest()}"')
        begin, status = 0, 200
        wanted = self.headers.get("Range")
        if wanted and fault.get("ranges", True) and self.headers.get("If-Range", etag) == etag:
            begin, status = int(wanted.removeprefix("bytes=").removesuffix("-")), 206
            if begin >= len(data):
                return self.answer(416, headers={"Content-Range": f"bytes */{len(data)}"})
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", fault.get("range", f"bytes {begin}-{len(data) - 1}/{len(data)}"))
        if etag:
            self.send_header("ETag", etag)
        for key, value in fault.get("headers", {}).items():
            self.send_header(key, value)
        rest = data[begin:]
        if "chunked" in fault:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.chunks(rest, fault)
            return
        self.send_header("Content-Length", str(fault.get("length", len(rest))))
        self.end_headers()
        sent = fault.get("cut", fault.get("stall", len(rest)))
        self.wfile.write(rest[:sent])
        self.wfile.flush()
        if "stall" in fault:
            self.hub.go_on.wait(60)
            self.wfile.write(rest[sent:])
        if "cut" in fault or "length" in fault:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def chunks(self, rest, fault):
        while rest:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(rest), rest))
            rest = fault.get("extra", b"")
        self.wfile.write(b"0\r\n\r\n")


def is_large(path):
    return path.endswith((".gguf", ".safetensors"))
