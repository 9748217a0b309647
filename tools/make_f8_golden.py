#!/usr/bin/env python3
"""Makes tests/data/folders/f8.txt: F8 codes as torch reads them, alone and times scales of blocks, in float32.

A case is a line "dtype rows block_rows block_cols blocks_in_row scales", a line of the scales' bits, and a line of the
values' bits; row r of the codes is r, r + 1, ... modulo 256.
"""

import pathlib

import numpy
import torch

TYPES = {"F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2}


def bits(tensor):
    return " ".join(f"{value:x}" for value in tensor.float().numpy().reshape(-1).view(numpy.uint32))


def main():
    generator = torch.Generator().manual_seed(5)
    lines = []
    for name, dtype in TYPES.items():
        for rows, block_rows, block_cols in ((1, 0, 0), (3, 2, 100), (3, 1, 256)):
            codes = (torch.arange(256)[None] + torch.arange(rows)[:, None]) % 256
            values = codes.to(torch.uint8).view(dtype).float()
            scales, across = torch.empty(0), 1
            if block_rows:
                across = -(-256 // block_cols)
                scales = torch.rand(-(-rows // block_rows), across, generator=generator) * 3e-3
                spread = scales.repeat_interleave(block_rows, 0)[:rows].repeat_interleave(block_cols, 1)[:, :256]
                values = values * spread
            lines += [f"{name} {rows} {block_rows or 1} {block_cols or 1} {across} {scales.numel()}", bits(scales), bits(values)]
    target = pathlib.Path(__file__).resolve().parent.parent / "tests/data/folders/f8.txt"
    target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
