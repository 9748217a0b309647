#pragma once
// Numbers in the bytes of a block, at any address. Shared by quant_types.cpp and coded_blocks.cpp.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace couplet::formats {

inline std::uint32_t byte_at(const std::byte* bytes, int index) { return std::to_integer<std::uint32_t>(bytes[index]); }

template <class T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// IEEE half to float: exact, so also for subnormals; a NaN keeps its bits.
inline float half_value(std::uint32_t half) {
  const std::uint32_t sign = (half & 0x8000) << 16;
  const std::uint32_t exponent = half >> 10 & 31;
  const std::uint32_t fraction = half & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}
inline float half_at(const std::byte* bytes) { return half_value(load<std::uint16_t>(bytes)); }

// The 4-bit code `i` of 32: the low nibbles of 16 bytes come first, then the high ones.
inline std::uint32_t nibble(const std::byte* codes, int i) {
  return i < 16 ? byte_at(codes, i) & 15 : byte_at(codes, i - 16) >> 4;
}

}  // namespace couplet::formats
