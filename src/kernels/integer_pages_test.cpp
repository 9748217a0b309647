// Integer pages: what store_page writes of keys and values, where, and what it refuses, at every level.

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/kernel_testing.h"
#include "kernels/page_layout.h"

namespace couplet::kernels {
namespace {

using testing::Aligned;
using testing::all_levels;
using testing::Random;
using testing::reference_level;
using testing::same_bits;

class IntegerPages : public ::testing::TestWithParam<PageFormat> {
 protected:
  int planes() const { return GetParam() == PageFormat::q16_fine ? 2 : 1; }
  bool store(const KernelTable& level, const std::vector<float>& keys, const std::vector<float>& values, int stride, int num,
             int head_dim, int first_slot, std::byte* page) const {
    return level.attention[static_cast<std::size_t>(GetParam())].store_page(keys.data(), values.data(), stride, num, head_dim,
                                                                            first_slot, page);
  }
};
INSTANTIATE_TEST_SUITE_P(Formats, IntegerPages, ::testing::Values(PageFormat::q16, PageFormat::q16_fine),
                         [](const auto& info) { return info.param == PageFormat::q16 ? "q16" : "q16_fine"; });

// Any slots of a page at once, ordinary and extreme values: the reference's bytes, and no byte of another slot.
TEST_P(IntegerPages, WritesItsSlotsAlone) {
  constexpr float kSpecials[] = {0.0f, -0.0f, 1e-45f, -1e-45f, 0x1p-96f, -0x1.fffffep-97f, 3e38f, -3e38f, 1e-20f};
  Random random(7);
  for (const int head_dim : {1, 16, 40, 64, 80, 96, 128, 256}) {
    const int stride = head_dim + 5;
    const std::size_t size = page_bytes(GetParam(), head_dim);
    for (int first = 0; first < kPagePositions; ++first) {
      for (int count = 0; first + count <= kPagePositions; ++count) {
        auto keys = random.floats(static_cast<std::size_t>(stride * 16), -70, 70);
        auto values = random.floats(static_cast<std::size_t>(stride * 16), -1e-5f, 1e-5f);
        if (count % 3 == 0) {
          for (std::size_t i = 0; i < keys.size(); i += 1 + static_cast<std::size_t>(random.below(9))) keys[i] = kSpecials[random.below(9)];
          std::fill_n(values.begin(), head_dim, kSpecials[random.below(9)]);
        }
        Aligned<std::byte> expected(size), one_by_one(size);
        ASSERT_TRUE(store(reference_level(), keys, values, stride, count, head_dim, first, expected.data()));
        for (int i = 0; i < count; ++i) {
          const auto at = static_cast<std::ptrdiff_t>(i * stride);
          store(reference_level(), {keys.begin() + at, keys.end()}, {values.begin() + at, values.end()}, stride, 1, head_dim,
                first + i, one_by_one.data());
        }
        ASSERT_TRUE(same_bits(reinterpret_cast<const unsigned char*>(one_by_one.data()),
                              reinterpret_cast<const unsigned char*>(expected.data()), size));
        for (const KernelTable* level : all_levels()) {
          Aligned<std::byte> page(size);
          EXPECT_TRUE(store(*level, keys, values, stride, count, head_dim, first, page.data()));
          EXPECT_TRUE(same_bits(reinterpret_cast<const unsigned char*>(page.data()),
                                reinterpret_cast<const unsigned char*>(expected.data()), size))
              << level->name << " head_dim " << head_dim << " slots " << first << " + " << count;
        }
      }
    }
  }
}

// Worked by hand: scales 2 / 8191 and 3 / 127, codes in the places that page_layout.h says.
TEST_P(IntegerPages, CodesStandWhereTheLayoutSays) {
  std::vector<float> keys(33, 0.0f), values(33, 0.0f);
  keys[1] = 2, keys[2] = -1, keys[32] = 0.5;
  values[0] = -3, values[5] = 1;
  constexpr int kSlot = 7;
  for (const KernelTable* level : all_levels()) {
    Aligned<std::byte> page(page_bytes(GetParam(), 33));
    ASSERT_TRUE(store(*level, keys, values, 33, 1, 33, kSlot, page.data()));
    const IntegerPage layout(33, planes());
    const auto* scales = reinterpret_cast<const float*>(page.data());
    EXPECT_EQ(scales[kSlot], 2.0f / 8191);
    EXPECT_EQ(scales[16 + kSlot], 0.5f / 8191);
    const auto* codes = reinterpret_cast<const std::int16_t*>(page.data() + layout.keys);
    EXPECT_EQ(codes[kSlot * 2 + 1], 8191);
    EXPECT_EQ(codes[(16 + kSlot) * 2], -4096);  // -4095.5 to even
    EXPECT_EQ(codes[(16 * 16 + kSlot) * 2], 8191);
    EXPECT_EQ(codes[(16 * 16 + kSlot) * 2 + 1], 0);  // dims 33 .. 63 are padding
    const float d = 3.0f / 127;
    EXPECT_EQ(*reinterpret_cast<const float*>(page.data() + layout.value_scales + 4 * kSlot), planes() == 2 ? d / 254 : d);
    const std::byte* row = page.data() + layout.values + kSlot / 2 * 2 * 48 + 1;
    EXPECT_EQ(static_cast<std::int8_t>(row[0]), -127);
    EXPECT_EQ(static_cast<std::int8_t>(row[10]), 42);  // 42.33
    EXPECT_EQ(static_cast<std::int8_t>(row[2 * 47]), 0);
    if (planes() == 1) continue;
    EXPECT_EQ(static_cast<std::int8_t>(row[layout.second_plane - layout.values + 10]), 85);  // 0.33 of 254: 84.67
  }
}

// A value comes back within half a step of its scale.
TEST_P(IntegerPages, ValuesComeBackWithinHalfAStep) {
  Random random(9);
  const IntegerPage layout(64, planes());
  for (int round = 0; round < 200; ++round) {
    const auto keys = random.floats(64, -3, 3), values = random.floats(64, -3, 3);
    Aligned<std::byte> page(page_bytes(GetParam(), 64));
    ASSERT_TRUE(store(reference_level(), keys, values, 64, 1, 64, 4, page.data()));
    for (int d = 0; d < 64; ++d) {
      const float key_scale = reinterpret_cast<const float*>(page.data())[d / 32 * 16 + 4];
      const auto* codes = reinterpret_cast<const std::int16_t*>(page.data() + layout.keys);
      EXPECT_NEAR(codes[(d / 2 * 16 + 4) * 2 + d % 2] * key_scale, keys[static_cast<std::size_t>(d)], key_scale * 0.501);
      const float scale = *reinterpret_cast<const float*>(page.data() + layout.value_scales + 16);
      const std::ptrdiff_t at = 2 * 2 * 64 + 2 * d;
      int code = static_cast<std::int8_t>(page[static_cast<std::size_t>(layout.values + at)]);
      if (planes() == 2) code = 254 * code + static_cast<std::int8_t>(page[static_cast<std::size_t>(layout.second_plane + at)]);
      EXPECT_NEAR(static_cast<float>(code) * scale, values[static_cast<std::size_t>(d)], scale * 0.501);
    }
  }
}

TEST_P(IntegerPages, RefusesWhatIsNotFinite) {
  for (const KernelTable* level : all_levels()) {
    for (const int head_dim : {16, 40}) {
      for (const float bad : {-INFINITY, INFINITY, NAN, -NAN}) {
        for (int d = 0; d < head_dim; ++d) {
          for (const bool in_keys : {true, false}) {
            std::vector<float> keys(static_cast<std::size_t>(3 * head_dim), 3e38f), values = keys;
            Aligned<std::byte> page(page_bytes(GetParam(), head_dim));
            EXPECT_TRUE(store(*level, keys, values, head_dim, 3, head_dim, 5, page.data()));
            (in_keys ? keys : values)[static_cast<std::size_t>(head_dim + d)] = bad;
            EXPECT_FALSE(store(*level, keys, values, head_dim, 3, head_dim, 5, page.data()))
                << level->name << " " << bad << " at " << d;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace couplet::kernels
