#!/usr/bin/env python3
"""Random Unicode through couplet's tokenizers and Hugging Face `tokenizers`: the ids must be the same.

    tools/compare_tokenizers.py COUPLET [NAME ...] [--strings 20000] [--seed N] [--every-code-point]

A NAME is a folder that tools/fetch_tokenizers.py makes, or smollm2.gguf, gemma3.gguf, or "constructs": the small files of
tests/data/tokenizer_constructs.jsonl, which share the strings among them (default: all of them). Half of the strings are read
with special tokens, half without; --every-code-point adds strings that together hold each one. Prints a line a vocabulary,
with the seed that repeats it, and the first strings that differ, shortened; ends with 1 if there is one. --install gets the one
version of PyPI `tokenizers` that it works with, where it isn't there.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "build" / "test-packages" / "tokenizers-0.23.3"
sys.path[:0] = [str(PACKAGES), str(ROOT / "bench"), str(ROOT / "tools")]
if sys.argv[1:] == ["--install"]:
    if not PACKAGES.exists():
        partial = PACKAGES.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--root-user-action", "ignore", "--no-deps", "--target", partial, "tokenizers==0.23.3"]
        if subprocess.run(command).returncode != 0:
            sys.exit("compare_tokenizers: pip could not install tokenizers 0.23.3: check the network, or pip's settings")
        partial.rename(PACKAGES)
    sys.exit()
if not PACKAGES.exists():
    sys.exit("compare_tokenizers: needs tokenizers 0.23.3: tools/compare_tokenizers.py --install gets it")
import tokenizers  # noqa: E402

import fetch_tokenizers  # noqa: E402
import hf_tokenizer  # noqa: E402

GGUF = {"smollm2.gguf": None, "gemma3.gguf": "gemma3"}  # and the folder whose vocabulary it is
STRINGS_A_RUN = 50000  # of the program
SHOWN = 5

SPACES = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\r", "\t", "\t\t", "\v", "\f", "\x1c", "\x1f", "\x85", "\xa0", "\u1680", "\u180e",
          "\u2000", "\u2009", "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\ufeff", " \n", "\n ", " \t ", "\n\r"]
QUOTES = ["'", "\u2019", "\u02bc", "`", "\uff07"]
SHORT = ["s", "t", "re", "ve", "m", "ll", "d", "S", "T", "RE", "Re", "rE", "VE", "vE", "M", "LL", "lL", "D", "\u017f", "x", "l", "r"]
CODE = ["()", "{}", "];", "->", "=>", "!=", "&&", "||", "//", "/*", "*/", "...", "--", "__", "$", "#", "@", "\\n", "%d", "<", ">", "</",
        "/>", "0x1F", "3.14", "1,000", "a_b", "fooBar", "HTTPServer", "x1y2", "\u2026", "\u2014", "\u00ab", "\u00bb", "\u3002", "\uff0c", "!", "?"]
EMOJI = ["\U0001f600", "\u2764", "\ufe0f", "\ufe0e", "\u200d", "\U0001f3fd", "\U0001f468", "\U0001f469", "\U0001f467", "\U0001f1e9",
         "\U0001f1ea", "\u20e3", "\U0001f3f4", "\U000e0067", "\U000e007f", "\u2640", "\u2642", "\U0001f680", "\U0001fae0"]
ODD = ["\0", "\x04", "\x7f", "\xad", "\u0130", "\u0131", "\u017f", "\u212a", "\u212b", "\u2126", "\ufb01", "\ufdfa", "\ufffd", "\ufffe",
       "\u200c", "\u200e", "\u2581", "\u2581\u2581", "\u0120", "\u010a", "<0x0A>", "<0xFF>", "\u00b5", "\u00bd", "\u2167", "\u24d0",
       "\U0001d400", "\U0001f130", "\ue000", "\U0010ffff", "\u1e9b\u0323", "\u0345", "\u0f71\u0f72", "\u115f", "\u1160"]
# Blocks with letters, marks and digits of their own: where they begin, and how many.
SCRIPTS = [(0x41, 58), (0xc0, 190), (0x1e00, 256), (0x370, 144), (0x400, 304), (0x531, 87), (0x591, 99), (0x600, 256), (0x700, 80),
           (0x780, 50), (0x7c0, 64), (0x900, 128), (0x980, 128), (0xa00, 128), (0xb00, 128), (0xb80, 128), (0xc00, 128), (0xc80, 128),
           (0xd00, 128), (0xd80, 128), (0xe00, 92), (0xe80, 96), (0xf00, 256), (0x1000, 160), (0x10a0, 96), (0x1100, 256),
           (0x1200, 384), (0x13a0, 96), (0x1400, 640), (0x1680, 32), (0x16a0, 96), (0x1780, 128), (0x1800, 176), (0x1b00, 128),
           (0x1f00, 256), (0x2c00, 96), (0x3041, 86), (0x30a1, 94), (0x3100, 48), (0x3130, 96), (0x4e00, 20992), (0xac00, 11172),
           (0xa000, 1165), (0xf900, 512), (0xfb50, 680), (0xfe70, 143), (0xff00, 240), (0x10330, 27), (0x10400, 80), (0x11000, 128),
           (0x1e900, 96), (0x1d400, 1024), (0x20000, 4000)]
MARKS = [(0x300, 0x70), (0x483, 5), (0x591, 45), (0x610, 11), (0x64b, 21), (0x6d6, 24), (0x898, 8), (0x8ca, 54), (0x93c, 1), (0x94d, 1),
         (0xe38, 3), (0xf71, 14), (0x1ab0, 31), (0x1dc0, 64), (0x20d0, 33), (0x302a, 6), (0x3099, 2), (0xfe20, 16), (0x1e000, 43)]
DIGITS = [0x30, 0x30, 0x30, 0x660, 0x6f0, 0x966, 0x9e6, 0xe50, 0xff10, 0x1d7ce, 0xb2, 0x2460, 0x2150, 0x4e00]


class Strings:
    """Strings of 1 to 20 parts of many kinds; `texts` are spellings that the vocabulary has, `added` its added tokens."""

    def __init__(self, seed, texts, added):
        self.random = random.Random(seed)
        self.texts, self.added = texts, added
        self.kinds = [self.scalar, self.word, self.word, self.marked, self.digits, self.run, self.piece, self.piece, self.special,
                      self.contraction, self.emoji, self.hangul, lambda: self.one_of(SPACES), lambda: self.one_of(SPACES),
                      lambda: self.one_of(CODE), lambda: self.one_of(ODD)]

    def one_of(self, choices):
        return choices[int(self.random.random() * len(choices))]

    def below(self, count):
        return int(self.random.random() * count)

    def in_block(self, blocks):
        first, count = self.one_of(blocks)
        return first, count

    def scalar(self):
        plane = self.one_of((0, 0, 0, 0, 1, 1, 2, 3, 14, self.below(17)))
        code_point = plane << 16 | self.below(0x10000)
        return "\ufffd" if 0xd800 <= code_point < 0xe000 else chr(code_point)

    def word(self):
        first, count = self.one_of(SCRIPTS)
        space = " " if self.random.random() < 0.4 else ""
        return space + "".join(chr(first + self.below(count)) for _ in range(1 + self.below(8)))

    def marked(self):
        marks = [self.one_of(MARKS) for _ in range(1 + self.below(4))]
        return self.one_of(("a", "e", "\u1e63", "\u0627", "\u304b", "\uac00", "\u1100\u1161", "\u0928", "")) + "".join(
            chr(first + self.below(count)) for first, count in marks)

    def digits(self):
        zero = self.one_of(DIGITS)
        return "".join(chr(zero + self.below(10)) for _ in range(1 + self.below(7)))

    def run(self):
        return self.one_of((self.scalar(), self.one_of(SPACES), "a", "=", "0", "\u3042", "ab")) * (1 + self.below(self.one_of((4, 20, 300))))

    def piece(self):
        return self.one_of(self.texts)

    def special(self):
        text = self.one_of(self.added) if self.added else "<s>"
        return self.one_of((text, text, " " + text, text + " ", text[:1 + self.below(len(text))], text[1:], text.upper()))

    def contraction(self):
        return self.one_of(("don", "I", "WE", "\u00e9", "1", " ", "")) + self.one_of(QUOTES) + self.one_of(SHORT)

    def hangul(self):
        """Of letters that may join to a syllable, and of those just beyond."""
        parts = [chr(first + self.below(count)) for first, count in ((0x10FF, 21), (0x1160, 23), (0x11A6, 30))]
        return self.one_of(("".join(parts), parts[0] + parts[1], chr(0xAC00 + 28 * self.below(399)) + parts[2]))

    def emoji(self):
        return "".join(self.one_of(EMOJI) for _ in range(1 + self.below(5)))

    def string(self):
        return "".join(self.one_of(self.kinds)() for _ in range(1 + self.below(self.one_of((3, 8, 20)))))


def models_folder():
    return pathlib.Path(os.environ.get("COUPLET_MODELS") or pathlib.Path.home() / ".cache" / "couplet")


def every_code_point():
    code_points = [chr(code_point) for code_point in range(sys.maxunicode + 1) if not 0xD800 <= code_point < 0xE000]
    return ["".join(f"a{letter}b {letter}" for letter in code_points[i:i + 50]) for i in range(0, len(code_points), 50)]


def constructs():
    """The files as folders, each for as long as it is looked at."""
    with open(ROOT / "tests" / "data" / "tokenizer_constructs.jsonl", encoding="utf-8") as lines:
        models = json.loads(next(lines))
        for line in lines:
            construct = json.loads(line)
            described = construct["file"]
            if isinstance(described["model"], str):
                described["model"] = models[described["model"]]
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "tokenizer.json").write_text(json.dumps(described), encoding="utf-8")
                yield construct["name"], pathlib.Path(folder)


def load(name):
    """Where couplet finds it, Hugging Face's tokenizer, and what the latter is to read instead of a string."""
    folder = fetch_tokenizers.folder_of(GGUF.get(name, name) or "")
    path = models_folder() / name if name in GGUF else folder
    theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")) if GGUF.get(name, name) else hf_tokenizer.load(path)
    theirs.no_truncation()
    theirs.no_padding()
    lacking = hf_tokenizer.lacking_bytes(theirs)  # Hugging Face drops what the vocabulary can't spell
    return path, theirs, lambda text: "".join("\ufffd" if lacking & set(c.encode()) else c for c in text) if lacking else text


def added_tokens(theirs, path):
    """Those that couplet knows too, and the others: gemma3.gguf has some as control tokens that the folder has not as special."""
    added = {token.content: token.special for token in theirs.get_added_tokens_decoder().values()}
    if path.suffix != ".gguf":
        return set(added), set()
    keys = hf_tokenizer.read_keys(path)
    kinds = dict(zip(keys["tokens"], keys["token_type"]))
    known = {text for text, special in added.items()
             if kinds.get(text) == (hf_tokenizer.CONTROL if special else hf_tokenizer.USER_DEFINED)}
    return known, set(added) - known


def ask(program, path, strings, special):
    command = [program, "tokenize", path, "--batch", "--quiet"] + (["--special"] if special else [])
    lines = "".join(json.dumps({"text": text}) + "\n" for text in strings)
    done = subprocess.run(command, input=lines, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"compare_tokenizers: {program} tokenize {path}: {done.stderr.strip()}")
    return [json.loads(line)["ids"] for line in done.stdout.splitlines()]


class Pair:
    """Both tokenizers of a vocabulary."""

    def __init__(self, program, path, theirs, readable=lambda text: text):
        self.program, self.path, self.theirs, self.readable = program, path, theirs, readable

    def differing(self, strings, special):
        """(text, Hugging Face's ids, couplet's ids) where they are not the same."""
        self.theirs.encode_special_tokens = not special
        wanted = self.theirs.encode_batch_fast([self.readable(text) for text in strings], add_special_tokens=False)
        answers = zip(strings, wanted, ask(self.program, self.path, strings, special), strict=True)
        return [(text, right.ids, ours) for text, right, ours in answers if right.ids != ours]

    def shortened(self, case, special):
        """A shorter text that differs too."""
        step = len(case[0]) // 2
        while step > 0:
            text = case[0]
            shorter = self.differing([text[:i] + text[i + step:] for i in range(0, len(text), step)], special)
            case, step = (min(shorter, key=lambda one: len(one[0])), step) if shorter else (case, step // 2)
        return case


def compare(name, pair, count, seed, more):
    theirs = pair.theirs
    added, others = added_tokens(theirs, pair.path)
    others.add(getattr(theirs.model, "unk_token", None))  # in couplet no text becomes it
    texts = [theirs.decode([theirs.token_to_id(text)], skip_special_tokens=False) or text
             for text in sorted(set(theirs.get_vocab()) - others)]
    strings = Strings(seed, texts, sorted(added))
    num_differ = 0
    for special in (False, True):
        for begin in range(0, count // 2, STRINGS_A_RUN):
            batch = [strings.string() for _ in range(min(STRINGS_A_RUN, count // 2 - begin))]
            differ = pair.differing(batch + (more if begin == 0 else []), special)
            for case in differ[:max(0, SHOWN - num_differ)]:
                text, right, ours = pair.shortened(case, special)
                print(f"{name}: {ascii(text)}{' --special' if special else ''}: expected {right}, got {ours}", flush=True)
            num_differ += len(differ)
    print(f"{name}: {2 * (count // 2 + len(more))} strings, {num_differ} differ (--seed {seed})", flush=True)
    return num_differ


def compare_named(name, options):
    more = every_code_point() if options.every_code_point else []
    if name != "constructs":
        return compare(name, Pair(options.couplet, *load(name)), options.strings, options.seed, more)
    return sum(compare(name, Pair(options.couplet, folder, tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))),
                       max(2, options.strings // 50), options.seed, more) for name, folder in constructs())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("couplet")
    parser.add_argument("names", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--strings", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--every-code-point", action="store_true")
    options = parser.parse_args()
    names = options.names or [*fetch_tokenizers.FILES, *GGUF, "constructs"]
    sys.exit(1 if sum(compare_named(name, options) for name in names) else 0)


if __name__ == "__main__":
    main()
