#!/usr/bin/env python3
"""Writes tests/data/dequantize.txt: blocks of every tensor type and the floats that PyPI `gguf` makes of them.

A line is a type's name, ggml's number for it, the bytes of some blocks and the bits of their floats, both as
little-endian hex. dequantize_grids.txt has so many blocks of the types with grids that every point of a grid occurs: a line
is name, number, offset of the scale, number of blocks and a hash (FNV-1a, by words) of the floats' bits; the bytes are those
of a generator that tests know too, but for the scale, which is 1. Run from the root of the repository: python3 tools/make_dequantize_golden.py (needs gguf, numpy).
"""

import pathlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type, quants

# Where a block of the type keeps its half-precision scales.
SCALE_OFFSETS = {
    Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0],
    Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208], Type.Q2_K: [80, 82], Type.Q3_K: [108],
    Type.IQ4_NL: [0], Type.IQ4_XS: [0], Type.MXFP4: [], Type.IQ1_S: [0], Type.IQ1_M: [], Type.IQ2_XXS: [0],
    Type.IQ2_XS: [0], Type.IQ2_S: [0], Type.IQ3_XXS: [0], Type.IQ3_S: [0], Type.TQ1_0: [52], Type.TQ2_0: [64],
}
# Zeros, subnormals, the smallest normal, ordinary ones, the largest; positive and negative. An infinite or NaN scale
# is left out: which NaN comes out is the processor's choice.
EXPONENTS = [0, 1, 2, 3, 100, 120, 126, 127, 128, 140, 253, 254, 255]  # of MXFP4
SCALES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x2E66, 0xAE66, 0x1C13, 0xBC00, 0x7BFF, 0xFBFF]


def quantized_blocks(rng, kind):
    """One block of random codes a scale."""
    size = GGML_QUANT_SIZES[kind][1]
    blocks = rng.integers(0, 256, (len(SCALES), size), dtype=np.uint8)
    for number, offset in enumerate(SCALE_OFFSETS[kind]):
        scales = np.roll(np.array(SCALES, dtype="<u2"), 3 * number)
        blocks[:, offset:offset + 2] = scales.view(np.uint8).reshape(-1, 2)
    if kind == Type.MXFP4:
        blocks[:, 0] = EXPONENTS
    if kind == Type.IQ1_M:  # a nibble of the scale in the upper end of each of four words
        for word in range(4):
            high = blocks[:, 49 + 2 * word]
            high[:] = (high & 15) | (np.array(SCALES) >> (4 * word) & 15) << 4
    return blocks


def plain_values(rng, kind):
    """Random bits, and the special values of the type; signalling NaNs, which a conversion may quiet, are left out."""
    if kind == Type.F32:
        return rng.integers(0, 2**32, 64, dtype=np.uint64).astype("<u4").view(np.uint8)
    special = SCALES + ([0x7C00, 0xFC00, 0x7E01, 0xFE00] if kind == Type.F16 else [0x7F80, 0xFF80, 0x7FC1, 0xFFC0])
    bits = rng.integers(0, 0x7C00, 64) | rng.integers(0, 2, 64) << 15
    return np.concatenate([np.array(special), bits]).astype("<u2").view(np.uint8)


def generated(count):
    """The upper bytes of a linear congruential generator's states from 1 on."""
    state, out = 1, bytearray()
    for _ in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(state >> 24)
    return out


def hash_of(floats):
    value = 0xCBF29CE484222325
    for word in floats.view("<u4").tolist():
        value = ((value ^ word) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def grid_lines():
    for kind, indices_a_block, points in [(Type.IQ1_S, 32, 2048), (Type.IQ2_XXS, 32, 256), (Type.IQ2_XS, 32, 512),
                                          (Type.IQ2_S, 32, 1024), (Type.IQ3_XXS, 64, 256), (Type.IQ3_S, 64, 512)]:
        blocks, size, offset = 16 * points // indices_a_block, GGML_QUANT_SIZES[kind][1], SCALE_OFFSETS[kind][0]
        data = np.frombuffer(generated(blocks * size), dtype=np.uint8).reshape(blocks, size).copy()
        data[:, offset:offset + 2] = (0x00, 0x3C)
        floats = quants.dequantize(data.reshape(-1), kind).astype("<f4", copy=False)
        yield f"{kind.name} {int(kind)} {offset} {blocks} {hash_of(floats.reshape(-1)):016x}\n"


def main():
    rng = np.random.default_rng(20)
    lines = []
    for kind in [Type.F32, Type.F16, Type.BF16, *SCALE_OFFSETS]:
        data = quantized_blocks(rng, kind) if kind in SCALE_OFFSETS else plain_values(rng, kind)
        floats = quants.dequantize(data.reshape(-1), kind).astype("<f4", copy=False)
        lines.append(f"{kind.name} {int(kind)} {data.tobytes().hex()} {floats.tobytes().hex()}\n")
    pathlib.Path("tests/data/dequantize.txt").write_text("".join(lines))
    pathlib.Path("tests/data/dequantize_grids.txt").write_text("".join(grid_lines()))


if __name__ == "__main__":
    main()
