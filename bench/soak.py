#!/usr/bin/env python3
"""A server under mixed load for as long as you like: what it does with every kind of client at once, and what is left of them.

    bench/soak.py [MODEL] [--seconds 600] [--clients 24] [--mix chat=6,vanish=3] [--seed 1] [--json]

Each client makes one visit after the other, of a kind drawn from the mix:
  chat    a request whose reply alone is known: text and log-probabilities must be those, bit for bit
  prompt  a long prompt that nobody sent before, and a few tokens
  write   a short prompt and a long reply
  vanish  a client that goes away: before it asked, in the queue, in prefill, in decode, in a silent wait
  slow    reads nothing while its long reply is made, then leaves
  wrong   a request that is none: refused with a reason
  look    /metrics, /v1/models, /health
At the end every client leaves. Then nothing may run or wait, no page may be held, the memory may not have grown since the
cache was full, a known reply must still be what it was, an idle server must not compute, and SIGTERM must end it with status 0.
One line a window: rates, and latencies as clients saw them. Exit status 1 where anything was not so.
"""

import argparse
import asyncio
import json
import math
import random
import sys
import time

import serving
from engines import PROGRAM, EngineError, find_model, stop
from serving import Connection, ServingError

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
MIX = "chat=6,prompt=1,write=2,vanish=4,slow=1,wrong=1,look=1"
OPTIONS = ("--context=2048", "--max-sequences=8")
MOST_WINDOWS = 12
IDLE_S, IDLE_CPU_SHARE = 10, 0.01
VISIT_S = 300             # more than the longest wait that a server has limits for
GROWTH_BYTES = 24 << 20  # of memory once the cache is full: the allocator's own ways
WORDS = ("the river carries small boats past old stone houses while children count birds on wires and a baker opens his door "
         "to let warm air into the street where two dogs sleep under a blue cart full of apples").split()

KINDS = {}  # a visit's name: the function


def kind(function):
    KINDS[function.__name__] = function
    return function


# ---- requests --------------------------------------------------------------------------------------------------------

def words(seed, count):
    source = random.Random(seed)
    return " ".join(source.choice(WORDS) for _ in range(count))


def known_requests(count):
    """Requests of many forms whose replies are the same whoever else is served."""
    requests = []
    for i in range(count):
        request = {"max_tokens": 8 + i % 17, "temperature": (0, 0.7, 1.1)[i % 3], "seed": i, "top_p": (1, 0.9)[i % 2], "n": 1 + (i % 7 == 3)}
        if i % 4 == 1:
            request["stop"] = [" the", "\n\n"]
        if i % 5 == 2:
            request["frequency_penalty"] = 0.5
        if i % 3 == 0:
            requests.append((COMPLETION, {**request, "prompt": words(i, 3 + 9 * (i % 5)), "logprobs": i % 6}))
        else:
            messages = [{"role": "user", "content": f"Tell me about {words(i, 2 + 11 * (i % 4))}."}]
            requests.append((CHAT, {**request, "messages": messages, "logprobs": i % 2 == 0, **({"top_logprobs": i % 5} if i % 2 == 0 else {})}))
    return requests


def long_write(tokens):
    return {"prompt": "Once upon a time", "max_tokens": tokens, "ignore_eos": True, "temperature": 1, "logprobs": 5, "stream": True}


def long_prompt(seed, count):
    return {"prompt": words(seed, count), "max_tokens": 4, "ignore_eos": True, "stream": True, "return_progress": True}


WRONG = [(CHAT, b"{", 400), (CHAT, b'{"messages": "hi"}', 400), (CHAT, {"messages": []}, 400), (COMPLETION, {"prompt": ""}, 400),
         (COMPLETION, {"prompt": [-1]}, 400), (COMPLETION, {"prompt": "a", "max_tokens": "b"}, 400), (COMPLETION, b"[" * 100_000, 400),
         (COMPLETION, {"prompt": "a", "model": "nobody"}, 404), ("/v1/nothing", {}, 404)]


# ---- visits ----------------------------------------------------------------------------------------------------------

@kind
async def chat(soak, source):
    index = source.randrange(len(soak.known))
    (path, request), expected = soak.known[index], soak.expected[index]
    told = await (serving.streamed if source.random() < 0.8 else serving.whole)(soak.server, path, request)
    if told.same() != expected:
        raise ServingError(f"known request {index} was answered {told.same()}, alone {expected}")
    soak.note(told)


@kind
async def prompt(soak, source):
    soak.note(await serving.streamed(soak.server, COMPLETION, long_prompt(source.random(), soak.prompt_words)))


@kind
async def write(soak, source):
    soak.note(await serving.streamed(soak.server, COMPLETION, long_write(source.randint(40, 160))))


@kind
async def slow(soak, source):
    async with Connection(soak.server) as connection:
        connection.writer.transport.pause_reading()
        await connection.send(COMPLETION, long_write(200))
        await asyncio.sleep(source.uniform(0.5, 4))
        connection.vanish("close")


@kind
async def wrong(soak, source):
    path, body, expected = source.choice(WRONG)
    status, reply = await serving.post(soak.server, path, body)
    if status != expected or not isinstance(reply["error"]["message"], str):
        raise ServingError(f"{path} {str(body)[:40]}: expected status {expected} and an error, got {status}: {reply}")


@kind
async def look(soak, source):
    path = source.choice(("/metrics", "/v1/models", "/health"))
    if not await serving.get(soak.server, path):
        raise ServingError(f"{path}: nothing")


@kind
async def vanish(soak, source):
    how = source.choice(("reset", "close", "half"))
    where = source.choice(("unasked", "head", "body", "queue", "prefill", "decode", "silent"))
    async with Connection(soak.server) as connection:
        request = long_prompt(source.random(), soak.prompt_words) if where == "prefill" else long_write(120)
        request["stream"] = where != "silent"
        sent = connection.request(COMPLETION, request)
        parts = {"unasked": 0, "head": source.randrange(1, 60), "body": len(sent) - source.randrange(1, 20)}
        connection.writer.write(sent[:parts.get(where, len(sent))])
        await connection.writer.drain()
        if where in ("queue", "silent"):
            await asyncio.sleep(source.uniform(0, 0.5))
        elif where in ("prefill", "decode"):
            await read_some(connection, source.randrange(1, 12))
        soak.vanished[where] = soak.vanished.get(where, 0) + 1
        connection.vanish(how)
        if how == "half":  # what the server still sends, or the end of it
            while await connection.reader.read(1 << 16):
                pass


async def read_some(connection, num_events):
    await connection.head()
    if connection.status != 200:
        raise ServingError(f"status {connection.status}")
    async for _ in connection.events():
        num_events -= 1
        if num_events <= 0:
            return


# ---- the soak --------------------------------------------------------------------------------------------------------

class Window:
    def __init__(self):
        self.ttfts, self.gaps, self.visits, self.failed = [], [], 0, 0


class Soak:
    """Clients of one server. Failures are kept, told and do not stop the others."""

    def __init__(self, server, num_known=12, prompt_words=600):
        self.server, self.prompt_words = server, prompt_words
        self.known, self.expected = known_requests(num_known), []
        self.window, self.failures, self.vanished, self.visits = Window(), [], {}, {}

    def note(self, told):
        self.window.gaps += told.gaps
        if told.ttft is not None:
            self.window.ttfts.append(told.ttft)

    async def learn(self):
        """What the known requests are answered alone."""
        self.expected = [(await serving.whole(self.server, path, request)).same() for path, request in self.known]

    async def fill_cache(self):
        """Until every page has been touched: from here on the memory should stay as it is."""
        now, seed = await serving.figures(self.server), 0
        while now("couplet_cache_pages_used") < 0.95 * now("couplet_cache_pages"):
            seed += 1
            await serving.streamed(self.server, COMPLETION, long_prompt(f"fill {seed}", self.prompt_words))
            before, now = now, await serving.figures(self.server)
            if now("couplet_cache_pages_used") <= before("couplet_cache_pages_used"):
                break

    async def visit(self, name, source):
        self.visits[name] = self.visits.get(name, 0) + 1
        self.window.visits += 1
        try:
            async with asyncio.timeout(VISIT_S):
                await KINDS[name](self, source)
        except (ServingError, OSError, EOFError, ValueError, KeyError) as error:
            if name == "vanish" and not isinstance(error, (ServingError, TimeoutError)):
                return  # "half": the server may end such a connection as it likes
            self.window.failed += 1
            self.failures.append(f"{name}: {type(error).__name__}: {str(error)[:2000]}")

    async def run(self, mix, num_clients, seed, more):
        """Visits while more() says so."""
        names, weights = zip(*mix.items())

        async def client(number):
            source = random.Random(f"{seed} {number}")
            while more():
                await self.visit(source.choices(names, weights)[0], source)

        await asyncio.gather(*(client(number) for number in range(num_clients)))

    async def check_rest(self, files):
        """What must be so once every client has left."""
        await serving.settle(self.server)
        for (path, request), expected in list(zip(self.known, self.expected))[:3]:
            if (await serving.whole(self.server, path, request)).same() != expected:
                self.failures.append("a known request is answered otherwise at the end")
        await serving.settle(self.server)
        if (now := self.server.num_files()) > files + 1:  # one connection may be on its way out
            self.failures.append(f"{now} open files, {files} before the load")


def check_growth(soak, before, after):
    if after - before > GROWTH_BYTES:
        soak.failures.append(f"the memory grew by {(after - before) / 2**20:.1f} MiB")


async def check_idle(soak):
    before = soak.server.cpu_seconds()
    await asyncio.sleep(IDLE_S)
    if (share := (soak.server.cpu_seconds() - before) / IDLE_S) > IDLE_CPU_SHARE:
        soak.failures.append(f"{share:.1%} of a CPU without work")


def percentile(values, share):
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else math.nan


class Meter:
    """A line a window: counters' growth over its time, latencies as clients saw them."""

    COLUMNS = ("s", "visits", "failed", "prefill/s", "decode/s", "ttft p50", "p99", "itl p50", "p99", "MiB")

    def __init__(self, soak, now):
        self.soak, self.began = soak, time.perf_counter()
        self.since, self.before, self.rows = self.began, now, []

    def row(self, now):
        at, window = time.perf_counter(), self.soak.window
        self.soak.window = Window()
        rate = lambda name: (now(name) - self.before(name)) / (at - self.since)
        row = {"seconds": at - self.began, "visits": window.visits, "failed": window.failed,
               "prefill_tokens_per_s": rate("couplet_prefill_tokens_total"), "decode_tokens_per_s": rate("couplet_decode_tokens_total"),
               **{f"{name}_{share}_ms": percentile(values, share / 100) * 1000
                  for name, values in (("ttft", window.ttfts), ("itl", window.gaps)) for share in (50, 99)},
               "memory_mib": self.soak.server.memory_bytes() / 2**20}
        self.since, self.before = at, now
        self.rows.append(row)
        return row


def render(cells):
    return "".join(f"{cell:>10}" for cell in cells)


def parse_mix(text):
    mix = {}
    for part in text.split(","):
        name, _, weight = part.partition("=")
        if name not in KINDS or not weight.isdecimal():
            raise EngineError(f"--mix: expected NAME=WEIGHT of {', '.join(KINDS)}, got {part}")
        mix[name] = int(weight)
    return mix


async def soak_server(options, server, say):
    soak = Soak(server, prompt_words=options.prompt_words)
    await soak.learn()
    await soak.fill_cache()
    files, deadline = server.num_files(), time.perf_counter() + options.seconds
    meter = Meter(soak, await serving.settle(server))
    clients = asyncio.create_task(soak.run(options.mix, options.clients, options.seed, lambda: time.perf_counter() < deadline))
    for _ in range(options.windows):
        await asyncio.sleep(options.seconds / options.windows)
        row = meter.row(await serving.figures(server))
        say(render(f"{value:.0f}" if value > 20 or value % 1 == 0 else f"{value:.1f}" for value in row.values()))
    await clients
    await soak.check_rest(files)
    # The first window is the allocator's.
    check_growth(soak, meter.rows[0]["memory_mib"] * 2**20, server.memory_bytes())
    await check_idle(soak)
    return soak, meter


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="smollm2")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--windows", type=int, default=MOST_WINDOWS, help="lines to show")
    parser.add_argument("--mix", default=MIX, help=f"default: {MIX}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prompt-words", type=int, default=600, help="of a long prompt")
    parser.add_argument("--option", action="append", help=f"for couplet serve; default: {' '.join('--option=' + option for option in OPTIONS)}")
    parser.add_argument("--couplet", default=PROGRAM, help="the program")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.mix = parse_mix(options.mix)
    say = (lambda line: None) if options.json else (lambda line: print(line, flush=True))
    say(render(Meter.COLUMNS))
    server = serving.Server(options.couplet, find_model(options.model), *(options.option or OPTIONS))
    try:
        soak, meter = asyncio.run(soak_server(options, server, say))
    finally:
        status = server.stop()
    if status != 0:
        soak.failures.append(f"SIGTERM ended the server with status {status}")
    if options.json:
        print(json.dumps({"rows": meter.rows, "visits": soak.visits, "vanished": soak.vanished, "failures": soak.failures}))
    else:
        print("visits: " + ", ".join(f"{count} {name}" for name, count in sorted(soak.visits.items())))
        print("vanished: " + ", ".join(f"{count} {where}" for where, count in sorted(soak.vanished.items())))
        for failure in soak.failures[:20]:
            print(f"failed: {failure}")
        print(f"{len(soak.failures)} failures")
    sys.exit(1 if soak.failures else 0)


if __name__ == "__main__":
    try:
        main()
    except (EngineError, ServingError) as error:
        stop(error)
