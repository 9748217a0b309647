// f16 pages: what store_page writes, where, and what it refuses, at every level.

#include <bit>
#include <cmath>

#include "kernels/kernel_testing.h"
#include "kernels/reference/half.h"
#include "kernels/reference/scalar.h"

namespace couplet::kernels {
namespace {

using testing::Aligned;
using testing::all_levels;
using testing::Random;
using testing::reference_level;
using testing::same_bits;

bool is_nan(std::uint16_t half) { return (half & 0x7fff) > 0x7c00; }

bool store_f16(const KernelTable& level, const float* keys, const float* values, int stride, int num_positions, int head_dim,
               int first_slot, std::uint16_t* page) {
  return level.attention[static_cast<int>(PageFormat::f16)].store_page(keys, values, stride, num_positions, head_dim, first_slot,
                                                                       reinterpret_cast<std::byte*>(page));
}

// One value through a level's store_page.
std::uint16_t stored(const KernelTable& level, float value, bool* fits) {
  Aligned<std::uint16_t> page(2 * 16 * 16);
  *fits = store_f16(level, &value, &value, 1, 1, 1, 0, page.data());
  EXPECT_EQ(page[0], page[16 * 16]);
  return page[0];
}

TEST(Half, EveryHalfComesBack) {
  for (unsigned bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = reference::half_to_float(half);
    const int exponent = half >> 10 & 31, fraction = half & 0x3ff;
    if (is_nan(half)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(is_nan(reference::float_to_half(value))) << bits;
      continue;
    }
    const double exact = exponent == 31   ? INFINITY
                         : exponent == 0  ? std::ldexp(fraction, -24)
                                          : std::ldexp(1024 + fraction, exponent - 25);
    ASSERT_EQ(value, half & 0x8000 ? -exact : exact) << bits;
    ASSERT_EQ(std::signbit(value), bits >> 15 != 0) << bits;
    ASSERT_EQ(reference::float_to_half(value), half) << bits;
    for (const KernelTable* level : all_levels()) {
      bool fits = false;
      ASSERT_EQ(stored(*level, value, &fits), half) << level->name << " " << bits;
      ASSERT_EQ(fits, exponent != 31) << level->name << " " << bits;
    }
  }
}

// Between two neighbours: the middle goes to the even one, a hair to either side to the nearer one.
TEST(Half, TiesGoToEven) {
  for (unsigned bits = 0; bits < 0x7c00; ++bits) {
    const auto low = static_cast<std::uint16_t>(bits), high = static_cast<std::uint16_t>(bits + 1);
    const float upper = high == 0x7c00 ? 65536.0f : reference::half_to_float(high);
    const float middle = (reference::half_to_float(low) + upper) / 2;  // exact
    const std::uint16_t even = bits % 2 == 0 ? low : high;
    for (const KernelTable* level : all_levels()) {
      for (const float sign : {1.0f, -1.0f}) {
        const auto bit = static_cast<std::uint16_t>(sign < 0 ? 0x8000 : 0);
        bool fits = false;
        ASSERT_EQ(stored(*level, sign * middle, &fits), even | bit) << level->name << " " << bits;
        ASSERT_EQ(fits, even != 0x7c00);
        ASSERT_EQ(stored(*level, sign * std::nextafter(middle, 0.0f), &fits), low | bit) << level->name << " " << bits;
        ASSERT_TRUE(fits);
        ASSERT_EQ(stored(*level, sign * std::nextafter(middle, 1e6f), &fits), high | bit) << level->name << " " << bits;
        ASSERT_EQ(fits, high != 0x7c00);
      }
    }
  }
}

TEST(StorePage, RefusesWhatDoesNotFit) {
  for (const KernelTable* level : all_levels()) {
    for (const int head_dim : {16, 40}) {
      for (const float bad : {65520.0f, -65520.0f, 3e38f, -INFINITY, INFINITY, NAN}) {
        for (int d = 0; d < head_dim; ++d) {
          for (const bool in_keys : {true, false}) {
            std::vector<float> keys(static_cast<std::size_t>(3 * head_dim), 65519), values = keys;
            Aligned<std::uint16_t> page(static_cast<std::size_t>(32 * padded16(head_dim)));
            EXPECT_TRUE(store_f16(*level, keys.data(), values.data(), head_dim, 3, head_dim, 5, page.data()));
            (in_keys ? keys : values)[static_cast<std::size_t>(head_dim + d)] = bad;
            EXPECT_FALSE(store_f16(*level, keys.data(), values.data(), head_dim, 3, head_dim, 5, page.data()))
                << level->name << " " << bad << " at " << d;
          }
        }
      }
    }
  }
}

TEST(StorePage, WritesItsSlotsAlone) {
  Random random(7);
  for (const int head_dim : {16, 40, 64, 80, 96, 128, 256}) {
    const int padded = padded16(head_dim), stride = head_dim + 5;
    const auto size = static_cast<std::size_t>(32 * padded);
    for (int first = 0; first < kPagePositions; ++first) {
      for (int count = 0; first + count <= kPagePositions; ++count) {
        const auto keys = random.floats(static_cast<std::size_t>(stride * 16), -70, 70);
        const auto values = random.floats(static_cast<std::size_t>(stride * 16), -1e-5f, 1e-5f);
        Aligned<std::uint16_t> expected(size);
        for (int i = 0; i < count; ++i) {
          for (int d = 0; d < padded; ++d) {
            const auto from = static_cast<std::size_t>(i * stride + d);
            const auto key = d < head_dim ? reference::float_to_half(keys[from]) : std::uint16_t{0};
            const auto value = d < head_dim ? reference::float_to_half(values[from]) : std::uint16_t{0};
            expected[static_cast<std::size_t>(d * 16 + first + i)] = key;
            expected[static_cast<std::size_t>((16 + first + i) * padded + d)] = value;
          }
        }
        for (const KernelTable* level : all_levels()) {
          Aligned<std::uint16_t> page(size);
          EXPECT_TRUE(store_f16(*level, keys.data(), values.data(), stride, count, head_dim, first, page.data()));
          EXPECT_TRUE(same_bits(page.data(), expected.data(), size)) << level->name << " head_dim " << head_dim;
        }
      }
    }
  }
}

}  // namespace
}  // namespace couplet::kernels
