#pragma once
// The 64 bytes that LDTILECFG reads: rows and bytes a row of the eight tiles.

#include <cstdint>

#include "kernels/amx/level.h"

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

constexpr int kNumTiles = 8;

struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  constexpr TileShapes& set(int tile, int num_rows, int bytes) {
    rows[tile] = static_cast<std::uint8_t>(num_rows);
    row_bytes[tile] = static_cast<std::uint16_t>(bytes);
    return *this;
  }
};
static_assert(sizeof(TileShapes) == 64);

}  // namespace
}  // namespace couplet::kernels::COUPLET_LEVEL
