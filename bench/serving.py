"""A `couplet serve` of one's own, and clients of it that see every byte: for soak.py and tests/server."""

import asyncio
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time

START_S = 300
SETTLE_S = 120   # for what nobody waits for any more to be gone, on a machine that does other work too
SETTLE_TIMES = 3  # so often in a row: a request that was just read may not have been queued yet


class ServingError(Exception):
    """The server did not start, ended, or said what no client understands; the message is one line."""


# ---- the server ------------------------------------------------------------------------------------------------------

class Server:
    def __init__(self, program, model, *options, log=subprocess.DEVNULL):
        command = [program, "serve", model, "--port", "0", "--json", *options]
        environment = {"COUPLET_PACKED": "off", **os.environ}
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=environment)
        except OSError as error:
            raise ServingError(f"{program}: {error.strerror}") from None
        line = self.process.stdout.readline()
        if not line:
            raise ServingError(f"couplet serve ended with status {self.process.wait()} before it served")
        told = json.loads(line)
        self.address, self.model = told["address"], told["model"]
        self.host, port = re.fullmatch(r"http://\[?(.+?)\]?:(\d+)", self.address).groups()
        self.port = int(port)

    def memory_bytes(self):
        """Memory of its own: files that are mapped do not count."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii", errors="replace") as file:
            return int(re.search(r"^RssAnon:\s+(\d+) kB$", file.read(), re.M).group(1)) * 1024

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def num_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self):
        """Lets it drain; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=START_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        return self.process.returncode


# ---- a client --------------------------------------------------------------------------------------------------------

class Connection:
    """One request over one connection."""

    def __init__(self, server):
        self.server = server
        self.status, self.headers = None, {}

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection(self.server.host, self.server.port)
        return self

    async def __aexit__(self, *error):
        self.writer.transport.abort()

    def vanish(self, how):
        """As clients do: "reset" as one that crashed, "close" as one that ended, "half" as one that sends no more."""
        if how == "half":
            self.writer.write_eof()
            return
        if how == "reset":
            self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def request(self, path, body):
        text = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        method = "GET" if body is None else "POST"
        return (f"{method} {path} HTTP/1.1\r\nHost: {self.server.host}:{self.server.port}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n").encode() + text

    async def send(self, path, body=None):
        self.writer.write(self.request(path, body))
        await self.writer.drain()

    async def head(self):
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("ascii").split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}

    async def pieces(self):
        """The body as it comes."""
        if "content-length" in self.headers:
            yield await self.reader.readexactly(int(self.headers["content-length"]))
            return
        if self.headers.get("transfer-encoding") != "chunked":
            raise ServingError(f"a body of unknown length: {self.headers}")
        while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
            yield (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readuntil(b"\r\n")

    async def body(self):
        return b"".join([piece async for piece in self.pieces()])

    async def events(self):
        """The data of server-sent events, parsed, until [DONE]; a stream that ends without it is an error."""
        text = b""
        async for piece in self.pieces():
            text += piece
            *whole, text = text.split(b"\n\n")
            for event in whole:
                for line in event.decode("utf-8").split("\n"):  # strict, as openai-python is
                    if line == "data: [DONE]":
                        return
                    if line.startswith("data: "):
                        yield json.loads(line[len("data: "):])
        raise ServingError("a stream ended without [DONE]")


async def get(server, path):
    async with Connection(server) as connection:
        await connection.send(path)
        await connection.head()
        return (await connection.body()).decode("utf-8")


async def post(server, path, body):
    """(status, the reply)"""
    async with Connection(server) as connection:
        await connection.send(path, body)
        await connection.head()
        return connection.status, json.loads(await connection.body())


# ---- replies ---------------------------------------------------------------------------------------------------------

class Told:
    """What a client was told, the same whether in one piece or in many; and when its pieces came."""

    def __init__(self):
        self.texts, self.logprobs, self.reasons, self.usage = {}, {}, {}, None
        self.asked, self.times = time.perf_counter(), []

    def add(self, reply):
        if "error" in reply:
            raise ServingError(f"error: {reply['error']}")
        if reply.get("usage"):
            self.usage = reply["usage"]
        for choice in reply["choices"]:
            index = choice["index"]
            message = choice.get("delta") or choice.get("message") or {}
            text = choice.get("text", message.get("content")) or ""
            if text:
                self.times.append(time.perf_counter())
            self.texts[index] = self.texts.get(index, "") + text
            self.logprobs.setdefault(index, []).extend(entries(choice.get("logprobs")))
            self.reasons[index] = self.reasons.get(index) or choice["finish_reason"]

    def same(self):
        """What can't depend on who else is served."""
        usage = self.usage and (self.usage["prompt_tokens"], self.usage["completion_tokens"])
        return self.texts, self.logprobs, self.reasons, usage

    @property
    def ttft(self):
        return self.times[0] - self.asked if self.times else None

    @property
    def gaps(self):
        return [after - before for before, after in zip(self.times, self.times[1:])]


def entries(logprobs):
    """The logprobs of a choice, one entry a token, of both endpoints."""
    if not logprobs:
        return []
    if "content" in logprobs:
        return logprobs["content"] or []
    return list(zip(logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"], logprobs["text_offset"]))


async def whole(server, path, request):
    told = Told()
    status, reply = await post(server, path, request)
    if status != 200:
        raise ServingError(f"{path}: status {status}: {reply}")
    told.add(reply)
    return told


async def streamed(server, path, request):
    told = Told()
    async with Connection(server) as connection:
        await connection.send(path, {**request, "stream": True, "stream_options": {"include_usage": True}})
        await connection.head()
        if connection.status != 200:
            raise ServingError(f"{path}: status {connection.status}: {(await connection.body()).decode()}")
        async for event in connection.events():
            told.add(event)
    return told


# ---- what the server says of itself ----------------------------------------------------------------------------------

class Figures:
    """/metrics, read once."""

    def __init__(self, text):
        self.samples = re.findall(r"^([a-z][\w:]*)(?:\{(.*)\})? (\S+)$", text, re.M)

    def __call__(self, name, label=""):
        """The sum of a name's samples whose labels contain `label`."""
        found = [float(value) for sample, labels, value in self.samples if sample == name and label in labels]
        if not found:
            raise ServingError(f"/metrics has no {name}")
        return sum(found)

    @property
    def pages_held(self):
        """By sequences."""
        return self("couplet_cache_pages_used") - self("couplet_cache_pages_in_tree")

    @property
    def is_idle(self):
        return self("couplet_sequences_running") == self("couplet_sequences_waiting") == self.pages_held == 0


async def figures(server):
    return Figures(await get(server, "/metrics"))


async def settle(server, until=lambda figures: figures.is_idle):
    """Waits for what comes by itself; the figures that say so."""
    deadline, times = time.monotonic() + SETTLE_S, 0
    while times < SETTLE_TIMES:
        now = await figures(server)
        times = times + 1 if until(now) else 0
        if time.monotonic() > deadline:
            raise ServingError(f"after {SETTLE_S} s: {now('couplet_sequences_running'):g} run, {now('couplet_sequences_waiting'):g} wait, "
                               f"{now.pages_held:g} pages are held")
        await asyncio.sleep(0.02)
    return now
