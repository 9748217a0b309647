#pragma once
// IEEE half precision and bfloat16 in plain C++: to float exactly, from float to the nearest, ties to even.

#include <bit>
#include <cstdint>

namespace couplet {

inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16, exponent = half >> 10 & 31U, fraction = half & 0x3ffU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);  // a NaN keeps its bits
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float subnormal = static_cast<float>(fraction) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
}

inline std::uint16_t float_to_half(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x), magnitude = bits & 0x7fffffffU;
  const std::uint32_t sign = (bits >> 16) & 0x8000U, exponent = magnitude >> 23;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U;
  } else if (magnitude >= 0x477ff000U) {  // 65520: halfway between the greatest half and the next power of two
    half = 0x7c00U;
  } else if (exponent > 127 - 15) {
    const std::uint32_t rebased = magnitude - ((127U - 15) << 23);
    half = (rebased + 0xfffU + ((rebased >> 13) & 1)) >> 13;
  } else if (exponent >= 101) {  // a subnormal half: units of 2^-24; below 2^-26 all is zero
    const std::uint32_t mantissa = (magnitude & 0x7fffffU) | 0x800000U, shift = 126 - exponent;
    const std::uint32_t middle = 1U << (shift - 1), rest = mantissa & ((1U << shift) - 1);
    half = mantissa >> shift;
    if (rest > middle || (rest == middle && (half & 1))) ++half;
  }
  return static_cast<std::uint16_t>(half | sign);
}

inline bool is_finite_half(std::uint16_t half) { return (half & 0x7c00U) != 0x7c00U; }

// Of a number, not of a NaN.
inline std::uint16_t float_to_bfloat16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1)) >> 16);
}

}  // namespace couplet
