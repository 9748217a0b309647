// Rule 3, a block of 32 in two vectors.

#include <immintrin.h>

#include "kernels/avx512/product_kernels.h"

namespace couplet::kernels::avx512 {
namespace {

constexpr unsigned kLargestFinite = 0x7f7fffff;
constexpr unsigned kSmallestScaled = 0x0f800000;  // 2^-96

inline unsigned largest_magnitude(__m512 a, __m512 b) {
  const __m512i bits = _mm512_max_epu32(_mm512_slli_epi32(_mm512_castps_si512(a), 1),
                                        _mm512_slli_epi32(_mm512_castps_si512(b), 1));
  return _mm512_reduce_max_epu32(bits) >> 1;
}

// Codes and sum of one plane of 16 values.
inline int store_codes(__m512 scaled, std::int8_t* codes) {
  const __m512i rounded = _mm512_cvtps_epi32(scaled);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), _mm512_cvtepi32_epi8(rounded));
  return _mm512_reduce_add_epi32(rounded);
}

struct Sums {
  int hi = 0;
  int lo = 0;
};

struct Scales {
  float d, inverse, fine_inverse;
};

inline Sums store_half(__m512 x, const Scales& scales, const QuantizedRows& out, std::ptrdiff_t at) {
  const __m512 scaled = _mm512_mul_ps(x, _mm512_set1_ps(scales.inverse));
  Sums sums;
  sums.hi = store_codes(scaled, out.hi + at);
  if (!out.lo) return sums;
  const __m512 hi = _mm512_roundscale_ps(scaled, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 rest = _mm512_fnmadd_ps(hi, _mm512_set1_ps(scales.d), x);
  sums.lo = store_codes(_mm512_mul_ps(rest, _mm512_set1_ps(scales.fine_inverse)), out.lo + at);
  return sums;
}

// Returns the block's largest magnitude, as bits; where it is not finite, nothing is written.
unsigned quantize_block(const float* x, const QuantizedRows& out, std::ptrdiff_t row, std::ptrdiff_t block) {
  const __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16);
  const unsigned amax = largest_magnitude(a, b);
  if (amax > kLargestFinite) return amax;
  Scales scales = {0, 0, 0};
  if (amax >= kSmallestScaled) {
    float largest;
    __builtin_memcpy(&largest, &amax, sizeof largest);
    scales.d = largest / 127.0f;
    scales.inverse = 127.0f / largest;
    scales.fine_inverse = 254.0f / scales.d;
  }
  const std::ptrdiff_t at = row * out.code_stride + block * kActivationBlock;
  const Sums first = store_half(a, scales, out, at), second = store_half(b, scales, out, at + 16);
  const std::ptrdiff_t index = row * (out.cols / kActivationBlock) + block;
  out.sum_hi[2 * index] = static_cast<std::int16_t>(first.hi);
  out.sum_hi[2 * index + 1] = static_cast<std::int16_t>(second.hi);
  float scale = scales.d;
  int sum = first.hi + second.hi;
  if (out.lo) {
    out.sum_lo[2 * index] = static_cast<std::int16_t>(first.lo);
    out.sum_lo[2 * index + 1] = static_cast<std::int16_t>(second.lo);
    scale = scales.d / 254.0f;
    sum = 254 * sum + first.lo + second.lo;
  }
  out.scale[index] = scale;
  out.scaled_sum[index] = scale * static_cast<float>(sum);
  return amax;
}

}  // namespace

void quantize(const float* x, int x_stride, const QuantizedRows& out, std::uint8_t* poisoned) {
  constexpr float kZeros[kActivationBlock] = {};
  const std::ptrdiff_t num_blocks = out.cols / kActivationBlock;
  for (std::ptrdiff_t row = 0; row < out.num_rows; ++row) {
    const float* values = x + row * x_stride;
    unsigned amax = 0;
    for (std::ptrdiff_t block = 0; block < num_blocks; ++block) {
      const unsigned largest = quantize_block(values + block * kActivationBlock, out, row, block);
      amax = largest > amax ? largest : amax;
    }
    if (amax <= kLargestFinite) continue;
    poisoned[row] = 1;
    for (std::ptrdiff_t block = 0; block < num_blocks; ++block) quantize_block(kZeros, out, row, block);
  }
}

}  // namespace couplet::kernels::avx512
