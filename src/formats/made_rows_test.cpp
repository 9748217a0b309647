#include "formats/made_rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>

namespace couplet::formats {
namespace {

// tests/data/folders/f8.txt, as torch reads and scales (tools/make_f8_golden.py): a line "dtype block_rows block_cols",
// then a line of 256 codes' bits without a scale, or rows of a matrix of 256 columns with scales.
TEST(F8Values, AreThoseOfTorch) {
  std::ifstream in(std::string(COUPLET_SOURCE_DIR) + "/tests/data/folders/f8.txt");
  ASSERT_TRUE(in);
  int seen = 0;
  for (std::string dtype; in >> dtype; ++seen) {
    F8Scales scales;
    std::size_t rows = 0, num_scales = 0;
    in >> rows >> scales.block_rows >> scales.block_cols >> scales.blocks_in_row >> num_scales >> std::hex;
    const auto read = [&] {
      std::uint32_t bits = 0;
      in >> bits;
      return std::bit_cast<float>(bits);
    };
    for (std::size_t i = 0; i < num_scales; ++i) scales.values.push_back(read());
    std::vector<std::byte> codes;
    for (std::size_t i = 0; i < rows * 256; ++i) codes.push_back(static_cast<std::byte>((i + i / 256) % 256));
    const F8Rows made({"", dtype, {rows, 256}, codes}, std::move(scales));
    std::vector<float> row(256);
    for (std::size_t r = 0; r < rows; ++r) {
      made.make_row(r, reinterpret_cast<std::byte*>(row.data()));
      for (const float got : row) {
        const float expected = read();
        ASSERT_TRUE(std::isnan(expected) ? std::isnan(got)
                                         : std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(expected))
            << dtype << " " << got << " " << expected;
      }
    }
    ASSERT_TRUE(in);
    in >> std::dec;
  }
  EXPECT_EQ(seen, 6);
}

}  // namespace
}  // namespace couplet::formats
