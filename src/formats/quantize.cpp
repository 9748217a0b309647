#include "formats/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "formats/quantize_k.h"

namespace couplet::formats {
namespace {

constexpr int kBlock = 32;
// Far beyond what scales in half precision reach, and squares of it still add up.
constexpr float kMostMagnitude = 0x1p40F;

// The scale's half, and its inverse in full precision, which the codes are made with.
struct Scale {
  std::uint16_t half;
  float inverse;  // 0 where the scale is, or is too small to have one
};
Scale scale_of(float scale) {
  const float inverse = 1.0F / scale;
  return {float_to_half(scale), std::isfinite(inverse) ? inverse : 0.0F};
}

void put_half(std::byte* at, std::uint16_t half) { std::memcpy(at, &half, sizeof half); }

// 32 codes of 4 bits: the low nibbles of 16 bytes come first, then the high ones; and the fifth bits, where there are any.
void put_codes(const int* codes, std::byte* nibbles, std::byte* fifth_bits) {
  for (int i = 0; i < kBlock / 2; ++i) nibbles[i] = static_cast<std::byte>((codes[i] & 15) | (codes[i + 16] & 15) << 4);
  if (fifth_bits == nullptr) return;
  std::uint32_t bits = 0;
  for (int i = 0; i < kBlock; ++i) bits |= static_cast<std::uint32_t>(codes[i] >> 4) << i;
  std::memcpy(fifth_bits, &bits, sizeof bits);
}

// Q4_0 and Q5_0: value = d * (code - offset). The extreme value gets code 0, where there is one more than at the other end.
template <int kNumBits>
bool quantize_around_zero(const float* x, std::byte* out) {
  constexpr int kMostCode = (1 << kNumBits) - 1, kOffset = 1 << (kNumBits - 1);
  float extreme = 0;
  for (int i = 0; i < kBlock; ++i)
    if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
  const Scale d = scale_of(extreme / -static_cast<float>(kOffset));
  int codes[kBlock];
  for (int i = 0; i < kBlock; ++i)
    codes[i] = std::min(static_cast<int>(x[i] * d.inverse + (static_cast<float>(kOffset) + 0.5F)), kMostCode);
  put_half(out, d.half);
  put_codes(codes, out + (kNumBits == 5 ? 6 : 2), kNumBits == 5 ? out + 2 : nullptr);
  return is_finite_half(d.half);
}

// Q4_1 and Q5_1: value = d * code + m.
template <int kNumBits>
bool quantize_from_minimum(const float* x, std::byte* out) {
  constexpr int kMostCode = (1 << kNumBits) - 1;
  const float least = *std::min_element(x, x + kBlock), most = *std::max_element(x, x + kBlock);
  const Scale d = scale_of((most - least) / static_cast<float>(kMostCode));
  const std::uint16_t m = float_to_half(least);
  int codes[kBlock];
  for (int i = 0; i < kBlock; ++i) codes[i] = std::min(static_cast<int>((x[i] - least) * d.inverse + 0.5F), kMostCode);
  put_half(out, d.half);
  put_half(out + 2, m);
  put_codes(codes, out + (kNumBits == 5 ? 8 : 4), kNumBits == 5 ? out + 4 : nullptr);
  return is_finite_half(d.half) && is_finite_half(m);
}

bool quantize_q8_0(const float* x, std::byte* out) {
  float most = 0;
  for (int i = 0; i < kBlock; ++i) most = std::max(most, std::abs(x[i]));
  const Scale d = scale_of(most / 127.0F);
  put_half(out, d.half);
  for (int i = 0; i < kBlock; ++i) out[2 + i] = static_cast<std::byte>(static_cast<int>(std::round(x[i] * d.inverse)) & 0xff);
  return is_finite_half(d.half);
}

bool to_f32(const float* x, std::byte* out) {
  std::memcpy(out, x, sizeof *x);
  return true;
}
bool to_f16(const float* x, std::byte* out) {
  const std::uint16_t half = float_to_half(*x);
  put_half(out, half);
  return is_finite_half(half);
}
bool to_bf16(const float* x, std::byte* out) {
  const std::uint16_t upper = float_to_bfloat16(*x);
  put_half(out, upper);
  return (upper & 0x7f80U) != 0x7f80U;
}

using BlockQuantizer = bool (*)(const float*, std::byte*);

// Null: there is none.
BlockQuantizer quantizer_of(TensorType type) {
  switch (type) {
    case TensorType::f32: return to_f32;
    case TensorType::f16: return to_f16;
    case TensorType::bf16: return to_bf16;
    case TensorType::q4_0: return quantize_around_zero<4>;
    case TensorType::q4_1: return quantize_from_minimum<4>;
    case TensorType::q5_0: return quantize_around_zero<5>;
    case TensorType::q5_1: return quantize_from_minimum<5>;
    case TensorType::q8_0: return quantize_q8_0;
    case TensorType::q2_k: return quantize_q2_k;
    case TensorType::q3_k: return quantize_q3_k;
    case TensorType::q4_k: return quantize_q4_k;
    case TensorType::q5_k: return quantize_q5_k;
    case TensorType::q6_k: return quantize_q6_k;
    default: return nullptr;
  }
}

}  // namespace

bool has_quantizer(TensorType type) { return quantizer_of(type) != nullptr; }

bool quantize(TensorType type, const float* values, std::size_t count, std::byte* out) {
  const BlockQuantizer quantizer = quantizer_of(type);
  const TensorTypeInfo& sizes = info(type);
  const bool is_float = sizes.block_values == 1;
  for (std::size_t i = 0; i < count; ++i)
    if (!(std::abs(values[i]) <= (is_float ? std::numeric_limits<float>::max() : kMostMagnitude))) return false;
  for (std::size_t i = 0; i < count / sizes.block_values; ++i)
    if (!quantizer(values + i * sizes.block_values, out + i * sizes.block_bytes)) return false;
  return true;
}

}  // namespace couplet::formats
