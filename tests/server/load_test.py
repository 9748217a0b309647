#!/usr/bin/env python3
"""The server under load: whoever else is served changes no bit of a reply, and nobody who leaves keeps anything.

    load_test.py PROGRAM [SECONDS]

SECONDS: how long clients come and go at random (default: a fixed number of visits). No time is asserted."""

import asyncio
import os
import random
import socket
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "cli"), os.path.join(HERE, "..", "..", "bench")]

import serving
import soak
from program import PROGRAM, SMOL, main
from serving import Connection

SECONDS = float(sys.argv.pop(2)) if sys.argv[2:3] and sys.argv[2].isdecimal() else 0
NUM_STREAMS = 200
NUM_KNOWN = 25
NUM_TOGETHER = 40  # of them in one step, at least for some steps
TIMEOUT_S = 800


class Served(unittest.IsolatedAsyncioTestCase):
    maxDiff = 4000
    options = ()

    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)  # it tells of every slow turn
        self.server = serving.Server(PROGRAM, SMOL, *self.options)

    async def asyncTearDown(self):
        self.assertEqual(self.server.stop(), 0)

    async def together(self, *tasks):
        async with asyncio.timeout(TIMEOUT_S):
            return await asyncio.gather(*tasks)

    async def counted(self, name):
        return (await serving.figures(self.server))(name)


class Many(Served):
    # Fewer pages than 200 streams want: some wait for others' to be free.
    options = ("--context", "1024", "--max-sequences", str(NUM_STREAMS), "--max-queue", str(2 * NUM_STREAMS))

    async def test_each_of_200_streams_is_what_it_is_alone(self):
        known = soak.known_requests(NUM_KNOWN)
        alone = [(await serving.whole(self.server, *request)).same() for request in known]
        self.assertGreater(len({str(same) for same in alone}), NUM_KNOWN - 3)
        streams = (serving.streamed(self.server, *known[i % NUM_KNOWN]) for i in range(NUM_STREAMS))
        all_run = serving.settle(self.server, lambda now: now("couplet_sequences_running") > NUM_TOGETHER)
        _, *told = await self.together(all_run, *streams)
        for i, one in enumerate(told):
            self.assertEqual(one.same(), alone[i % NUM_KNOWN], known[i % NUM_KNOWN])
        await serving.settle(self.server)


class Leaving(Served):
    options = ("--context", "4096", "--max-sequences", "4")

    async def writing(self, connection, tokens=2000):
        """A stream whose reply has begun."""
        await connection.send(soak.COMPLETION, soak.long_write(tokens))
        await soak.read_some(connection, 2)

    async def test_a_queued_one_never_starts(self):
        async with Connection(self.server) as a, Connection(self.server) as b, Connection(self.server) as c, Connection(self.server) as d:
            await self.together(*(self.writing(connection) for connection in (a, b, c, d)))
            prefilled = await self.counted("couplet_prefill_tokens_total")
            queued = [await Connection(self.server).__aenter__() for _ in range(12)]
            for number, connection in enumerate(queued):
                request = {**soak.long_prompt(number, 100), "stream": number % 2 == 0}
                await connection.send(soak.COMPLETION, request)
            await serving.settle(self.server, lambda now: now("couplet_sequences_waiting") == len(queued))
            for number, connection in enumerate(queued):
                connection.vanish(("reset", "close", "half")[number % 3])
            now = await serving.settle(self.server, lambda now: now("couplet_sequences_waiting") == 0)
            self.assertEqual(now("couplet_sequences_running"), 4)
            for connection in queued:
                connection.writer.transport.abort()
            for connection in (a, b, c, d):
                connection.vanish("close")
            now = await serving.settle(self.server)
            self.assertEqual(now("couplet_prefill_tokens_total"), prefilled)

    async def test_a_prefill_ends_where_its_client_leaves(self):
        for how in ("reset", "close", "half"):
            before = await self.counted("couplet_prefill_tokens_total")
            async with Connection(self.server) as connection:
                await connection.send(soak.COMPLETION, soak.long_prompt(how, 3600))
                await connection.head()
                async for event in connection.events():
                    progress = event["prompt_progress"]
                    break
                connection.vanish(how)
                await serving.settle(self.server)
            self.assertGreaterEqual(progress["total"], 3600)
            self.assertLess(progress["processed"], progress["total"])
            self.assertLess(await self.counted("couplet_prefill_tokens_total") - before, progress["total"])

    async def test_a_decode_ends_where_its_client_leaves(self):
        for how in ("reset", "close", "half"):
            before = await self.counted("couplet_generated_tokens_total")
            async with Connection(self.server) as connection:
                await self.writing(connection, 3500)
                connection.vanish(how)
                await serving.settle(self.server)
            self.assertLess(await self.counted("couplet_generated_tokens_total") - before, 3500)

    async def test_nor_does_a_silent_wait_outlive_its_client(self):
        before = await self.counted("couplet_generated_tokens_total")
        async with Connection(self.server) as connection:
            await connection.send(soak.COMPLETION, {**soak.long_write(3500), "stream": False})
            await serving.settle(self.server, lambda now: now("couplet_generated_tokens_total") > before)
            connection.vanish("reset")
            await serving.settle(self.server)
        self.assertLess(await self.counted("couplet_generated_tokens_total") - before, 3500)


class ComingAndGoing(Served):
    options = ("--context", "512", "--max-sequences", "6")

    async def test_nothing_is_left_of_clients_that_vanish_at_random(self):
        load = soak.Soak(self.server, num_known=8, prompt_words=300)
        await load.learn()
        await load.fill_cache()
        mix = {"chat": 3, "vanish": 12, "write": 1, "prompt": 1, "wrong": 1, "look": 1}
        seed = random.randrange(10**6)
        await self.visits(load, mix, f"{seed} first", 60)
        await serving.settle(self.server)
        files, memory = self.server.num_files(), self.server.memory_bytes()
        await self.visits(load, mix, seed, 240)
        await load.check_rest(files)
        soak.check_growth(load, memory, self.server.memory_bytes())
        self.assertEqual(load.failures, [], f"seed {seed}")
        self.assertEqual(len(load.vanished), 7, f"seed {seed}: {load.vanished}")

    async def visits(self, load, mix, seed, count):
        last, deadline = sum(load.visits.values()) + count, time.monotonic() + SECONDS
        await load.run(mix, 24, seed, lambda: sum(load.visits.values()) < last or time.monotonic() < deadline)


class Slow(Served):
    options = ("--context", "4096",)

    async def test_who_reads_nothing_holds_nobody_up(self):
        fast = soak.known_requests(3)
        alone = [(await serving.whole(self.server, *request)).same() for request in fast]
        memory = self.server.memory_bytes()
        slow = self.reader_of_nothing()
        try:
            await serving.settle(self.server, lambda now: now("couplet_sequences_running") == 1)
            for _ in range(4):
                told = await self.together(*(serving.streamed(self.server, *request) for request in fast))
                self.assertEqual([one.same() for one in told], alone)
            # It is dropped for what piles up, or for the time that it takes nothing.
            async with asyncio.timeout(TIMEOUT_S):
                await serving.settle(self.server)
            self.assertLess(self.server.memory_bytes() - memory, 256 << 20)
            self.assertLess(await self.counted("couplet_generated_tokens_total"), 3500)
        finally:
            slow.close()

    def reader_of_nothing(self):
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        slow.connect((self.server.host, self.server.port))
        body = {**soak.long_write(3500), "logprobs": 5, "ledger": True}
        slow.sendall(Connection(self.server).request(soak.COMPLETION, body))
        return slow


if __name__ == "__main__":
    main(needs=(SMOL,))
