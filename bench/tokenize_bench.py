#!/usr/bin/env python3
"""couplet's tokenizer and Hugging Face `tokenizers` in turn, on one thread, on prose and on code.

    build/peers/bin/python bench/tokenize_bench.py [MODEL ...] [--text NAME=FILE ...] [--rounds 5] [--json]

MODEL is a GGUF file or a catalogue name (default: smollm2 gemma3). Both read the same vocabulary, and every text's ids are
seen to be the same before anything is timed. The texts are what every Python has (its help topics, its library's source),
unless --text names others; they are cut at line ends into pieces of about 16 kB, and every other piece is timed, in
seconds of the thread's CPU. Needs `pip install tokenizers`, and the
bench build (`make bench`) for the worker that times couplet's library without its program.
"""

import argparse
import json
import os
import sys
import sysconfig
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import engines
from compare import render
from engines import Child, EngineError

TEXT_BYTES, PIECE_BYTES = 1 << 20, 16 << 10
INSTALL = "python3 -m venv build/peers && build/peers/bin/pip install tokenizers, then build/peers/bin/python"


class Worker(Child):
    name = "tokenizer_worker"


def prose():
    from pydoc_data.topics import topics
    return "\n".join(topics[name] for name in sorted(topics))


def code():
    folder = sysconfig.get_paths()["stdlib"]
    text = ""
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py") and len(text) < TEXT_BYTES:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text += file.read()
    return text


def read_texts(named):
    texts = {}
    for item in named:
        name, _, path = item.partition("=")
        with open(path, encoding="utf-8", errors="replace") as file:
            texts[name] = file.read()
    return texts or {"prose": prose(), "code": code()}


def cut(text):
    """Into pieces that end at line ends where they can, of at most PIECE_BYTES characters; NUL ends a piece in the worker."""
    text, pieces, begin = text.replace("\0", " ")[:TEXT_BYTES], [], 0
    while begin < len(text):
        end = min(begin + PIECE_BYTES, len(text))
        line_end = text.rfind("\n", begin, end)
        end = line_end + 1 if line_end > begin and end < len(text) else end
        pieces.append(text[begin:end])
        begin = end
    return pieces


def check_ids(program, model, tokenizer, pieces):
    """Of the whole text, by the product itself; raises at the first piece that differs."""
    lines = "".join(json.dumps({"text": piece}) + "\n" for piece in pieces)
    answers = engines.run(program, "tokenize", model, "--batch", "--quiet", text=lines).splitlines()
    for number, (piece, line) in enumerate(zip(pieces, answers, strict=True)):
        ours, theirs = json.loads(line)["ids"], tokenizer.encode(piece, add_special_tokens=False).ids
        if ours != theirs:
            at = next((i for i, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]), min(len(ours), len(theirs)))
            raise EngineError(f"{os.path.basename(model)}: piece {number} differs at token {at}: couplet {ours[at:at + 5]}, "
                              f"tokenizers {theirs[at:at + 5]}")


def time_theirs(tokenizer, pieces):
    """The faster of its two ways: one text a call, with offsets, and all in one call, without. It remembers words that it has
    seen: before each it has seen the other half of the text, and not what is timed, as on a text that is new."""
    ways = (lambda: [tokenizer.encode(piece, add_special_tokens=False) for piece in pieces[::2]],
            lambda: tokenizer.encode_batch_fast(pieces[::2], add_special_tokens=False))
    seconds = []
    for way in ways:
        tokenizer.model._clear_cache()
        tokenizer.encode_batch_fast(pieces[1::2], add_special_tokens=False)
        began = time.process_time()
        way()
        seconds.append(time.process_time() - began)
    return min(seconds)


def measure(options, model, name, tokenizer, pieces):
    check_ids(options.couplet, model, tokenizer, pieces)
    with tempfile.NamedTemporaryFile("wb") as file:
        file.write(b"".join(piece.encode() + b"\0" for piece in pieces[::2]))
        file.flush()
        worker = Worker([options.worker, model])
        try:
            ours, theirs = [], []
            for _ in range(options.rounds):
                answer = worker.ask(file.name)
                ours.append(answer["seconds"])
                theirs.append(time_theirs(tokenizer, pieces))
        finally:
            worker.close()
    rates = [answer["bytes"] / 1e6 / min(seconds) for seconds in (ours, theirs)]
    return {"model": os.path.basename(model), "text": name, "bytes": answer["bytes"], "tokens": answer["tokens"],
            "couplet_mb_per_s": rates[0], "tokenizers_mb_per_s": rates[1], "ratio": rates[0] / rates[1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["smollm2", "gemma3"], metavar="MODEL")
    parser.add_argument("--text", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--couplet", default=engines.PROGRAM, help="the program, which checks the ids")
    parser.add_argument("--worker", default=os.path.join(engines.BUILD, "bench", "tokenizer_worker"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        import hf_tokenizer
        import tokenizers
    except ImportError as error:
        raise EngineError(f"{sys.executable} has no {error.name}; to install: {INSTALL}") from None
    results = []
    for model in map(engines.find_model, options.models):
        tokenizer = hf_tokenizer.load(model)
        for name, text in read_texts(options.text).items():
            results.append(measure(options, model, name, tokenizer, cut(text)))
    if options.json:
        return print(json.dumps({"tokenizers": tokenizers.__version__, "results": results}))
    print(f"MB a second on one thread, best of {options.rounds}; tokenizers {tokenizers.__version__}")
    print(render(["model", "text", "kB", "tokens", "couplet", "tokenizers", "ratio"],
                 [[r["model"], r["text"], f"{r['bytes'] / 1e3:,.0f}", f"{r['tokens']:,}", f"{r['couplet_mb_per_s']:.1f}",
                   f"{r['tokenizers_mb_per_s']:.2f}", f"{r['ratio']:.1f}"] for r in results]))


if __name__ == "__main__":
    try:
        main()
    except EngineError as error:
        engines.stop(error)
