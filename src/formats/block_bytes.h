#pragma once
// Numbers in the bytes of a block, at any address. Shared by quant_types.cpp and coded_blocks.cpp.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/half.h"

namespace couplet::formats {

inline std::uint32_t byte_at(const std::byte* bytes, int index) { return std::to_integer<std::uint32_t>(bytes[index]); }

template <class T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

inline float half_at(const std::byte* bytes) { return half_to_float(load<std::uint16_t>(bytes)); }

// The 4-bit code `i` of 32: the low nibbles of 16 bytes come first, then the high ones.
inline std::uint32_t nibble(const std::byte* codes, int i) {
  return i < 16 ? byte_at(codes, i) & 15 : byte_at(codes, i - 16) >> 4;
}

}  // namespace couplet::formats
