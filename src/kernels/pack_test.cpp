// The packed layout, read back with packed.h's words, holds what the file holds.

#include "kernels/packed.h"
#include "kernels/weights_testing.h"

namespace couplet::kernels::testing {
namespace {

struct Lane {  // byte r * 4 + t of vector j at `vectors`
  const std::uint8_t* vectors;
  int r;

  int at(int j, int t) const { return vectors[64 * j + 4 * r + t]; }
  int nibble(int k) const { return at(k % 16 / 4, k % 4) >> (k < 16 ? 0 : 4) & 15; }
  int two_bits(int k) const { return at(k / 16, k % 4) >> (2 * (k % 16 / 4)) & 3; }
  int fifth(int k) const { return (at(4, k % 4) >> (k / 4) & 1) << 4; }
};

// Types beyond q6_k.
Weight newer_weight_in_panel(WeightType type, const std::uint8_t* b, int r, int k) {
  const auto half = [&](int at) { return half_value(static_cast<unsigned>(b[at + 2 * r] | b[at + 2 * r + 1] << 8)); };
  const int part = k / 32, l = k % 32, s = k / 16;
  const auto scale = [&](int at) { return static_cast<std::int8_t>(b[at + r]); };
  switch (type) {
    case WeightType::q2_k: {
      const int packed = b[64 + 16 * s + r];
      return {Lane{b + 320 + 128 * part, r}.two_bits(l), half(0) * (packed & 15), -half(32) * (packed >> 4)};
    }
    case WeightType::q3_k: {
      const Lane codes = {b + 288 + 192 * part, r};
      const int third = codes.at(2, l % 4) >> (l / 4) & 1;
      return {(codes.two_bits(l) | third << 2) - 4, half(0) * scale(32 + 16 * s), 0};
    }
    case WeightType::iq4_nl: return {iq4_code(Lane{b + 32, r}.nibble(k)), half(0), 0};
    case WeightType::iq4_xs: return {iq4_code(Lane{b + 160 + 256 * part, r}.nibble(l)), half(0) * scale(32 + 16 * part), 0};
    case WeightType::mxfp4: {
      constexpr int kTwice[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
      return {kTwice[Lane{b + 16, r}.nibble(k)], std::ldexp(1.0, b[r] - 128), 0};
    }
    default: break;  // coded
  }
  float d;
  std::memcpy(&d, b + 4 * r, sizeof d);
  const int nibble = Lane{b + 336 + 256 * part, r}.nibble(l);
  return {static_cast<std::int8_t>(b[320 + nibble]), static_cast<double>(d) * scale(64 + 16 * s), 0};
}

Weight weight_in_panel(WeightType type, const std::uint8_t* b, int r, int k) {
  const auto half = [&](int at) { return half_value(static_cast<unsigned>(b[at + 2 * r] | b[at + 2 * r + 1] << 8)); };
  const int s = k / 32, l = k % 32;
  switch (type) {
    case WeightType::q4_0: return {Lane{b + 32, r}.nibble(k) - 8, half(0), 0};
    case WeightType::q4_1: return {Lane{b + 64, r}.nibble(k), half(0), half(32)};
    case WeightType::q5_0: return {(Lane{b + 32, r}.nibble(k) | Lane{b + 32, r}.fifth(k)) - 16, half(0), 0};
    case WeightType::q5_1: return {Lane{b + 64, r}.nibble(k) | Lane{b + 64, r}.fifth(k), half(0), half(32)};
    case WeightType::q8_0: return {static_cast<std::int8_t>(Lane{b + 32, r}.at(k / 4, k % 4)), half(0), 0};
    case WeightType::q6_k: {
      const Lane part = {b + 288 + 384 * s, r};
      const int high = part.at(4 + l / 16, l % 4) >> (2 * (l % 16 / 4)) & 3;
      const int scale = static_cast<std::int8_t>(b[32 + 16 * (k / 16) + r]);
      return {(part.nibble(l) | high << 4) - 32, half(0) * scale, 0};
    }
    default: break;
  }
  if (is_newer(type)) return newer_weight_in_panel(type, b, r, k);
  const bool five = type == WeightType::q5_k;
  const Lane part = {b + 256 + (five ? 320 : 256) * s, r};
  const std::uint8_t* scales = b + 64;
  const int packed = scales[16 * s + r], low = scales[16 * (8 + s / 2) + r] >> (4 * (s % 2)) & 15;
  return {part.nibble(l) | (five ? part.fifth(l) : 0), half(0) * (packed & 63), -half(32) * ((packed >> 6) << 4 | low)};
}

class PackTest : public ::testing::TestWithParam<WeightType> {};

TEST_P(PackTest, EveryCodeAndScaleIsWhereTheLayoutSays) {
  const WeightType type = GetParam();
  Random random(1);
  for (const KernelTable* level : all_levels()) {
    for (const int rows : {1, 15, 16, 37}) {
      const FileMatrix file = random_weights(type, rows, 3 * block_values(type), random);
      const Packed packed(*level, file);
      for (int r = 0; r < rows; ++r) {
        const auto* panel = reinterpret_cast<const std::uint8_t*>(packed.view.panels) +
                            static_cast<std::size_t>(r / 16) * packed.view.panel_bytes;
        for (int k = 0; k < file.cols; ++k) {
          const int values = block_values(type);
          const std::uint8_t* block = panel + 16 * row_bytes(type, k / values * values);
          ASSERT_EQ(weight_in_panel(type, block, r % 16, k % values), file.at(r, k))
              << level->name << " row " << r << " of " << rows << ", column " << k;
        }
      }
    }
  }
}

TEST_P(PackTest, MissingRowsAreRowsOfZeros) {
  const WeightType type = GetParam();
  const int cols = 2 * block_values(type);
  Random random(2);
  const FileMatrix file = random_weights(type, 3, cols, random);
  FileMatrix filled = {type, 16, cols, file.bytes};
  filled.bytes.resize(16 * file.stride());
  // But for scales that stand for themselves less 32, rows of zeros are zeros.
  const bool has_zeros = type != WeightType::q3_k && type != WeightType::iq4_xs;
  const FileMatrix zero_file = {type, 5, cols, std::vector<std::uint8_t>(5 * file.stride())};
  for (const KernelTable* level : all_levels()) {
    const Packed packed(*level, file), expected(*level, filled);
    EXPECT_EQ(std::memcmp(packed.bytes.data(), expected.bytes.data(), expected.bytes.size()), 0) << level->name;
    if (!has_zeros) continue;
    const Packed zeros(*level, zero_file);
    EXPECT_EQ(std::count(zeros.bytes.data(), zeros.bytes.data() + zeros.bytes.size(), std::byte{0}),
              static_cast<std::ptrdiff_t>(zeros.bytes.size()))
        << level->name;
  }
}

TEST(PackFloatsTest, ColumnsOf16Outputs) {
  Random random(3);
  for (const WeightType type : kFloatTypes) {
    for (const int cols : {1, 15, 64, 65, 130}) {
      FileMatrix file = {type, 21, cols, {}};
      file.bytes.resize(21 * file.stride());
      for (std::uint8_t& byte : file.bytes) byte = static_cast<std::uint8_t>(random.bits());
      const std::size_t width = row_bytes(type, 1);
      for (const KernelTable* level : all_levels()) {
        const Packed packed(*level, file);
        for (int r = 0; r < 32; ++r) {
          for (int k = 0; k < cols; ++k) {
            const std::uint8_t zeros[4] = {};
            const std::uint8_t* expected = r < 21 ? file.row(r) + width * std::size_t(k) : zeros;
            const std::byte* got = packed.view.panels + std::size_t(r / 16) * packed.view.panel_bytes +
                                   width * std::size_t(16 * k + r % 16);
            ASSERT_EQ(std::memcmp(got, expected, width), 0) << name_of(type) << " row " << r << ", column " << k;
          }
        }
      }
    }
  }
}

TEST(PackSizesTest, SizesOfTheFileFormat) {
  EXPECT_EQ(row_bytes(WeightType::f32, 3), 12U);
  EXPECT_EQ(row_bytes(WeightType::bf16, 3), 6U);
  EXPECT_EQ(row_bytes(WeightType::q4_1, 64), 40U);
  EXPECT_EQ(row_bytes(WeightType::q8_0, 32), 34U);
  EXPECT_EQ(row_bytes(WeightType::q5_k, 512), 352U);
  EXPECT_EQ(row_bytes(WeightType::q6_k, 256), 210U);
  EXPECT_EQ(row_bytes(WeightType::mxfp4, 64), 34U);
  EXPECT_EQ(row_bytes(WeightType::q2_k, 256), 84U);
  EXPECT_EQ(file_row_bytes(WeightType::q3_k, 512), 220U);
  EXPECT_EQ(row_bytes(WeightType::q3_k, 512), 228U);
  EXPECT_EQ(file_row_bytes(WeightType::iq4_xs, 256), 136U);
  EXPECT_EQ(row_bytes(WeightType::iq4_xs, 256), 138U);
  EXPECT_EQ(file_row_bytes(WeightType::coded, 256), 164U);
  EXPECT_EQ(row_bytes(WeightType::coded, 256), 149U);
  EXPECT_EQ(block_values(WeightType::f16), 1);
  EXPECT_EQ(block_values(WeightType::q5_0), 32);
  EXPECT_EQ(block_values(WeightType::q4_k), 256);
}

INSTANTIATE_TEST_SUITE_P(Types, PackTest, ::testing::ValuesIn(kQuantizedTypes),
                         [](const auto& info) { return std::string(name_of(info.param)); });

}  // namespace
}  // namespace couplet::kernels::testing
