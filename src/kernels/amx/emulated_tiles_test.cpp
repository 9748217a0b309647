// The emulation itself: dot products as a plain loop gives them, and a mark on all that the processor would refuse.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "kernels/amx/tiles.h"

namespace couplet::kernels::amx_emulated {
namespace {

constexpr std::int32_t kMark = 0x7f7f7f7f;

// Sums in tile 0, rows in 1, weights in 2.
TileShapes shapes(int rows, int outputs, int depth) {
  return TileShapes{}.set(0, rows, 4 * outputs).set(1, rows, 4 * depth).set(2, depth, 4 * outputs);
}

struct Product {
  std::int8_t rows[16][64] = {};
  std::int8_t weights[16][64] = {};
  std::int32_t sums[16][16] = {};

  void run(const TileShapes& wanted) {
    configure(wanted);
    run();
    release();
  }
  void run() {
    load<0>(sums, 64);
    load<1>(rows, 64);
    load<2>(weights, 64);
    add_dots<0, 1, 2>();
    store<0>(sums, 64);
  }
};

class EmulatedTiles : public ::testing::Test {
 protected:
  void SetUp() override { tiles = {}; }
  void TearDown() override { tiles = {}; }
};

TEST_F(EmulatedTiles, DotProductsOfSignedBytes) {
  std::mt19937 random(3);
  for (const auto& [num_rows, outputs, depth] : {std::array{16, 16, 16}, {12, 16, 8}, {12, 16, 4}, {1, 3, 1}, {5, 7, 11}}) {
    Product product;
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 64; ++j) {
        product.rows[i][j] = static_cast<std::int8_t>(random() % 3 == 0 ? -128 : static_cast<int>(random() % 256) - 128);
        product.weights[i][j] = static_cast<std::int8_t>(random() % 3 == 0 ? -128 : static_cast<int>(random() % 256) - 128);
      }
      for (int j = 0; j < 16; ++j) product.sums[i][j] = static_cast<std::int32_t>(random() % 1000);
    }
    Product expected = product;
    for (int m = 0; m < num_rows; ++m) {
      for (int n = 0; n < outputs; ++n) {
        for (int k = 0; k < 4 * depth; ++k) {
          expected.sums[m][n] += product.rows[m][k] * product.weights[k / 4][4 * n + k % 4];
        }
      }
    }
    product.run(shapes(num_rows, outputs, depth));
    EXPECT_EQ(std::memcmp(product.sums, expected.sums, sizeof product.sums), 0) << num_rows << " " << outputs;
  }
}

TEST_F(EmulatedTiles, WhatTheProcessorRefusesLeavesAMark) {
  const TileShapes good = shapes(12, 16, 8);
  TileShapes palette = good, reserved = good, tall = good, ninth = good, empty = good;
  palette.palette = 2;
  reserved.reserved[3] = 1;
  tall.set(1, 17, 32);
  ninth.set(8, 1, 4);
  empty.set(5, 1, 0);
  const TileShapes other_rows = TileShapes(good).set(1, 11, 32), other_depth = TileShapes(good).set(2, 7, 64),
                   other_outputs = TileShapes(good).set(2, 8, 60), no_tile = TileShapes(good).set(2, 0, 0);
  for (const TileShapes& bad : {palette, reserved, tall, ninth, empty, other_rows, other_depth, other_outputs, no_tile}) {
    tiles = {};
    Product product;
    product.run(bad);
    EXPECT_EQ(product.sums[0][0], kMark);
  }
  tiles = {};
  Product product;
  product.run(good);
  EXPECT_EQ(product.sums[0][0], 0);
}

TEST_F(EmulatedTiles, TilesAreNobodysUntilConfiguredAndReleasedForTheNext) {
  const TileShapes good = shapes(12, 16, 8);
  Product product;
  product.run(good);
  product.run(good);
  EXPECT_EQ(product.sums[0][0], 0);
  configure(good);
  product.run(good);
  EXPECT_EQ(product.sums[0][0], kMark);

  tiles = {};
  product = {};
  product.run(good);
  product.run();
  configure(good);
  store<0>(product.sums, 64);
  EXPECT_EQ(product.sums[0][0], kMark);
}

}  // namespace
}  // namespace couplet::kernels::amx_emulated
