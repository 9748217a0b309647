"""The engines that compare.py and neighbours.py measure, each a child that stays loaded and sleeps until it is asked."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(os.path.dirname(HERE), "build", "bench")
PROGRAM = os.path.join(BUILD, "couplet")
INSTALL = "python3 -m venv build/peers && build/peers/bin/pip install llama-cpp-python openvino-genai numpy"
PEERS = {"llama.cpp": "llama_cpp", "openvino": "openvino_genai"}  # and the module that has it


class EngineError(Exception):
    """An engine could not be started, or stopped answering; the message is one line."""


class Child:
    """A process that answers each line on its standard input with a JSON line."""

    def __init__(self, command, **popen):
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                            **{"stderr": subprocess.DEVNULL, **popen})
        except OSError as error:
            raise EngineError(f"{command[0]}: {error.strerror}; `make bench` builds it") from None

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise EngineError(f"{self.name} ended with status {self.process.wait()}")
        return json.loads(line)

    def ask(self, line):
        try:
            print(line, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            raise EngineError(f"{self.name} ended with status {self.process.wait()}") from None
        return self.read()

    def cpu_seconds(self):
        """That all its threads have used so far."""
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Couplet(Child):
    name = "couplet"

    def __init__(self, program, model, threads, limits, more=(), **popen):
        """`limits`: {"prefill": [...], "depth": [...], "batch": [...], "decode": n}, what will be asked at most."""
        command = [program, "bench", model, "--requests", "--quiet", *more]
        if threads:
            command += ["--threads", str(threads)]
        for option, value in limits.items():
            command += ["--" + option, ",".join(map(str, value)) if isinstance(value, list) else str(value)]
        super().__init__(command, stderr=subprocess.PIPE, **popen)
        self.facts = {"version": ask_version(program), "settings": " ".join(["--threads", str(threads), *more])}

    def read(self):
        try:
            return super().read()
        except EngineError:
            raise EngineError(self.process.stderr.read().strip() or "couplet said nothing") from None

    def measure(self, stage, n, batch=1):
        return self.ask(f"{stage} {n} {batch}")

    def peaks(self):
        return self.ask("peaks")

    def close(self):
        super().close()
        self.process.stderr.close()


class Peer(Child):
    def __init__(self, name, python, model, threads, limits, vocab_size):
        self.name = name
        context = max([*limits["prefill"], *[depth + 1 for depth in limits["depth"]]]) + limits["decode"] + 8
        super().__init__([python, os.path.join(HERE, "peer.py"), name, model, "--threads", str(threads), "--context",
                          str(context), "--decode", str(limits["decode"]), "--vocab", str(vocab_size)])
        self.facts = self.read()
        if "error" in self.facts:
            self.close()
            raise EngineError(f"{name}: {self.facts['error']}")

    def measure(self, stage, n):
        return self.ask(f"{stage} {n}")


def run(program, *arguments, text=None):
    """What the program answers; EngineError is its own line where it fails."""
    try:
        done = subprocess.run([program, *arguments], input=text, capture_output=True, text=True, check=False)
    except OSError as error:
        raise EngineError(f"{program}: {error.strerror}; `make bench` builds it") from None
    if done.returncode != 0:
        raise EngineError(done.stderr.strip())
    return done.stdout


def ask_version(program):
    return run(program, "--version").strip()


def ask_json(program, *arguments):
    return json.loads(run(program, *arguments, "--json"))


def installed_peers(python):
    """Those that this Python can import, without the cost of importing them."""
    script = "import importlib.util as u, sys; print(*[n for n in sys.argv[1:] if u.find_spec(n)])"
    found = subprocess.run([python, "-c", script, *PEERS.values()], capture_output=True, text=True, check=True).stdout.split()
    return [name for name, module in PEERS.items() if module in found]


def find_model(name):
    """A path of a GGUF file; a catalogue name is a file in the models folder."""
    if name.endswith(".gguf"):
        return name
    return os.path.join(os.environ.get("COUPLET_MODELS") or os.path.expanduser("~/.cache/couplet"), name + ".gguf")


def stop(message):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {message}")
