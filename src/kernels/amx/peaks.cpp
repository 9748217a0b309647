// The level's own peak: TDPBSSD on whole tiles.

#include <cstdint>

#include "kernels/amx/tiles.h"

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

constexpr TileShapes whole_tiles() {
  TileShapes shapes;
  for (int tile = 0; tile < kNumTiles; ++tile) shapes.set(tile, 16, 64);
  return shapes;
}

}  // namespace

std::uint64_t int8_dots(std::uint64_t rounds, std::uint64_t* sink) {
  static constexpr TileShapes kShapes = whole_tiles();
  alignas(64) std::int8_t codes[16][64];
  for (auto& row : codes) {
    for (std::int8_t& code : row) code = 3;
  }
  alignas(64) std::int32_t sums[16][16];
  configure(kShapes);
  load<6>(codes, 64);
  load<7>(codes, 64);
  zero<0>();
  zero<1>();
  zero<2>();
  zero<3>();
  for (std::uint64_t round = 0; round < rounds; ++round) {  // four chains: latency 52, one in 16 cycles
    add_dots<0, 6, 7>();
    add_dots<1, 6, 7>();
    add_dots<2, 6, 7>();
    add_dots<3, 6, 7>();
  }
  store<0>(sums, 64);
  *sink += static_cast<std::uint64_t>(sums[15][15]);
  release();
  return rounds * 4 * 16 * 16 * 64 * 2;
}

}  // namespace couplet::kernels::COUPLET_LEVEL
