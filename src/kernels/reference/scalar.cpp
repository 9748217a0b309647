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

std::uint16_t float_to_half(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x), magnitude = bits & 0x7fffffffu;
  const std::uint32_t sign = (bits >> 16) & 0x8000u, exponent = magnitude >> 23;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {  // 65520: halfway between the greatest half and the next power of two
    half = 0x7c00u;
  } else if (exponent > 127 - 15) {
    const std::uint32_t rebased = magnitude - ((127u - 15) << 23);
    half = (rebased + 0xfffu + ((rebased >> 13) & 1)) >> 13;
  } else if (exponent >= 101) {  // a subnormal half: units of 2^-24; below 2^-26 all is zero
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u, shift = 126 - exponent;
    const std::uint32_t middle = 1u << (shift - 1), rest = mantissa & ((1u << shift) - 1);
    half = mantissa >> shift;
    if (rest > middle || (rest == middle && (half & 1))) ++half;
  }
  return static_cast<std::uint16_t>(half | sign);
}

bool is_finite_half(std::uint16_t half) { return (half & 0x7c00u) != 0x7c00u; }

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
