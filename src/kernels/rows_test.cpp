// Norm, rope, activations, elementwise steps and the passes over logits: every level gives the reference's bits, and the
// reference means what its name says (against double arithmetic, with a stated bound).

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "kernels/kernel_testing.h"
#include "kernels/reference/scalar.h"

namespace couplet::kernels {
namespace {

using testing::all_levels;
using testing::Random;
using testing::reference_level;
using testing::same_bits;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kSpecials[] = {0.0f,     -0.0f,      1e-45f,  -1e-45f,   1.1754942e-38f, -1.1754942e-38f, 87.0f,
                               -87.0f,   -87.00001f, 88.0f,   88.00001f, 3.4028235e38f,  -3.4028235e38f,  1e20f,
                               -1e20f,   1e-20f,     -1e-20f, 0.5f,      -0.5f,          1.8446744e19f,   -103.9f,
                               16777216, 0x1p-126f,  -126.0f, 127.5f};

std::vector<int> lengths() {
  std::vector<int> all;
  for (int n = 1; n <= 70; ++n) all.push_back(n);
  for (const int n : {576, 640, 2048}) all.push_back(n);
  return all;
}

// Random values with a special one at every third place.
std::vector<float> sprinkled(Random& random, std::size_t count, float reach) {
  std::vector<float> values = random.floats(count, -reach, reach);
  for (std::size_t i = 0; i < count; i += 3) {
    values[i] = kSpecials[random.below(static_cast<int>(std::size(kSpecials)))];
  }
  return values;
}

// NaN payloads are outside the contract.
void make_nans_equal(std::vector<float>& values) {
  for (float& value : values) value = std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value;
}

template <class Kernel>  // Kernel(table, x) changes x
void expect_same(const std::vector<float>& input, const std::string& what, Kernel kernel) {
  std::vector<float> expected = input;
  kernel(reference_level(), expected);
  make_nans_equal(expected);
  for (const KernelTable* level : all_levels()) {
    std::vector<float> got = input;
    kernel(*level, got);
    make_nans_equal(got);
    EXPECT_TRUE(same_bits(got.data(), expected.data(), got.size())) << level->name << " " << what;
  }
}

TEST(Rows, RmsNormIsTheSameAtEveryLevel) {
  Random random(1);
  for (const int cols : lengths()) {
    for (const int rows : {1, 3}) {
      const int stride = cols + random.below(9);
      const auto count = static_cast<std::size_t>(rows * stride);
      for (const bool specials : {false, true}) {
        const auto x = specials ? sprinkled(random, count, 4) : random.floats(count, -4, 4);
        const auto weight = random.floats(static_cast<std::size_t>(cols), -2, 2);
        const auto what = "cols " + std::to_string(cols) + (specials ? " specials" : "");
        expect_same(x, what + " in place", [&](const KernelTable& table, std::vector<float>& values) {
          table.rms_norm(values.data(), stride, weight.data(), 1e-5f, rows, cols, values.data(), stride);
        });
        expect_same(std::vector<float>(count, 7), what, [&](const KernelTable& table, std::vector<float>& out) {
          table.rms_norm(x.data(), stride, weight.data(), 1e-5f, rows, cols, out.data(), stride);
        });
      }
    }
  }
}

TEST(Rows, RmsNormOfZerosUsesEps) {
  const std::vector<float> x(40, 0), weight(40, 1);
  std::vector<float> out(40, 5);
  reference_level().rms_norm(x.data(), 40, weight.data(), 1e-6f, 1, 40, out.data(), 40);
  EXPECT_EQ(out, x);
}

TEST(Rows, RmsNormIsWithinThreeUlpOfDouble) {
  Random random(2);
  const int cols = 576;
  const auto x = random.floats(cols, -3, 3), weight = random.floats(cols, -2, 2);
  std::vector<float> out(cols);
  reference_level().rms_norm(x.data(), cols, weight.data(), 1e-5f, 1, cols, out.data(), cols);
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  const double inverse = 1 / std::sqrt(sum / cols + static_cast<double>(1e-5f));
  for (std::size_t i = 0; i < cols; ++i) {
    const double exact = x[i] * inverse * weight[i];
    EXPECT_NEAR(out[i], exact, std::abs(exact) * 3 * 0x1p-23) << i;
  }
}

TEST(Rows, RopeIsTheSameAtEveryLevel) {
  Random random(3);
  for (const int head_dim : {2, 16, 40, 64, 80, 96, 128, 256}) {
    for (const int half : {1, head_dim / 4, head_dim / 2}) {
      if (half == 0) continue;
      for (const int heads : {1, 3}) {
        const auto count = static_cast<std::size_t>(heads * head_dim), turns = static_cast<std::size_t>(half);
        const auto cos = random.floats(turns), sin = random.floats(turns);
        for (const auto& x : {random.floats(count, -4, 4), sprinkled(random, count, 4)}) {
          expect_same(x, "half " + std::to_string(half), [&](const KernelTable& table, std::vector<float>& values) {
            table.rope(values.data(), heads, head_dim, cos.data(), sin.data(), half);
          });
        }
      }
    }
  }
}

TEST(Rows, RopeTurnsHalvesAndLeavesTheRest) {
  const float cos[] = {0, 1}, sin[] = {1, 0};
  for (const KernelTable* level : all_levels()) {
    std::vector<float> x = {1, 2, 3, 4, 5, 6};
    level->rope(x.data(), 1, 6, cos, sin, 2);
    EXPECT_EQ(x, (std::vector<float>{-3, 2, 1, 4, 5, 6})) << level->name;
  }
}

TEST(Rows, ElementwiseKernelsAreTheSameAtEveryLevel) {
  Random random(4);
  for (const int cols : lengths()) {
    const auto count = static_cast<std::size_t>(cols);
    const auto y = sprinkled(random, count, 8);
    for (const auto& x : {random.floats(count, -100, 100), sprinkled(random, count, 8)}) {
      const auto what = std::to_string(cols) + " values of ";
      expect_same(x, what + "silu_mul",
                  [&](const KernelTable& table, auto& v) { table.silu_mul(v.data(), y.data(), count); });
      expect_same(x, what + "gelu_mul",
                  [&](const KernelTable& table, auto& v) { table.gelu_mul(v.data(), y.data(), count); });
      expect_same(x, what + "clamped_silu_mul",
                  [&](const KernelTable& table, auto& v) { table.clamped_silu_mul(v.data(), y.data(), count); });
      for (const float cap : {30.0f, 50.0f, 1e-3f})
        expect_same(x, what + "soft_cap",
                    [&](const KernelTable& table, auto& v) { table.soft_cap(v.data(), cap, count); });
      expect_same(x, what + "add_scaled",
                  [&](const KernelTable& table, auto& v) { table.add_scaled(v.data(), y.data(), -0.37f, count); });
      expect_same(x, what + "add", [&](const KernelTable& table, auto& v) { table.add(v.data(), y.data(), count); });
      expect_same(x, what + "scale",
                  [&](const KernelTable& table, auto& v) { table.scale(v.data(), 1.7f, count); });
    }
    const int stride = cols + 3;
    expect_same(sprinkled(random, static_cast<std::size_t>(3 * stride), 8), "add_bias", [&](const auto& table, auto& v) {
      table.add_bias(v.data(), stride, y.data(), 3, cols);
    });
  }
}

// A gate in `in`, its product with 1 back.
float activated(void (*kernel)(float*, const float*, std::size_t), float gate) {
  const float one = 1;
  kernel(&gate, &one, 1);
  return gate;
}

TEST(Rows, ActivationsAreNearDouble) {
  for (float g = -30; g <= 30; g += 0.0037f) {
    const double silu = g / (1 + std::exp(-static_cast<double>(g)));
    EXPECT_NEAR(activated(reference_level().silu_mul, g), silu, std::abs(silu) * 3 * 0x1p-23) << g;
    // exp(-y) takes over the relative error of y, so the bound grows with y.
    const double y = 2 * std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g), gelu = g / (1 + std::exp(-y));
    if (std::abs(y) < 80) {
      EXPECT_NEAR(activated(reference_level().gelu_mul, g), gelu, std::abs(gelu) * (4 + 2 * std::abs(y)) * 0x1p-23)
          << g;
    }
  }
  EXPECT_EQ(activated(reference_level().silu_mul, 200), 200);
  EXPECT_EQ(activated(reference_level().gelu_mul, 1e30f), 1e30f);
  EXPECT_EQ(std::abs(activated(reference_level().gelu_mul, -1e30f)), 1e30f / (1 + reference::exp_float(88)));
  EXPECT_TRUE(std::isnan(activated(reference_level().silu_mul, NAN)));
}

TEST(Rows, ExpIsWithinOneUlpOnItsRange) {
  double worst = 0;
  for (std::uint32_t bits = 0; bits <= 0x42b00000; bits += 977) {  // 88.0f
    for (const float sign : {1.0f, -1.0f}) {
      float x;
      std::memcpy(&x, &bits, 4);
      x *= sign;
      if (x < -87.0f) continue;
      int exponent;
      const double exact = std::exp(static_cast<double>(x));
      std::frexp(exact, &exponent);
      worst = std::max(worst, std::abs(reference::exp_float(x) - exact) / std::ldexp(1.0, exponent - 24));
    }
  }
  EXPECT_LT(worst, 0.9);
}

TEST(Rows, ExpAtItsEdges) {
  EXPECT_EQ(reference::exp_float(0.0f), 1.0f);
  EXPECT_EQ(reference::exp_float(-0.0f), 1.0f);
  EXPECT_EQ(reference::exp_float(1e-45f), 1.0f);
  EXPECT_GT(reference::exp_float(-87.0f), std::numeric_limits<float>::min());
  for (const float x : {std::nextafter(-87.0f, -88.0f), -1e30f, -kInf}) {
    EXPECT_EQ(reference::exp_float(x), 0.0f) << x;
    EXPECT_FALSE(std::signbit(reference::exp_float(x))) << x;
  }
  for (const float x : {std::nextafter(88.0f, 89.0f), 1e30f, kInf}) {
    EXPECT_EQ(reference::exp_float(x), reference::exp_float(88.0f)) << x;
  }
  EXPECT_TRUE(std::isnan(reference::exp_float(NAN)));
}

TEST(Logits, SumExpIsTheSameAtEveryLevel) {
  Random random(5);
  for (int count : lengths()) {
    auto logits = random.floats(static_cast<std::size_t>(count), -95, 0);
    if (count > 4) logits[static_cast<std::size_t>(count) / 2] = -kInf;
    logits[static_cast<std::size_t>(random.below(count))] = 0;
    double expected_weighted = 9;
    const double expected = reference_level().sum_exp(logits.data(), count, 0.25f, &expected_weighted);
    EXPECT_TRUE(std::isfinite(expected_weighted) && expected_weighted < 0) << count;
    for (const KernelTable* level : all_levels()) {
      double weighted = 9;
      const double got = level->sum_exp(logits.data(), count, 0.25f, &weighted);
      EXPECT_TRUE(same_bits(&got, &expected, 1)) << level->name << " " << count;
      EXPECT_TRUE(same_bits(&weighted, &expected_weighted, 1)) << level->name << " " << count;
      EXPECT_EQ(level->sum_exp(logits.data(), count, 0.25f, nullptr), expected) << level->name << " " << count;
    }
  }
}

TEST(Logits, SumExpAddsInDoubleAndLeavesOutMinusInfinity) {
  std::vector<float> logits(1000, -10);
  logits[3] = -kInf;
  logits[500] = 0;
  for (const KernelTable* level : all_levels()) {
    const double term = reference::exp_float(-10), sum = level->sum_exp(logits.data(), 1000, 0, nullptr);
    double weighted = 9;
    level->sum_exp(logits.data(), 1000, 0, &weighted);
    EXPECT_NEAR(weighted, -9980 * term, 1e-12) << level->name;  // 998 times exp(-10) * -10
    EXPECT_NEAR(sum, 1 + 998 * term, 1e-15) << level->name;  // float would round every term away from this
    const float nothing = -kInf;
    EXPECT_EQ(level->sum_exp(&nothing, 1, 3.0f, nullptr), 0.0) << level->name;
    EXPECT_EQ(level->sum_exp(logits.data(), 0, 0, nullptr), 0.0) << level->name;
  }
}

TEST(Logits, ArgmaxIsTheLowestOfTheGreatest) {
  Random random(6);
  for (const int count : lengths()) {
    for (int round = 0; round < 8; ++round) {
      std::vector<float> logits(static_cast<std::size_t>(count));
      const int choices = round + 1;
      for (float& logit : logits) logit = static_cast<float>(random.below(choices)) - 4.0f;
      const auto first = std::max_element(logits.begin(), logits.end()) - logits.begin();
      for (const KernelTable* level : all_levels()) {
        bool finite = false;
        EXPECT_EQ(level->argmax(logits.data(), count, &finite), first) << level->name << " " << count;
        EXPECT_TRUE(finite);
      }
    }
  }
}

TEST(Logits, ArgmaxTakesZerosOfBothSignsAsEqual) {
  for (const KernelTable* level : all_levels()) {
    for (const int place : {0, 5, 15, 16, 40}) {
      std::vector<float> logits(41, -1);
      logits[40] = 0.0f;
      logits[static_cast<std::size_t>(place)] = -0.0f;
      bool finite = false;
      EXPECT_EQ(level->argmax(logits.data(), 41, &finite), place) << level->name;
    }
  }
}

TEST(Logits, ArgmaxReportsWhatIsNotFinite) {
  for (const KernelTable* level : all_levels()) {
    for (const float bad : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
      for (const int count : {1, 15, 16, 17, 50}) {
        for (int place = 0; place < count; ++place) {
          std::vector<float> logits(static_cast<std::size_t>(count), -3.4028235e38f);
          logits[0] = 3.4028235e38f;
          bool finite = false;
          EXPECT_EQ(level->argmax(logits.data(), count, &finite), 0);
          EXPECT_TRUE(finite) << level->name;
          logits[static_cast<std::size_t>(place)] = bad;
          EXPECT_EQ(level->argmax(logits.data(), count, &finite), 0) << level->name;
          EXPECT_FALSE(finite) << level->name << " " << bad << " at " << place << " of " << count;
        }
      }
    }
  }
}

TEST(Rows, SoftCapIsNearTanhInDouble) {
  for (float x = -200; x <= 200; x += 0.0173f) {
    float capped = x;
    reference_level().soft_cap(&capped, 30, 1);
    EXPECT_NEAR(capped, 30 * std::tanh(static_cast<double>(x) / 30), 30 * 3 * 0x1p-24) << x;
  }
  float huge[] = {kInf, -kInf, NAN};
  reference_level().soft_cap(huge, 30, 3);
  EXPECT_EQ(huge[0], 30);
  EXPECT_EQ(huge[1], -30);
  EXPECT_TRUE(std::isnan(huge[2]));
}

TEST(Rows, ClampedSiluIsNearDouble) {
  const auto clamped = [](float gate, float up) {
    reference_level().clamped_silu_mul(&gate, &up, 1);
    return gate;
  };
  for (float x = -12; x <= 12; x += 0.0137f) {
    const double g = std::min(static_cast<double>(x), 7.0), u = std::clamp(-0.9 * static_cast<double>(x), -7.0, 7.0);
    const double exact = g / (1 + std::exp(-1.702 * g)) * (u + 1);
    EXPECT_NEAR(clamped(x, static_cast<float>(u)), exact, std::abs(g) * 24 * 0x1p-23) << x;
  }
  EXPECT_EQ(clamped(100, -100), clamped(7, -7));
  EXPECT_EQ(clamped(-1, 100), clamped(-1, 7));
  EXPECT_TRUE(std::isnan(clamped(NAN, 1)));
  EXPECT_TRUE(std::isnan(clamped(1, NAN)));
}

TEST(Rows, AddScaledIsOneRounding) {
  const float y = 1 + 0x1p-23f;
  float x = -1;
  reference_level().add_scaled(&x, &y, 1 - 0x1p-23f, 1);
  EXPECT_EQ(x, -0x1p-46f);
}

}  // namespace
}  // namespace couplet::kernels
