#pragma once
// What a page of the cache holds for one layer and one key/value head: 16 positions. Parts follow each other in this
// order, each starts at a multiple of 64 bytes. A "pair" is two 16-bit numbers that one integer product takes together.
//
//   f16             keys [padded16(head_dim)][16 positions] f16, values [16 positions][padded16(head_dim)] f16
//   q16, q16_fine   key scales [blocks of 32 dims][16 positions] f32
//                   keys [pairs of dims][16 positions][2] int16, the last block filled up with zeros
//                   value scales [16 positions] f32
//                   values, the first plane [8 pairs of positions][padded16(head_dim)][2] int8
//                   q16_fine: the second plane, as the first

#include <cstddef>

#include "kernels/kernels.h"

namespace couplet::kernels {

inline constexpr int kKeyBlock = 32;  // dims of a key, and of a query, that share a scale

// Offsets in bytes into a page of integers.
struct IntegerPage {
  std::ptrdiff_t keys, value_scales, values, second_plane, end;

  constexpr IntegerPage(int head_dim, int planes)
      : keys(static_cast<std::ptrdiff_t>(num_blocks(head_dim)) * kPagePositions * 4),
        value_scales(keys + static_cast<std::ptrdiff_t>(num_blocks(head_dim)) * kKeyBlock * kPagePositions * 2),
        values(value_scales + kPagePositions * 4),
        second_plane(values + static_cast<std::ptrdiff_t>(padded16(head_dim)) * kPagePositions),
        end(planes == 2 ? second_plane + (second_plane - values) : second_plane) {}

  static constexpr int num_blocks(int head_dim) { return (head_dim + kKeyBlock - 1) / kKeyBlock; }
};

}  // namespace couplet::kernels
