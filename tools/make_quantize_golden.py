#!/usr/bin/env python3
"""Writes tests/data/quantize.txt: floats and the blocks that PyPI `gguf` makes of them.

A line is a type's name, ggml's number for it, the bits of some floats and the bytes of their blocks, both as
little-endian hex. Run from the root of the repository: python3 tools/make_quantize_golden.py (needs gguf, numpy).
"""

import pathlib

import numpy as np
from gguf import GGMLQuantizationType as Type, quants


def blocks(rng):
    """Blocks of 32: ordinary ones, ties between codes, one sign, equal values, zeros, the smallest and largest halves."""
    yield from rng.standard_normal((6, 32)) * 0.05
    yield rng.integers(-8, 9, 32) / 8  # ties
    yield rng.integers(-254, 255, 32) / 254
    yield np.concatenate([np.arange(-15, 16) / 2, [7.5]])
    yield rng.uniform(1, 2, 32)
    yield rng.uniform(-2, -1, 32)
    yield np.full(32, 0.7)
    yield np.full(32, -0.7)
    yield np.zeros(32)
    yield np.concatenate([[-3], np.zeros(30), [3]])  # two of one size: the first counts
    yield np.concatenate([[3], np.zeros(30), [-3]])
    yield rng.standard_normal(32) * 1e-6  # scales are subnormal halves
    yield rng.standard_normal(32) * 1e-9  # and none at all
    yield np.where(rng.integers(0, 2, 32) == 1, 65000.0, -1000.0)


def main():
    values = np.array(list(blocks(np.random.default_rng(21))), dtype="<f4")
    lines = []
    for kind in [Type.F32, Type.F16, Type.BF16, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0]:
        data = quants.quantize(values, kind)
        lines.append(f"{kind.name} {int(kind)} {values.tobytes().hex()} {data.tobytes().hex()}\n")
    pathlib.Path("tests/data/quantize.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
