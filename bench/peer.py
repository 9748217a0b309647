#!/usr/bin/env python3
"""One peer engine as a child of compare.py: loads a GGUF file, then measures what lines on standard input ask for.

    peer.py llama.cpp|openvino MODEL --threads 2 --context 2200 --decode 64

"prefill N" answers with the speed of a prompt of N random tokens, "decode N" with that of so many tokens after N others,
each as a JSON line {"tokens_per_s"}; the first line says {"version", "settings"}, or {"error"}. Between lines it sleeps.
Needs llama-cpp-python or openvino-genai and numpy, in the Python that runs it.
"""

import argparse
import json
import os
import random
import sys
import time
from importlib.metadata import version


class LlamaCpp:
    """Through the C API, so that nothing but the engine is timed. The best settings for speed that it has: flash attention,
    micro-batches of 512, a sliding-window cache no larger than the window."""

    def __init__(self, options):
        import llama_cpp

        self.api, self.random = llama_cpp, random.Random(1)
        self.quiet = llama_cpp.llama_log_callback(lambda level, text, user: None)
        llama_cpp.llama_log_set(self.quiet, None)
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(options.model.encode(), llama_cpp.llama_model_default_params())
        if not self.model:
            raise RuntimeError("the file does not load")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = options.context, 2048, 512
        params.n_threads = params.n_threads_batch = options.threads
        params.flash_attn_type = 1
        params.swa_full = False
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        self.vocab_size = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.num_decode = options.decode

    def about(self):
        build = self.api.llama_print_system_info().decode().strip(" |")
        return {"version": "llama-cpp-python " + version("llama_cpp_python"),
                "settings": f"flash attention, n_batch 2048, n_ubatch 512, swa_full off; {build}"}

    def feed(self, count):
        tokens = [self.random.randrange(10, self.vocab_size - 10) for _ in range(count)]
        for i in range(0, count, 2048):
            part = tokens[i:i + 2048]
            array = (self.api.llama_token * len(part))(*part)
            if self.api.llama_decode(self.context, self.api.llama_batch_get_one(array, len(part))) != 0:
                raise RuntimeError("llama_decode failed")
        self.api.llama_synchronize(self.context)

    def start(self, depth):
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)
        if depth:
            self.feed(depth)

    def prefill(self, n):
        self.start(0)
        began = time.perf_counter()
        self.feed(n)
        return n / (time.perf_counter() - began)

    def decode(self, depth):
        self.start(depth)
        self.feed(1)
        began = time.perf_counter()
        for _ in range(self.num_decode):
            self.feed(1)
        return self.num_decode / (time.perf_counter() - began)


class OpenVino:
    """Its pipeline with its own defaults, by its own clock: the time to the first token, and from there on that of each."""

    def __init__(self, options):
        import numpy
        import openvino
        import openvino_genai

        self.numpy, self.openvino, self.genai = numpy, openvino, openvino_genai
        self.random = numpy.random.default_rng(1)
        self.pipeline = openvino_genai.LLMPipeline(options.model, "CPU", INFERENCE_NUM_THREADS=options.threads)
        self.num_decode, self.vocab_size = options.decode, options.vocab

    def about(self):
        return {"version": "OpenVINO GenAI " + version("openvino_genai"), "settings": "defaults, end ids ignored"}

    def generate(self, length, num_tokens):
        config = self.genai.GenerationConfig()
        config.max_new_tokens, config.ignore_eos, config.do_sample = num_tokens, True, False
        ids = self.random.integers(10, self.vocab_size - 10, (1, length)).astype(self.numpy.int64)
        return self.pipeline.generate(self.openvino.Tensor(ids), config).perf_metrics

    def prefill(self, n):
        return n / (self.generate(n, 1).get_ttft().mean / 1e3)

    def decode(self, depth):
        return 1e3 / self.generate(max(depth, 1), self.num_decode + 1).get_tpot().mean


PEERS = {"llama.cpp": LlamaCpp, "openvino": OpenVino}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("model")
    for option, default in (("threads", 2), ("context", 2200), ("decode", 64), ("vocab", 32000)):
        parser.add_argument("--" + option, type=int, default=default)
    options = parser.parse_args()
    # The engines print what they like: answers go to what was standard output, and nothing else does.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(value):
        print(json.dumps(value), file=answers, flush=True)

    try:
        peer = PEERS[options.peer](options)
    except Exception as error:  # whatever a foreign library throws: it is the answer
        return answer({"error": str(error).strip().split("\n")[-1], "missing": isinstance(error, ImportError)})
    answer(peer.about())
    for line in sys.stdin:
        what, n = line.split()
        answer({"tokens_per_s": getattr(peer, what)(int(n))})


if __name__ == "__main__":
    main()
