#pragma once
// Weight matrices for kernel tests: random file bytes of every type, packed panels, and what a code of the file means,
// written down once more from the file format alone.

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <ostream>
#include <utility>

#include "kernels/kernel_testing.h"

namespace couplet::kernels {

inline const char* name_of(WeightType type) {
  constexpr const char* kNames[] = {"f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k",
                                    "q6_k", "q2_k", "q3_k", "iq4_nl", "iq4_xs", "mxfp4", "coded"};
  return kNames[static_cast<int>(type)];
}
inline void PrintTo(WeightType type, std::ostream* out) { *out << name_of(type); }

}  // namespace couplet::kernels

namespace couplet::kernels::testing {

constexpr WeightType kQuantizedTypes[] = {WeightType::q4_0, WeightType::q4_1, WeightType::q5_0, WeightType::q5_1,
                                          WeightType::q8_0, WeightType::q4_k, WeightType::q5_k, WeightType::q6_k,
                                          WeightType::q2_k, WeightType::q3_k, WeightType::iq4_nl, WeightType::iq4_xs,
                                          WeightType::mxfp4, WeightType::coded};
constexpr WeightType kFloatTypes[] = {WeightType::f32, WeightType::f16, WeightType::bf16};

inline double half_value(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

// value = scale * code + minimum
struct Weight {
  int code;
  double scale;
  double minimum;

  double value() const { return scale * code + minimum; }
  bool operator==(const Weight&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Weight& w) {
  return out << w.scale << " * " << w.code << " + " << w.minimum;
}

// Offsets of the half-precision scales in a block of the file.
inline std::vector<int> scale_offsets(WeightType type) {
  switch (type) {
    case WeightType::q4_1:
    case WeightType::q5_1:
    case WeightType::q4_k:
    case WeightType::q5_k: return {0, 2};
    case WeightType::q6_k: return {208};
    case WeightType::q2_k: return {80, 82};
    case WeightType::q3_k: return {108};
    case WeightType::mxfp4:
    case WeightType::coded: return {};
    default: return {0};
  }
}

inline Weight weight_in_q45_k(WeightType type, const std::uint8_t* b, int k) {
  const auto half = [&](int at) { return half_value(static_cast<unsigned>(b[at] | b[at + 1] << 8)); };
  const int s = k / 32, l = k % 32;
  const std::uint8_t* scales = b + 4;
  int sc = scales[s] & 63, m = scales[s + 4] & 63;
  if (s >= 4) {
    sc = (scales[s + 4] & 15) | (scales[s - 4] >> 6) << 4;
    m = scales[s + 4] >> 4 | (scales[s] >> 6) << 4;
  }
  const bool five = type == WeightType::q5_k;
  const std::uint8_t* nibbles = b + (five ? 48 : 16) + 32 * (s / 2);
  const int fifth = five ? (b[16 + l] >> s & 1) << 4 : 0;
  return {(nibbles[l] >> (4 * (s % 2)) & 15) | fifth, half(0) * sc, -half(2) * m};
}

constexpr bool is_newer(WeightType type) { return type > WeightType::q6_k; }

inline int iq4_code(int nibble) {
  constexpr int kCodes[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  return kCodes[nibble];
}

inline Weight newer_weight_in_block(WeightType type, const std::uint8_t* b, int k) {
  const auto half = [&](int at) { return half_value(static_cast<unsigned>(b[at] | b[at + 1] << 8)); };
  const auto nibble32 = [&](int at) { return b[at + k % 16] >> (k % 32 < 16 ? 0 : 4) & 15; };  // k of 32
  const auto two_bits = [&](int at) { return b[at + 32 * (k / 128) + k % 32] >> (2 * (k / 32 % 4)) & 3; };
  const int s = k / 16;
  switch (type) {
    case WeightType::q2_k: return {two_bits(16), half(80) * (b[s] & 15), -half(82) * (b[s] >> 4)};
    case WeightType::q3_k: {
      const int third = b[k % 32] >> (k / 32) & 1;
      const int low = b[96 + s % 8] >> (s < 8 ? 0 : 4) & 15, high = b[104 + s % 4] >> (2 * (s / 4)) & 3;
      return {two_bits(32) - (third ? 0 : 4), half(108) * ((low | high << 4) - 32), 0};
    }
    case WeightType::iq4_nl: return {iq4_code(nibble32(2)), half(0), 0};
    case WeightType::iq4_xs: {
      const int part = k / 32, low = b[4 + part / 2] >> (4 * (part % 2)) & 15;
      const int high = (b[2] | b[3] << 8) >> (2 * part) & 3;
      return {iq4_code(nibble32(8 + 16 * part)), half(0) * ((low | high << 4) - 32), 0};
    }
    case WeightType::mxfp4: {
      constexpr int kTwice[] = {0, 1, 2, 3, 4, 6, 8, 12};
      const int nibble = nibble32(1);
      return {nibble < 8 ? kTwice[nibble] : -kTwice[nibble - 8], std::ldexp(1.0, b[0] - 128), 0};
    }
    default: break;  // coded
  }
  float d;
  std::memcpy(&d, b, sizeof d);
  return {static_cast<std::int8_t>(b[4 + nibble32(36 + 16 * (k / 32))]),
          static_cast<double>(d) * static_cast<std::int8_t>(b[20 + s]), 0};
}

// Value k of one block, as the file format says.
inline Weight weight_in_block(WeightType type, const std::uint8_t* b, int k) {
  const auto half = [&](int at) { return half_value(static_cast<unsigned>(b[at] | b[at + 1] << 8)); };
  const auto nibble32 = [&](int at) { return b[at + k % 16] >> (k < 16 ? 0 : 4) & 15; };
  const auto fifth32 = [&](int at) { return (b[at + k / 8] >> (k % 8) & 1) << 4; };
  switch (type) {
    case WeightType::q4_0: return {nibble32(2) - 8, half(0), 0};
    case WeightType::q4_1: return {nibble32(4), half(0), half(2)};
    case WeightType::q5_0: return {(nibble32(6) | fifth32(2)) - 16, half(0), 0};
    case WeightType::q5_1: return {nibble32(8) | fifth32(4), half(0), half(2)};
    case WeightType::q8_0: return {static_cast<std::int8_t>(b[2 + k]), half(0), 0};
    case WeightType::q6_k: {
      const int half_block = k / 128, i = k % 128;
      const int low = b[64 * half_block + i % 64] >> (i < 64 ? 0 : 4) & 15;
      const int high = b[128 + 32 * half_block + i % 32] >> (2 * (i / 32)) & 3;
      return {(low | high << 4) - 32, half(208) * static_cast<std::int8_t>(b[192 + k / 16]), 0};
    }
    default: break;
  }
  return is_newer(type) ? newer_weight_in_block(type, b, k) : weight_in_q45_k(type, b, k);
}

enum class Fill { random, zeros, ones, sign_bits };  // code bytes at random, 0x00, 0xff, 0x80
struct FileMatrix {
  WeightType type;
  int rows;
  int cols;
  std::vector<std::uint8_t> bytes;

  std::size_t stride() const { return file_row_bytes(type, cols); }
  const std::uint8_t* row(int r) const { return bytes.data() + static_cast<std::size_t>(r) * stride(); }
  Weight at(int r, int k) const {
    const int values = block_values(type);
    return weight_in_block(type, row(r) + file_row_bytes(type, k / values * values), k % values);
  }
};

// Scales of every kind: usual ones, negative, subnormal, zeros of both signs, the greatest.
inline std::uint16_t random_half(Random& random, bool extreme) {
  constexpr std::uint16_t kExtremes[] = {0x0001, 0x83ff, 0x0000, 0x8000, 0x7bff, 0xfbff, 0x0400, 0x3c00};
  if (extreme && random.below(2) == 0) return kExtremes[random.below(8)];
  return static_cast<std::uint16_t>(0x2000 + random.below(0x1000) + (random.below(2) << 15));
}

// Of MXFP4: usual ones; the two smallest, which give subnormal scales, and the greatest that a sum does not overflow with.
inline std::uint8_t random_exponent(Random& random, bool extreme) {
  constexpr std::uint8_t kExtremes[] = {0, 1, 2, 3, 64, 200};
  if (extreme && random.below(2) == 0) return kExtremes[random.below(6)];
  return static_cast<std::uint8_t>(110 + random.below(16));
}

// A random float, one list of codes for all blocks, and, where the rest of the block is random, scales in their range.
inline void set_coded_head(std::uint8_t* block, Random& random, Fill fill, bool extreme) {
  const auto d = static_cast<float>(half_value(random_half(random, extreme)) / 8);
  std::memcpy(block, &d, sizeof d);
  constexpr std::int8_t kCodes[16] = {63, -63, 0, 1, -1, 8, -8, 25, -25, 43, -43, 62, -62, 7, -9, 31};
  std::memcpy(block + 4, kCodes, sizeof kCodes);
  for (int s = 0; s < 16 && fill == Fill::random; ++s) block[20 + s] &= 63;
}

inline FileMatrix random_weights(WeightType type, int rows, int cols, Random& random, Fill fill = Fill::random,
                                 bool extreme_scales = false) {
  FileMatrix matrix = {type, rows, cols, {}};
  matrix.bytes.resize(static_cast<std::size_t>(rows) * matrix.stride());
  constexpr std::uint8_t kFills[] = {0, 0x00, 0xff, 0x80};
  for (std::uint8_t& byte : matrix.bytes) {
    byte = fill == Fill::random ? static_cast<std::uint8_t>(random.bits()) : kFills[static_cast<int>(fill)];
  }
  const std::size_t block = file_row_bytes(type, block_values(type));
  for (std::size_t at = 0; at < matrix.bytes.size(); at += block) {
    if (type == WeightType::mxfp4) matrix.bytes[at] = random_exponent(random, extreme_scales);
    if (type == WeightType::coded) set_coded_head(matrix.bytes.data() + at, random, fill, extreme_scales);
    for (const int offset : scale_offsets(type)) {
      const std::uint16_t half = random_half(random, extreme_scales);
      std::memcpy(matrix.bytes.data() + at + static_cast<std::size_t>(offset), &half, 2);
    }
  }
  return matrix;
}

// The matrix in panels, and the view of it that kernels take.
struct Packed {
  Packed(const KernelTable& level, const FileMatrix& matrix)
      : bytes(16 * row_bytes(matrix.type, matrix.cols) * static_cast<std::size_t>((matrix.rows + 15) / 16)) {
    view = {matrix.type, matrix.rows, matrix.cols, 16 * row_bytes(matrix.type, matrix.cols), bytes.data()};
    for (int p = 0; p < view.num_panels(); ++p) {
      const std::byte* rows[kPanelRows];
      for (int r = 0; r < kPanelRows; ++r) {
        rows[r] = 16 * p + r < matrix.rows ? reinterpret_cast<const std::byte*>(matrix.row(16 * p + r)) : nullptr;
      }
      level.pack_panel(matrix.type, rows, matrix.cols, bytes.data() + static_cast<std::size_t>(p) * view.panel_bytes);
    }
  }
  Aligned<std::byte> bytes;
  PackedMatrix view;
};

// Quantized rows with their memory; code rows stand apart, what lies between is garbage.
struct Activations {
  Activations(int rows, int cols, bool two_planes)
      : hi(std::size_t(rows) * std::size_t(cols + 12)), lo(hi.size()), scale(std::size_t(rows) * std::size_t(cols / 32)),
        scaled_sum(scale.size()), sum_hi(2 * scale.size()), sum_lo(2 * scale.size()) {
    view = {rows, cols, cols + 12, hi.data(), two_planes ? lo.data() : nullptr, scale.data(), scaled_sum.data(),
            sum_hi.data(), two_planes ? sum_lo.data() : nullptr};
  }
  // Row `row` alone, for one_row.
  QuantizedRows row(int row) const {
    QuantizedRows one = view;
    one.num_rows = 1;
    one.hi += row * view.code_stride;
    if (one.lo) one.lo += row * view.code_stride;
    one.scale += row * (view.cols / 32);
    one.scaled_sum += row * (view.cols / 32);
    one.sum_hi += row * (view.cols / 16);
    if (one.sum_lo) one.sum_lo += row * (view.cols / 16);
    return one;
  }
  Aligned<std::int8_t> hi, lo;
  Aligned<float> scale, scaled_sum;
  Aligned<std::int16_t> sum_hi, sum_lo;
  QuantizedRows view;
};

}  // namespace couplet::kernels::testing
