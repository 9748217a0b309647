#!/usr/bin/env python3
"""Whether llama.cpp loads what couplet writes and means the same by it.

    tools/compare_llama_cpp.py build/release/couplet MODEL [--types q8_0,q4_k_m]

MODEL, a Hugging Face folder or a GGUF file, is written as a GGUF file of each type (as-is: what MODEL has). A row a type:
whether `score MODEL --quantize TYPE` has the hash of the file's own; of the positions of a text, at how many llama.cpp's best
token is couplet's, and the greatest difference of log probabilities there; for how many of some texts, with and without
special tokens read out of them, the ids are the same; whether it knows the ends of a reply and the template; and llama.cpp's
greedy reply. Ends with status 1 where a hash, ids, ends or the template differ, or a file does not load.
Needs llama-cpp-python in the Python that runs it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import llama_cpp

TYPES = ("as-is", "f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k_s", "q3_k_m", "q3_k_l", "q4_k_s",
         "q4_k_m", "q5_k_s", "q5_k_m", "q6_k")
STORY = ("The capital of France is Paris, and the capital of Italy is Rome. Water boils at one hundred degrees Celsius and "
         "freezes at zero. In the beginning there was nothing, which exploded. She sells sea shells by the sea shore; the shells "
         "that she sells are sea shells, I am sure. def add(a, b):\n    return a + b\n\nOnce upon a time there was a little girl "
         "who lived in a village near the forest.")
PROMPT = "Once upon a time, there was a little"
TEXTS = (STORY, "", " ", "Hello world", "  two  spaces\t\ttabs\n\n\nlines \r\n", "it's we'll I'M DON'T", "3.14159 1234567 x2y33",
         "naïve café Ångström ß", "Привет мир, γειά σου", "日本語のテスト。中文 한국어", "नमस्ते สวัสดี שלום مرحبا", "😊🚀 👨‍👩‍👧",
         "for (int i = 0; i < n; ++i) { a[i] += b[i]; } // c++", "<|im_start|>user\nhi<|im_end|>\n", "<bos><start_of_turn>a<end_of_turn>",
         "a<s>b</s>c <unk>", "snake_case CamelCase HTTPServer", "\u00a0\u2003x\u3000y", "\x00\x01\x7f", "▁a ▁▁b")


def ask(couplet, *arguments, lines=None):
    text = None if lines is None else "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([couplet, *arguments, "--quiet"], input=text, capture_output=True, text=True, check=False,
                          env={**os.environ, "COUPLET_PACKED": "off"})
    if done.returncode != 0:
        raise RuntimeError(f"couplet {' '.join(arguments)}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()] if "--json" in arguments or lines else []


class Peer:
    """A file in llama.cpp."""

    def __init__(self, path, context=512):
        self.model = llama_cpp.Llama(path, logits_all=True, n_ctx=context, n_threads=1, verbose=False)

    def tokenize(self, text, special):
        return self.model.tokenize(text.encode(), add_bos=False, special=special)

    def best(self, ids):
        """(token, log probability of each token) at each position."""
        self.model.reset()
        self.model.eval(ids)
        rows = self.model.logits_to_logprobs(self.model.scores[: len(ids)])
        return [(int(row.argmax()), row) for row in rows]

    def reply(self, ids, count):
        self.model.reset()
        return self.model.create_completion(ids, temperature=0, max_tokens=count)["choices"][0]["text"]

    def ends(self):
        vocabulary = llama_cpp.llama_model_get_vocab(self.model.model)
        return {id for id in range(self.model.n_vocab()) if llama_cpp.llama_vocab_is_eog(vocabulary, id)}


def compare(couplet, source, kind, path):
    """A row, and what is wrong."""
    quantize = [] if kind == "as-is" else ["--type", kind]
    command = "convert" if os.path.isdir(source) else "quantize"
    ask(couplet, command, source, path, *quantize, "--allow-requantize", "--force")
    ids = ask(couplet, "tokenize", path, "--batch", "--bos", lines=[{"text": STORY}])[0]["ids"]
    question = [{"ids": ids}]
    own = ask(couplet, "score", path, "-", "--json", "--top", "1", lines=question)[0]
    # Weights that are quantized already stay as they are at load; only a file of floats or a folder can tell.
    at_load = [] if kind == "as-is" else ["--quantize", kind]
    try:
        same_bits = ask(couplet, "score", source, "-", "--json", *at_load, lines=question)[0]["hash"] == own["hash"]
    except RuntimeError as error:
        same_bits = str(error).rsplit("[", 1)[-1]
    peer = Peer(path)
    best = peer.best(ids)
    agree = sum(token == top[0] for (token, _), top in zip(best, own["top_ids"], strict=True))
    apart = max(abs(float(row[top[0]]) - value[0])
                for (_, row), top, value in zip(best, own["top_ids"], own["top_logprobs"], strict=True))
    wrong_texts = []
    for special in (False, True):
        more = ["--special"] if special else []
        answers = ask(couplet, "tokenize", path, "--batch", *more, lines=[{"text": text} for text in TEXTS])
        wrong_texts += [text for text, row in zip(TEXTS, answers, strict=True) if peer.tokenize(text, special) != row["ids"]]
    seen = ask(couplet, "inspect", path, "--json")[0]
    problems = [f"tokens of {text!r}" for text in wrong_texts]
    own_ends = {end["id"] for end in seen["tokenizer"]["ends"]}
    if not own_ends <= peer.ends():  # llama.cpp adds some by their names
        problems.append(f"ends: couplet {sorted(own_ends)}, llama.cpp {sorted(peer.ends())}")
    if (seen.get("chat_template") or "") != (peer.model.metadata.get("tokenizer.chat_template") or ""):
        problems.append("template")
    if same_bits is False:
        problems.append("bits at load")
    prompt = ask(couplet, "tokenize", path, "--batch", "--bos", lines=[{"text": PROMPT}])[0]["ids"]
    return {"type": kind, "bytes": os.path.getsize(path), "same_bits_at_load": same_bits, "top1": f"{agree}/{len(ids)}",
            "logprob_apart": round(apart, 4), "reply": peer.reply(prompt, 24), "problems": problems}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("couplet")
    parser.add_argument("model")
    parser.add_argument("--types", default=",".join(TYPES))
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.types.split(","):
            try:
                row = compare(options.couplet, options.model, kind, f"{folder}/made.gguf")
            except (RuntimeError, ValueError) as error:
                row = {"type": kind, "problems": [str(error)]}
            failed = failed or bool(row["problems"])
            print(json.dumps(row, ensure_ascii=False), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
