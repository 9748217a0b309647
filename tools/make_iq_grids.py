#!/usr/bin/env python3
"""Writes src/formats/iq_grids.cpp: the points of the IQ types' grids, from the arrays that PyPI `gguf` has of them.

A point of eight values is a number of eight times two bits, one of four values a number of four times four bits: places
in the short list of magnitudes that the type uses, the first value lowest. Run from the root of the repository:
python3 tools/make_iq_grids.py (needs gguf, numpy).
"""

import pathlib

import numpy as np
from gguf import quants

GRIDS = [  # name, class, bits of a place, what the grid's values are
    ("kIq1Grid", quants.IQ1_S, 2, "-1, 0, 1"),
    ("kIq2XxsGrid", quants.IQ2_XXS, 2, "8, 25, 43"),
    ("kIq2XsGrid", quants.IQ2_XS, 2, "8, 25, 43"),
    ("kIq2SGrid", quants.IQ2_S, 2, "8, 25, 43"),
    ("kIq3XxsGrid", quants.IQ3_XXS, 4, "4, 12, 20, 28, 36, 44, 52, 62"),
    ("kIq3SGrid", quants.IQ3_S, 4, "1, 3, 5, 7, 9, 11, 13, 15"),
]
A_LINE = 14
HEAD = """// The points of the IQ types' grids. Written by tools/make_iq_grids.py: change that, not this.

#include "formats/iq_grids.h"

namespace couplet::formats {
"""


def points(kind, bits):
    kind.init_grid()
    grid = kind.grid.reshape(-1, kind.grid.shape[-1])
    places = np.searchsorted(np.array(kind.grid_map), grid)
    assert (np.array(kind.grid_map)[places] == grid).all()
    return (places << (bits * np.arange(grid.shape[1]))).sum(axis=1)


def main():
    text = HEAD
    for name, kind, bits, values in GRIDS:
        numbers = points(kind, bits)
        text += f"\n// Of {values}.\nconst std::uint16_t {name}[{len(numbers)}] = {{\n"
        for at in range(0, len(numbers), A_LINE):
            text += "    " + ", ".join(f"0x{number:04x}" for number in numbers[at:at + A_LINE]) + ",\n"
        text += "};\n"
    pathlib.Path("src/formats/iq_grids.cpp").write_text(text + "\n}  // namespace couplet::formats\n")


if __name__ == "__main__":
    main()
