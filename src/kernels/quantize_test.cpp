// Rule 3: codes, scales and sums of activation rows.

#include <bit>
#include <limits>

#include "kernels/weights_testing.h"

namespace couplet::kernels::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

void expect_same(const Activations& got, const Activations& expected) {
  EXPECT_TRUE(same_bits(got.hi.data(), expected.hi.data(), got.hi.size()));  // the gaps between rows too
  EXPECT_TRUE(same_bits(got.lo.data(), expected.lo.data(), got.lo.size()));
  EXPECT_TRUE(same_bits(got.scale.data(), expected.scale.data(), got.scale.size()));
  EXPECT_TRUE(same_bits(got.scaled_sum.data(), expected.scaled_sum.data(), got.scaled_sum.size()));
  EXPECT_TRUE(same_bits(got.sum_hi.data(), expected.sum_hi.data(), got.sum_hi.size()));
  EXPECT_TRUE(same_bits(got.sum_lo.data(), expected.sum_lo.data(), got.sum_lo.size()));
}

struct Quantized {
  Quantized(const KernelTable& level, const std::vector<float>& x, int rows, int cols, int stride, bool two_planes)
      : values(rows, cols, two_planes), poisoned(static_cast<std::size_t>(rows), 0) {
    level.quantize(x.data(), stride, values.view, poisoned.data());
  }
  Activations values;
  std::vector<std::uint8_t> poisoned;
};

void expect_levels_equal(const std::vector<float>& x, int rows, int cols, int stride) {
  for (const bool two_planes : {false, true}) {
    const Quantized expected(reference_level(), x, rows, cols, stride, two_planes);
    for (const KernelTable* level : all_levels()) {
      SCOPED_TRACE(std::string(level->name) + (two_planes ? ", two planes" : ", one plane"));
      const Quantized got(*level, x, rows, cols, stride, two_planes);
      expect_same(got.values, expected.values);
      EXPECT_EQ(got.poisoned, expected.poisoned);
    }
  }
}

// One block through the reference level.
Quantized one_block(std::vector<float> x, bool two_planes) {
  x.resize(32);
  return Quantized(reference_level(), x, 1, 32, 32, two_planes);
}

TEST(QuantizeTest, TiesGoToTheEvenCode) {
  const Quantized got = one_block({127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -126.5F, -0.0F, 0.49F}, false);
  EXPECT_EQ(got.values.scale[0], 1.0F);
  const std::int8_t expected[] = {127, 0, 2, 2, 0, -2, -126, 0, 0};
  EXPECT_TRUE(same_bits(got.values.hi.data(), expected, 9));
  EXPECT_EQ(got.values.sum_hi[0], 127 + 2 + 2 - 2 - 126);
  EXPECT_EQ(got.values.sum_hi[1], 0);
  EXPECT_EQ(got.values.scaled_sum[0], 3.0F);
}

TEST(QuantizeTest, TheSecondPlaneHoldsWhatTheFirstLeft) {
  const Quantized got = one_block({-127, 0.5F, 0.25F, -1.25F}, true);
  EXPECT_EQ(got.values.scale[0], 1.0F / 254.0F);
  const std::int8_t hi[] = {-127, 0, 0, -1}, lo[] = {0, 127, 64, -64};  // 63.5 and -63.5 go to the even 64 and -64
  EXPECT_TRUE(same_bits(got.values.hi.data(), hi, 4));
  EXPECT_TRUE(same_bits(got.values.lo.data(), lo, 4));
  EXPECT_EQ(got.values.sum_hi[0], -128);
  EXPECT_EQ(got.values.sum_lo[0], 127);
  EXPECT_EQ(got.values.scaled_sum[0], (1.0F / 254.0F) * (254 * -128 + 127));
}

TEST(QuantizeTest, BlocksBelowTheSmallestScaleAreZero) {
  const float smallest = 0x1p-96F, below = std::nextafter(smallest, 0.0F);
  for (const bool two_planes : {false, true}) {
    const Quantized zero = one_block({below, -below, 1e-40F}, two_planes);
    EXPECT_EQ(zero.values.scale[0], 0.0F);
    EXPECT_EQ(zero.values.scaled_sum[0], 0.0F);
    for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(zero.values.hi[i], 0);
    const Quantized scaled = one_block({-smallest}, two_planes);
    EXPECT_GT(scaled.values.scale[0], 0.0F);
    EXPECT_EQ(scaled.values.hi[0], -127);
  }
}

TEST(QuantizeTest, ARowThatIsNotFiniteIsPoisonedAndEmpty) {
  Random random(7);
  for (const float bad : {kInfinity, -kInfinity, kNan, -kNan, std::bit_cast<float>(0x7f800001U)}) {
    for (const std::size_t at : {0U, 17U, 31U, 95U}) {
      std::vector<float> x = random.floats(3 * 96);
      x[96 + at] = bad;
      for (const bool two_planes : {false, true}) {
        const Quantized got(reference_level(), x, 3, 96, 96, two_planes);
        EXPECT_EQ(got.poisoned, (std::vector<std::uint8_t>{0, 1, 0}));
        const QuantizedRows row = got.values.row(1);
        for (int k = 0; k < 96; ++k) ASSERT_EQ(row.hi[k] | (row.lo ? row.lo[k] : 0), 0);
        for (int b = 0; b < 3; ++b) ASSERT_EQ(std::bit_cast<int>(row.scale[b]) | std::bit_cast<int>(row.scaled_sum[b]), 0);
        for (int h = 0; h < 6; ++h) ASSERT_EQ(row.sum_hi[h] | (row.sum_lo ? row.sum_lo[h] : 0), 0);
        EXPECT_NE(got.values.row(2).scale[0], 0.0F);
      }
      expect_levels_equal(x, 3, 96, 96);
    }
  }
}

// A block whose magnitudes span `decades` below amax.
std::vector<float> block_with_largest(float amax, int decades, Random& random) {
  std::vector<float> x(32);
  for (float& value : x) value = amax * random.uniform(-1, 1) * std::pow(10.0F, -random.uniform(0, float(decades)));
  x[std::size_t(random.below(32))] = random.below(2) ? amax : -amax;
  return x;
}

TEST(QuantizeTest, CodesStayInRangeAndCloseToTheValue) {
  Random random(8);
  for (int round = 0; round < 4000; ++round) {
    const float amax = std::bit_cast<float>(0x0f800000U + random.bits() % (0x7f7fffffU - 0x0f800000U + 1));
    const std::vector<float> x = block_with_largest(amax, round % 4, random);
    const Quantized fast = one_block(x, false), fine = one_block(x, true);
    for (std::size_t i = 0; i < 32; ++i) {
      const double d = fast.values.scale[0], hi = fine.values.hi[i], lo = fine.values.lo[i];
      ASSERT_LE(std::abs(hi), 127);
      ASSERT_LE(std::abs(lo), 127);
      ASSERT_EQ(fast.values.hi[i], fine.values.hi[i]);
      ASSERT_LE(std::abs(x[i] - hi * d), d * 0.50002) << x[i] << " of " << amax;
      ASSERT_LE(std::abs(x[i] - (254 * hi + lo) * (d / 254)), d / 254 * 0.502) << x[i] << " of " << amax;
    }
  }
}

TEST(QuantizeTest, EveryLevelGivesTheBitsOfTheReference) {
  Random random(9);
  for (const int rows : {1, 2, 5}) {
    for (const int cols : {32, 64, 96, 576, 1056}) {
      for (const int gap : {0, 3}) {
        std::vector<float> x(static_cast<std::size_t>(rows * (cols + gap)), kNan);
        for (int r = 0; r < rows; ++r) {
          for (int k = 0; k < cols; k += 32) {
            const float amax = std::bit_cast<float>(0x0f000000U + random.bits() % (0x7f7fffffU - 0x0f000000U + 1));
            const std::vector<float> block = block_with_largest(amax, 1 + k % 5, random);
            std::copy(block.begin(), block.end(), x.begin() + r * (cols + gap) + k);
          }
        }
        expect_levels_equal(x, rows, cols, cols + gap);
      }
    }
  }
}

TEST(QuantizeTest, EveryLevelGivesTheBitsOfTheReferenceAtTheEdges) {
  const float smallest = 0x1p-96F, largest = std::numeric_limits<float>::max(), subnormal = 0x1p-149F;
  const float edges[] = {0.0F, -0.0F, subnormal, -subnormal, smallest, std::nextafter(smallest, 0.0F), 0.5F, 63.5F, 127,
                         1.5F, largest, -largest, std::nextafter(largest, 0.0F), 1.0F, -126.5F, 0x1p-126F};
  Random random(10);
  for (int round = 0; round < 2000; ++round) {
    std::vector<float> x(64);
    const int kinds = 1 + random.below(16);
    for (float& value : x) value = edges[(round + random.below(kinds)) % 16];
    expect_levels_equal(x, 2, 32, 32);
  }
}

}  // namespace
}  // namespace couplet::kernels::testing
