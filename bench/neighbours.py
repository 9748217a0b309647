#!/usr/bin/env python3
"""couplet beside other work: busy neighbours, half a CPU of quota, more threads than CPUs. It should slow down by what it
loses of the machine, and never collapse.

    bench/neighbours.py [MODEL] [--rounds 5] [--peer llama.cpp --python build/peers/bin/python] [--json]

Each row is measured in turn with an undisturbed run on all CPUs; the medians of both count, and their ratio is held against
the share of the CPUs that the row leaves. Threads beyond the CPUs leave all of them: those rows may cost half. "collapsed"
is less than half of the share. The quota needs permission to make a cgroup with the cpu controller; where there is none
the rows are left out with the reason.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

import engines
from compare import render
from engines import Couplet, EngineError, Peer

STAGES = (("prefill", 256), ("decode", 0))
CGROUPS = "/sys/fs/cgroup"


# ---- what disturbs ---------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def busy(count):
    """So many other processes that compute without a pause."""
    neighbours = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    time.sleep(0.2 if count else 0)
    try:
        yield
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def quota_folders():
    """Where a cgroup with the cpu controller could be made, and the quota's files: this process's own cgroup's folder (v2),
    or the controller's (v1)."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        entries = [line.strip().split(":", 2) for line in file]
    for _, controllers, path in entries:
        if controllers == "":
            yield CGROUPS + path.rstrip("/"), {"cpu.max": "{quota} {period}"}
        if "cpu" in controllers.split(","):
            yield f"{CGROUPS}/cpu" + path.rstrip("/"), {"cpu.cfs_period_us": "{period}", "cpu.cfs_quota_us": "{quota}"}


def make_quota(cpus):
    """A cgroup's folder that allows so many CPUs, or None and the reason."""
    reasons = []
    for parent, files in quota_folders():
        folder = os.path.join(parent, f"couplet-neighbours-{os.getpid()}")
        try:
            os.mkdir(folder)
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror}")
            continue
        try:
            for name, text in files.items():
                write(os.path.join(folder, name), text.format(quota=int(cpus * 100_000), period=100_000))
            return folder, None
        except OSError as error:  # v2: the parent hands no cpu controller down
            reasons.append(f"{folder}/{name}: {error.strerror}")
            os.rmdir(folder)
    return None, "; ".join(reasons) or "no cgroups here"


@contextlib.contextmanager
def quota(cpus):
    folder, reason = make_quota(cpus)
    if folder is None:
        raise EngineError(reason)
    try:
        yield lambda: write(os.path.join(folder, "cgroup.procs"), str(os.getpid()))
    finally:
        os.rmdir(folder)


# ---- measuring -------------------------------------------------------------------------------------------------------

def share(threads, cpus, neighbours):
    """Of what `min(threads, cpus)` CPUs do, where the system gives every running thread the same."""
    return min(threads, cpus * threads / (threads + neighbours)) / min(threads, cpus)


def rows_to_measure(cpus):
    """(name, threads, neighbours, quota, share of the CPUs that is left)"""
    rows = [(f"{count} busy neighbour{'s' if count > 1 else ''}", cpus, count, None, share(cpus, cpus, count))
            for count in sorted({1, cpus})]
    rows += [(f"{threads} threads", threads, 0, None, 1.0) for threads in (3, 8, 64) if threads > cpus]
    # An engine runs no more threads than there are CPUs.
    rows += [(f"8 threads, {cpus} busy neighbours", 8, cpus, None, share(min(8, cpus), cpus, cpus))]
    return rows + [("half a CPU, threads as chosen", 0, 0, 0.5, 0.5 / cpus), (f"half a CPU, {cpus} threads", cpus, 0, 0.5, 0.5 / cpus)]


class Bench:
    def __init__(self, options, cpus):
        self.options, self.cpus = options, cpus
        self.model = engines.find_model(options.model)
        self.limits = {"prefill": [n for stage, n in STAGES if stage == "prefill"], "depth": [0], "decode": options.decode}

    def couplet(self, threads, **popen):
        return Couplet(self.options.couplet, self.model, threads, {**self.limits, "batch": [1]}, **popen)

    def peer(self, threads):
        facts = engines.ask_json(self.options.couplet, "inspect", self.model)
        return Peer(self.options.peer, self.options.python, self.model, threads, self.limits, facts["vocab_size"])

    def compare(self, alone, disturbed, neighbours):
        """{stage: (rates alone, rates disturbed)}, in turn."""
        rates = {stage: ([], []) for stage, _ in STAGES}
        for child in (alone, disturbed):
            child.measure(*STAGES[0])
        for _ in range(self.options.rounds):
            for stage, n in STAGES:
                rates[stage][0].append(alone.measure(stage, n)["tokens_per_s"])
                with busy(neighbours):
                    rates[stage][1].append(disturbed.measure(stage, n)["tokens_per_s"])
        return rates

    def row(self, name, threads, neighbours, cpus_allowed, left):
        """One row, of couplet or of the peer; or why it could not be measured."""
        open_engine = self.peer if self.options.peer else self.couplet
        with contextlib.ExitStack() as stack:
            popen = {}
            if cpus_allowed:
                try:
                    popen["preexec_fn"] = stack.enter_context(quota(cpus_allowed))
                except EngineError as error:
                    return {"name": name, "left_out": str(error)}
            alone = stack.enter_context(contextlib.closing(open_engine(self.cpus)))
            disturbed = stack.enter_context(contextlib.closing(open_engine(threads, **popen)))
            rates = self.compare(alone, disturbed, neighbours)
        return {"name": name, "share": left, **{stage: result(*pair, left) for stage, pair in rates.items()}}


def result(alone, disturbed, left):
    ratio = statistics.median(disturbed) / statistics.median(alone)
    return {"alone": statistics.median(alone), "disturbed": statistics.median(disturbed), "worst": min(disturbed),
            "ratio": ratio, "collapsed": ratio < left / 2}


def show(rows):
    headings = ["beside couplet's alone, tokens per second", "CPUs left", *[f"{stage}{part}" for stage, _ in STAGES
                                                                           for part in ("", " alone", ", ratio")], ""]
    lines = []
    for row in rows:
        if "left_out" in row:
            continue
        cells = [cell for stage, _ in STAGES for cell in (f"{row[stage]['disturbed']:,.0f}", f"{row[stage]['alone']:,.0f}",
                                                          f"{row[stage]['ratio']:.2f}")]
        collapsed = any(row[stage]["collapsed"] for stage, _ in STAGES)
        lines.append([row["name"], f"{row['share']:.2f}", *cells, "collapsed" if collapsed else "in proportion"])
    print(render(headings, lines))
    for row in rows:
        if "left_out" in row:
            print(f"left out: {row['name']}: {row['left_out']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="smollm2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--decode", type=int, default=64)
    parser.add_argument("--couplet", default=engines.PROGRAM, help="the program")
    parser.add_argument("--peer", choices=engines.PEERS, help="measure this peer and not couplet (no quota)")
    parser.add_argument("--python", default=sys.executable, help="that has the peer")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cpus = len(os.sched_getaffinity(0))
    bench = Bench(options, cpus)
    rows = [bench.row(*row) for row in rows_to_measure(cpus) if not (options.peer and row[3])]
    if options.json:
        print(json.dumps({"cpus": cpus, "rows": rows}))
    else:
        show(rows)


if __name__ == "__main__":
    try:
        main()
    except EngineError as error:
        engines.stop(error)
