#pragma once
// The tile instructions in plain C++, word for word what the instruction set reference says of LDTILECFG, TILELOADD,
// TILESTORED, TILEZERO, TDPBSSD and TILERELEASE, for tests on machines without AMX. Where the processor would fault, and
// where a kernel configures tiles that nobody released, all that is stored from then on is a value that no dot product
// has.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/amx/tile_shapes.h"

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

constexpr int kMaxRows = 16, kMaxRowBytes = 64;

struct Tiles {
  bool configured = false;
  bool faulted = false;
  TileShapes shapes;
  std::uint8_t bytes[kNumTiles][kMaxRows][kMaxRowBytes] = {};

  int rows(int tile) const { return shapes.rows[tile]; }
  int row_bytes(int tile) const { return shapes.row_bytes[tile]; }
  bool usable(int tile) const { return configured && rows(tile) != 0; }
};
thread_local Tiles tiles;

inline bool loadable(const TileShapes& shapes) {
  bool good = shapes.palette == 1 && shapes.start_row == 0;
  for (const std::uint8_t byte : shapes.reserved) good &= byte == 0;
  for (int tile = 0; tile < 16; ++tile) {
    good &= shapes.rows[tile] <= kMaxRows && shapes.row_bytes[tile] <= kMaxRowBytes;
    good &= (shapes.rows[tile] == 0) == (shapes.row_bytes[tile] == 0);
    good &= tile < kNumTiles || shapes.rows[tile] == 0;
  }
  return good;
}

inline void configure(const TileShapes& shapes) {
  const bool fault = tiles.faulted || tiles.configured || !loadable(shapes);
  tiles = {};
  tiles.configured = true;
  tiles.faulted = fault;
  tiles.shapes = shapes;
}

inline void release() {
  tiles.configured = false;
  std::memset(tiles.bytes, 0, sizeof tiles.bytes);
}

template <int kTile>
void zero() {
  tiles.faulted |= !tiles.usable(kTile);
  std::memset(tiles.bytes[kTile], 0, sizeof tiles.bytes[kTile]);
}

template <int kTile>
void load(const void* p, std::ptrdiff_t stride) {
  zero<kTile>();
  const auto* from = static_cast<const std::uint8_t*>(p);
  for (int row = 0; row < tiles.rows(kTile); ++row, from += stride) {
    std::memcpy(tiles.bytes[kTile][row], from, tiles.shapes.row_bytes[kTile]);
  }
}

template <int kTile>
void store(void* p, std::ptrdiff_t stride) {
  tiles.faulted |= !tiles.usable(kTile);
  auto* to = static_cast<std::uint8_t*>(p);
  for (int row = 0; row < tiles.rows(kTile); ++row, to += stride) {
    if (tiles.faulted) std::memset(tiles.bytes[kTile][row], 0x7f, kMaxRowBytes);
    std::memcpy(to, tiles.bytes[kTile][row], tiles.shapes.row_bytes[kTile]);
  }
}

// Without the sanitizers, which make it ten times slower and could only find faults in this very file.
template <int kSum, int kRows, int kWeights>
__attribute__((no_sanitize("address", "undefined"))) void add_dots() {
  static_assert(kSum != kRows && kSum != kWeights && kRows != kWeights);
  tiles.faulted |= !tiles.usable(kSum) || !tiles.usable(kRows) || !tiles.usable(kWeights) ||
                   tiles.rows(kSum) != tiles.rows(kRows) || tiles.row_bytes(kSum) != tiles.row_bytes(kWeights) ||
                   tiles.row_bytes(kRows) != 4 * tiles.rows(kWeights) || tiles.row_bytes(kSum) % 4 != 0;
  if (tiles.faulted) return;
  for (int m = 0; m < tiles.rows(kSum); ++m) {
    std::uint32_t sums[kMaxRowBytes / 4];
    std::memcpy(sums, tiles.bytes[kSum][m], sizeof sums);
    for (int k = 0; k < tiles.row_bytes(kRows); ++k) {
      const int row = static_cast<std::int8_t>(tiles.bytes[kRows][m][k]);
      for (int n = 0; n < tiles.row_bytes(kSum) / 4; ++n) {
        const int weight = static_cast<std::int8_t>(tiles.bytes[kWeights][k / 4][4 * n + k % 4]);
        sums[n] += static_cast<std::uint32_t>(row * weight);  // wraps, as the instruction's sum does
      }
    }
    std::memcpy(tiles.bytes[kSum][m], sums, sizeof sums);
  }
}

}  // namespace
}  // namespace couplet::kernels::COUPLET_LEVEL
