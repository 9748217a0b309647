#!/usr/bin/env python3
"""couplet and its peers in turn on the same files: tokens per second of both stages, and the ratio to the fastest peer.

    bench/compare.py [MODEL ...] [--python build/peers/bin/python] [--threads 1,2] [--rounds 5] [--json]

MODEL is a GGUF file or a catalogue name (default: smollm2 gemma3). The peers, llama.cpp (llama-cpp-python) and OpenVINO
GenAI, are taken from the Python that --python names: see INSTALL in engines.py. All engines stay loaded, each in a process
that sleeps while another is measured; a round measures each once, the next begins with another; the best of the rounds
counts on both sides. The machine's peaks are measured between, and shares of them hold for couplet.

ik_llama.cpp is in no package registry. Its column, marked with *, is not measured here: it is llama.cpp's figure times what
ik_llama.cpp reached over it on a two-core AVX-512 VNNI machine.
"""

import argparse
import json
import os
import statistics
import sys
import time

import engines
from engines import Couplet, EngineError, Peer

# ik_llama.cpp over llama.cpp, by a part of the file's name: {(stage, n): multiple}; n None holds for every n.
DERIVED = {"smollm2": {("prefill", 512): 3.9, ("prefill", 2048): 3.3, ("decode", None): 1.6},
           "gemma": {("prefill", None): 1.6, ("decode", None): 1.0}}
BUSY_SHARE = 0.1
IDLE_CPU_SHARE = 0.02  # a sleeping engine that uses more disturbs the one measured


def integers(text):
    return [int(part) for part in text.split(",")]


def read_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["smollm2", "gemma3"], metavar="MODEL")
    parser.add_argument("--threads", type=integers, default=[1, 2])
    parser.add_argument("--prefill", type=integers, default=[128, 512, 2048], help="prompt lengths")
    parser.add_argument("--depth", type=integers, default=[0, 512, 2048], help="positions before decode")
    parser.add_argument("--decode", type=int, default=48, help="tokens decoded")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--patience", type=float, default=0, metavar="S",
                        help="before each measurement, wait up to S seconds for other programs to pause")
    parser.add_argument("--peers", default="", help="llama.cpp,openvino or none; default: those installed")
    parser.add_argument("--python", default=sys.executable, help="that has the peers")
    parser.add_argument("--couplet", default=engines.PROGRAM, help="the program")
    parser.add_argument("--option", action="append", default=[], help="passed on to couplet, as in --option=--precision=fine")
    parser.add_argument("--json", action="store_true", help="one JSON object with every round's figure")
    return parser.parse_args(arguments)


def peers_to_run(options):
    installed = engines.installed_peers(options.python)
    if options.peers == "none":
        return []
    wanted = options.peers.split(",") if options.peers else installed
    unknown = [name for name in wanted if name not in engines.PEERS]
    if unknown:
        raise EngineError(f"--peers: expected of {', '.join(engines.PEERS)}, got {', '.join(unknown)}")
    missing = [name for name in wanted if name not in installed]
    if missing or not wanted:
        raise EngineError(f"{options.python} has no {' and no '.join(missing or engines.PEERS)}; to install: {engines.INSTALL}, "
                          "then --python build/peers/bin/python")
    return wanted


# ---- measuring -------------------------------------------------------------------------------------------------------

def start_engines(options, peers, model, threads):
    """couplet first; and why a peer is missing, by its name."""
    limits = {"prefill": options.prefill, "depth": options.depth, "decode": options.decode}
    facts = engines.ask_json(options.couplet, "inspect", model)
    children = [Couplet(options.couplet, model, threads, {**limits, "batch": [1]}, options.option)]
    failures = {}
    for name in peers:
        try:
            children.append(Peer(name, options.python, model, threads, limits, facts["vocab_size"]))
        except EngineError as error:
            failures[name] = str(error)
    return children, failures


class Quiet:
    """Whether only the engine measured was at work: the most CPU time a second that another engine used meanwhile, and the
    share of all CPUs that went to other programs, or to other machines on the same host."""

    def __init__(self, children):
        self.share, self.began, self.busy = {}, time.perf_counter(), cpu_times()
        self.used = sum(child.cpu_seconds() for child in children)

    @staticmethod
    def wait(patience):
        """Until other programs use less than BUSY_SHARE of the CPUs for a moment, but no more than `patience` seconds."""
        end = time.perf_counter() + patience
        while time.perf_counter() < end:
            began, (busy, _) = time.perf_counter(), cpu_times()
            time.sleep(0.3)
            if cpu_times()[0] - busy < BUSY_SHARE * os.cpu_count() * (time.perf_counter() - began):
                return

    def report(self, children):
        seconds = (time.perf_counter() - self.began) * os.cpu_count()
        busy, stolen = (after - before for before, after in zip(self.busy, cpu_times()))
        ours = sum(child.cpu_seconds() for child in children) - self.used
        return {"idle_engines": {name: round(share, 3) for name, share in self.share.items()},
                "other_programs": round(max(busy - ours, 0) / seconds, 3), "stolen": round(stolen / seconds, 3)}

    def watch(self, children, active, work):
        others = [child for child in children if child is not active]
        before, began = [child.cpu_seconds() for child in others], time.perf_counter()
        result = work()
        seconds = max(time.perf_counter() - began, 0.1)  # /proc counts in hundredths
        for child, used in zip(others, before):
            self.share[child.name] = max(self.share.get(child.name, 0), (child.cpu_seconds() - used) / seconds)
        return result


def cpu_times():
    """Seconds that all CPUs have worked, and that a host took from them."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    hertz = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / hertz, steal / hertz


def measure(children, stage, n, rounds, quiet, patience=0):
    """{engine: [answer of each round]} and the best peaks seen between."""
    answers, peaks = {child.name: [] for child in children}, {}
    for number in range(rounds):
        for child in children[number % len(children):] + children[:number % len(children)]:
            quiet.wait(patience)
            answers[child.name].append(quiet.watch(children, child, lambda: child.measure(stage, n)))
        if number < 3:
            seen = children[0].peaks()
            peaks = {key: max(value, peaks.get(key, 0)) for key, value in seen.items() if key != "what"}
    return answers, peaks


def measure_all(options, peers, model, threads):
    children, failures = start_engines(options, peers, model, threads)
    quiet, rows = Quiet(children), []
    try:
        for child in children:
            child.measure("prefill", min(options.prefill))  # first use: memory and threads are made
        for stage, numbers in (("prefill", options.prefill), ("decode", options.depth)):
            for n in numbers:
                answers, peaks = measure(children, stage, n, options.rounds, quiet, options.patience)
                rows.append(row_of(os.path.basename(model), stage, n, answers, peaks))
        facts, disturbed = {child.name: child.facts for child in children}, quiet.report(children)
    finally:
        for child in children:
            child.close()
    return {"model": model, "threads": threads, "engines": facts, "failures": failures, "rows": rows, "disturbed": disturbed}


# ---- figures ---------------------------------------------------------------------------------------------------------

def derived_multiple(model, stage, n):
    for part, multiples in DERIVED.items():
        if part in model.lower():
            return multiples.get((stage, n), multiples.get((stage, None)))
    return None


def ratio(ours, theirs):
    return ours / max(theirs) if theirs else None


def row_of(model, stage, n, answers, peaks):
    rates = {name: [answer["tokens_per_s"] for answer in given] for name, given in answers.items()}
    best = {name: max(values) for name, values in rates.items()}
    ours = max(answers["couplet"], key=lambda answer: answer["tokens_per_s"])
    measured = {name: rate for name, rate in best.items() if name != "couplet"}
    multiple = derived_multiple(model, stage, n)
    derived = multiple * best["llama.cpp"] if multiple and "llama.cpp" in best else None
    return {"stage": stage, "n": n, "tokens_per_s": best, "median": {name: statistics.median(values) for name, values in rates.items()},
            "rounds": rates, "ik_llama.cpp_derived": derived, "peaks": peaks,
            "of_arithmetic": ours["gflops"] * 1e9 / peaks["int8_operations_per_s"],
            "of_memory": ours["gbytes_per_s"] * 1e9 / peaks["read_bytes_per_s"],
            "over_fastest_peer": ratio(best["couplet"], list(measured.values())),
            "over_fastest_with_derived": ratio(best["couplet"], [*measured.values(), *([derived] if derived else [])])}


# ---- what is printed -------------------------------------------------------------------------------------------------

def number(value, digits=0):
    return "-" if value is None else f"{value:,.{digits}f}"


def render(headings, lines):
    """A table with its columns set right, but for the first."""
    widths = [max(len(line[i]) for line in [headings, *lines]) for i in range(len(headings))]
    return "\n".join("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(line, widths))) for line in [headings, *lines])


def table(run, peers):
    columns = {"stage": lambda row: row["stage"], "n": lambda row: number(row["n"]),
               "couplet": lambda row: number(row["tokens_per_s"]["couplet"]),
               "of arithmetic": lambda row: f"{row['of_arithmetic']:.0%}", "of memory": lambda row: f"{row['of_memory']:.0%}"}
    for name in peers:
        columns[name] = lambda row, name=name: number(row["tokens_per_s"].get(name))
    if "llama.cpp" in peers:
        columns["ik_llama.cpp*"] = lambda row: number(row["ik_llama.cpp_derived"])
    if peers:
        columns["over fastest"] = lambda row: number(row["over_fastest_peer"], 2)
    if "llama.cpp" in peers:
        columns["over fastest*"] = lambda row: number(row["over_fastest_with_derived"], 2)
    return render(list(columns), [[cell(row) for cell in columns.values()] for row in run["rows"]])


def describe_peaks(rows):
    best = {key: max(row["peaks"][key] for row in rows) for key in rows[0]["peaks"]}
    return (f"peaks: int8 {best['int8_operations_per_s'] / 1e9:,.0f} G/s, float {best['float_operations_per_s'] / 1e9:,.0f} G/s, "
            f"reads {best['read_bytes_per_s'] / 1e9:.1f} GB/s")


def show(run, peers):
    print(f"\n{os.path.basename(run['model'])}, {run['threads']} thread{'s' if run['threads'] > 1 else ''}, tokens per second; "
          + describe_peaks(run["rows"]))
    print(table(run, peers))
    for failure in run["failures"].values():
        print("failed: " + failure)
    disturbed = run["disturbed"]
    print(f"other programs took {disturbed['other_programs']:.0%} of the CPUs meanwhile, other machines {disturbed['stolen']:.0%}")
    for name, share in disturbed["idle_engines"].items():
        if share > IDLE_CPU_SHARE:
            print(f"note: {name} used {share:.0%} of a CPU while others were measured")


def scaling(runs):
    """Two threads over one, best of the rounds: one line for each model that ran with both."""
    lines = []
    for one in runs:
        for two in runs:
            if (one["model"], one["threads"], two["threads"]) == (two["model"], 1, 2):
                gains = [f"{row['stage']} {row['n']} {double['tokens_per_s']['couplet'] / row['tokens_per_s']['couplet']:.2f}"
                         for row, double in zip(one["rows"], two["rows"])]
                lines.append(f"{os.path.basename(one['model'])}, two threads over one: " + ", ".join(gains))
    return lines


def about(options, machine):
    return {"command": " ".join(["bench/compare.py", *sys.argv[1:]]), "date": time.strftime("%Y-%m-%d"),
            "rounds": options.rounds, "decode": options.decode, "machine": machine, "load_average": os.getloadavg()}


def main():
    options = read_arguments(sys.argv[1:])
    peers = peers_to_run(options)
    facts = about(options, engines.ask_json(options.couplet, "inspect", "--machine"))
    if not options.json:
        print(facts["command"])
        print(f"{facts['machine']['cpu']}, level {facts['machine']['chosen']}, {facts['machine']['cpus']['affinity']} CPUs, "
              f"load average {facts['load_average'][0]:.1f}; best of {options.rounds}, {options.decode} tokens decoded")
    runs = []
    for model in map(engines.find_model, options.models):
        for threads in options.threads:
            runs.append(measure_all(options, peers, model, threads))
            if not options.json:
                show(runs[-1], peers)
                sys.stdout.flush()
    if options.json:
        return print(json.dumps({**facts, "runs": runs}))
    versions = {name: f"{engine['version']} ({engine['settings']})" for run in runs for name, engine in run["engines"].items()}
    print("\n" + "\n".join([*scaling(runs), *versions.values()]))
    if "llama.cpp" in peers:
        print("* derived, not measured: llama.cpp times what ik_llama.cpp reached over it on another machine of this kind")


if __name__ == "__main__":
    try:
        main()
    except EngineError as error:
        engines.stop(error)
