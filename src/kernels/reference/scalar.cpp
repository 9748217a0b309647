#include "kernels/reference/scalar.h"

#include <bit>
#include <cmath>

namespace couplet::kernels::reference {

float exp_float(float x) {
  if (x != x) return x;
  if (x < -87.0f) return 0.0f;
  if (x > 88.0f) x = 88.0f;
  // n = x / ln 2 to the nearest integer, ties to even: a sum with 1.5 * 2^23 has no room for a fraction, and its low
  // bits are n.
  constexpr float kRounder = 0x1.8p23f;
  const float shifted = std::fma(x, 0x1.715476p0f, kRounder);
  const float n = shifted - kRounder;
  float r = std::fma(n, -0x1.62e43p-1f, x);  // x - n * ln 2 in two parts; the first step is exact
  r = std::fma(n, 0x1.05c61p-29f, r);
  float p = 0x1.6a41f6p-10f;
  p = std::fma(p, r, 0x1.1239ep-7f);
  p = std::fma(p, r, 0x1.5558bcp-5f);
  p = std::fma(p, r, 0x1.555492p-3f);
  p = std::fma(p, r, 0x1.fffffcp-2f);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(shifted) << 23));
}

float soft_capped(float x, float cap) {
  const float y = x / cap, e = exp_float(-(y + y));
  return ((1.0f - e) / (1.0f + e)) * cap;
}

float max_float(float a, float b) { return a > b ? a : b; }

float join_sum(float lanes[kLanes]) {
  for (int step = kLanes / 2; step > 0; step /= 2) {
    for (int i = 0; i < step; ++i) lanes[i] = lanes[i] + lanes[i + step];
  }
  return lanes[0];
}

float join_max(float lanes[kLanes]) {
  for (int step = kLanes / 2; step > 0; step /= 2) {
    for (int i = 0; i < step; ++i) lanes[i] = max_float(lanes[i], lanes[i + step]);
  }
  return lanes[0];
}

}  // namespace couplet::kernels::reference
