#!/usr/bin/env python3
"""A GGUF file of random weights in the shape of a real model: for measuring sizes whose weights one may not share.

    tools/make_synthetic.py llama3.2-1b Q4_K_M /tmp/1b.gguf [--seed 1]

Shapes: llama3.2-1b, llama3.1-8b, and tiny for tests. Mixes: Q4_K_M and Q4_0, each tensor with the type that llama.cpp's
mix of that name gives it. The rope_freqs tensor of Llama 3 is left out. Weights have the spread 1 / sqrt(inputs), so
that activations keep their size from layer to layer; what such a model says is nonsense. The vocabulary is made up:
the 256 bytes, pieces that merge letter by letter, special tokens at the end. The same arguments give the same bytes.
"""

import argparse
import array
import math
import os
import random
import struct
import sys
from dataclasses import dataclass

ALIGNMENT = 32
CHUNK_BYTES = 8 << 20
NUM_SPECIAL = 256
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # GGUF's kinds of metadata


@dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    context: int
    tied: bool  # the embeddings are the head too


SHAPES = {
    "llama3.2-1b": Shape(16, 2048, 8192, 32, 8, 64, 128256, 131072, True),
    "llama3.1-8b": Shape(32, 4096, 14336, 32, 8, 128, 128256, 131072, False),
    "tiny": Shape(8, 256, 512, 4, 2, 64, 1024, 2048, False),
}


@dataclass(frozen=True)
class Quantized:
    number: int  # GGUF's
    values: int  # of a block
    bytes: int
    # (offset of an f16 scale in the block, its size in spreads of the weights when all other bytes are random)
    scales: tuple


# Q4_K's weight is d * sc * q - dmin * m with sc and m in 0..63 and q in 0..15; with dmin = 7.5 d the mean is 0.
F32 = 0
Q4_0 = Quantized(2, 32, 18, ((0, 1 / 4.64),))
Q4_K = Quantized(12, 256, 144, ((0, 1 / 255), (2, 7.5 / 255)))
Q6_K = Quantized(14, 256, 210, ((208, 1 / 1365),))


def has_more_bits(layer, layers):
    """The layers whose attn_v and ffn_down get Q6_K in Q4_K_M: the outer eighths and every third between."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def tensors(shape, mix):
    """(name, type, rows, columns) in file order; rows 0: a vector."""
    plain = Q4_K if mix == "Q4_K_M" else Q4_0
    yield "token_embd.weight", Q6_K if shape.tied else plain, shape.vocabulary, shape.hidden
    for layer in range(shape.layers):
        finer = Q6_K if mix == "Q4_K_M" and has_more_bits(layer, shape.layers) else plain
        q_size, kv_size = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        block = f"blk.{layer}."
        yield block + "attn_norm.weight", F32, 0, shape.hidden
        yield block + "attn_q.weight", plain, q_size, shape.hidden
        yield block + "attn_k.weight", plain, kv_size, shape.hidden
        yield block + "attn_v.weight", finer, kv_size, shape.hidden
        yield block + "attn_output.weight", plain, shape.hidden, q_size
        yield block + "ffn_norm.weight", F32, 0, shape.hidden
        yield block + "ffn_gate.weight", plain, shape.intermediate, shape.hidden
        yield block + "ffn_up.weight", plain, shape.intermediate, shape.hidden
        yield block + "ffn_down.weight", finer, shape.hidden, shape.intermediate
    yield "output_norm.weight", F32, 0, shape.hidden
    if not shape.tied:
        yield "output.weight", Q6_K, shape.vocabulary, shape.hidden


def data_bytes(kind, rows, columns):
    return 4 * columns if kind == F32 else rows * (columns // kind.values) * kind.bytes


def random_chunks(kind, rows, columns, chance):
    """A tensor's bytes, some megabytes at a time."""
    if kind == F32:
        yield array.array("f", [chance.uniform(0.5, 1.5) for _ in range(columns)]).tobytes()
        return
    blocks = rows * (columns // kind.values)
    most = CHUNK_BYTES // kind.bytes
    for begin in range(0, blocks, most):
        count = min(most, blocks - begin)
        chunk = bytearray(chance.randbytes(count * kind.bytes))
        for offset, size in kind.scales:
            # The high byte fixes sign, exponent and two bits of the fraction; the low one stays random.
            high = struct.pack("<e", size / math.sqrt(columns))[1]
            chunk[offset + 1 :: kind.bytes] = bytes([high]) * count
        yield bytes(chunk)


def byte_letters():
    """The character that stands for each byte in a byte-level vocabulary."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = iter(range(256, 512))
    return [chr(byte) if byte in shown else chr(next(hidden)) for byte in range(256)]


def vocabulary(size):
    """(tokens, merges): each piece is an earlier piece and one letter more, shorter pieces first."""
    tokens = byte_letters()
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    pieces = [tokens[ord(" ")], *letters]  # this list grows while the loop goes through it
    merges = []
    for piece in pieces:
        for letter in letters:
            if len(tokens) == size - NUM_SPECIAL:
                break
            pieces.append(piece + letter)
            tokens.append(piece + letter)
            merges.append(f"{piece} {letter}")
    names = {0: "<|begin_of_text|>", 1: "<|end_of_text|>", 9: "<|eot_id|>"}
    tokens += [names.get(i, f"<|reserved_special_token_{i}|>") for i in range(NUM_SPECIAL)]
    return tokens, merges


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    packed = {UINT32: "<I", FLOAT32: "<f", BOOL: "<?"}
    data = string(value) if kind == STRING else struct.pack(packed[kind], value)
    return string(key) + struct.pack("<I", kind) + data


def list_entry(key, kind, values):
    data = b"".join(map(string, values)) if kind == STRING else array.array("i", values).tobytes()
    return string(key) + struct.pack("<IIQ", ARRAY, kind, len(values)) + data


def metadata(name, shape, mix):
    tokens, merges = vocabulary(shape.vocabulary)
    first_special = shape.vocabulary - NUM_SPECIAL
    return [
        entry("general.architecture", STRING, "llama"),
        entry("general.name", STRING, f"Random weights in the shape of {name}, {mix}"),
        entry("general.file_type", UINT32, 15 if mix == "Q4_K_M" else 2),
        entry("llama.block_count", UINT32, shape.layers),
        entry("llama.context_length", UINT32, shape.context),
        entry("llama.embedding_length", UINT32, shape.hidden),
        entry("llama.feed_forward_length", UINT32, shape.intermediate),
        entry("llama.attention.head_count", UINT32, shape.heads),
        entry("llama.attention.head_count_kv", UINT32, shape.kv_heads),
        entry("llama.attention.key_length", UINT32, shape.head_dim),
        entry("llama.attention.value_length", UINT32, shape.head_dim),
        entry("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
        entry("llama.rope.dimension_count", UINT32, shape.head_dim),
        entry("llama.rope.freq_base", FLOAT32, 500000.0),
        entry("llama.vocab_size", UINT32, shape.vocabulary),
        entry("tokenizer.ggml.model", STRING, "gpt2"),
        entry("tokenizer.ggml.pre", STRING, "llama-bpe"),
        list_entry("tokenizer.ggml.tokens", STRING, tokens),
        list_entry("tokenizer.ggml.token_type", INT32, [1] * first_special + [3] * NUM_SPECIAL),
        list_entry("tokenizer.ggml.merges", STRING, merges),
        entry("tokenizer.ggml.bos_token_id", UINT32, first_special),
        entry("tokenizer.ggml.eos_token_id", UINT32, first_special + 1),
        entry("tokenizer.ggml.add_bos_token", BOOL, True),
    ]


def padding(size):
    return bytes(-size % ALIGNMENT)


def headers(name, shape, mix):
    """All of the file before the tensor data."""
    entries, table = metadata(name, shape, mix), list(tensors(shape, mix))
    out = struct.pack("<4sIQQ", b"GGUF", 3, len(table), len(entries)) + b"".join(entries)
    offset = 0
    for tensor, kind, rows, columns in table:
        dims = [columns, rows] if rows else [columns]
        number = F32 if kind == F32 else kind.number
        out += string(tensor) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, number, offset)
        offset += data_bytes(kind, rows, columns)
        offset += len(padding(offset))
    return out + padding(len(out))


def write(file, name, mix, seed):
    shape, chance = SHAPES[name], random.Random(seed)
    file.write(headers(name, shape, mix))
    for _, kind, rows, columns in tensors(shape, mix):
        for chunk in random_chunks(kind, rows, columns, chance):
            file.write(chunk)
        file.write(padding(data_bytes(kind, rows, columns)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("mix", choices=["Q4_K_M", "Q4_0"])
    parser.add_argument("output")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if sys.byteorder != "little":
        sys.exit("make_synthetic: this machine's bytes are the wrong way round for GGUF")
    unfinished = options.output + ".part"
    try:
        with open(unfinished, "wb") as file:
            write(file, options.shape, options.mix, options.seed)
        os.replace(unfinished, options.output)
    except OSError as error:
        sys.exit(f"make_synthetic: {error}")
    finally:
        if os.path.exists(unfinished):
            os.remove(unfinished)


if __name__ == "__main__":
    main()
