// Rule 3, a block of 32 in four vectors.

#include <immintrin.h>

#include "kernels/avx2/product_kernels.h"
#include "kernels/scale_limits.h"

namespace couplet::kernels::avx2 {
namespace {

inline unsigned largest_magnitude(const __m256 x[4]) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i largest = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i) largest = _mm256_max_epu32(largest, _mm256_and_si256(_mm256_castps_si256(x[i]), magnitude));
  __m128i m = _mm_max_epu32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
  return static_cast<unsigned>(_mm_cvtsi128_si32(m));
}

// Codes and sum of one plane of 16 values.
inline int store_codes(__m256 a, __m256 b, std::int8_t* codes) {
  const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(a), _mm256_cvtps_epi32(b));
  const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);
  const __m128i low = _mm256_castsi256_si128(ordered), high = _mm256_extracti128_si256(ordered, 1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), _mm_packs_epi16(low, high));
  __m128i sum = _mm_madd_epi16(_mm_add_epi16(low, high), _mm_set1_epi16(1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
  return _mm_cvtsi128_si32(sum);
}

struct Sums {
  int hi = 0;
  int lo = 0;
};

struct Scales {
  float d, inverse, fine_inverse;
};

inline __m256 rest(__m256 x, __m256 scaled, const Scales& scales) {
  const __m256 hi = _mm256_round_ps(scaled, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  return _mm256_mul_ps(_mm256_fnmadd_ps(hi, _mm256_set1_ps(scales.d), x), _mm256_set1_ps(scales.fine_inverse));
}

inline Sums store_half(__m256 a, __m256 b, const Scales& scales, const QuantizedRows& out, std::ptrdiff_t at) {
  const __m256 inverse = _mm256_set1_ps(scales.inverse);
  const __m256 scaled_a = _mm256_mul_ps(a, inverse), scaled_b = _mm256_mul_ps(b, inverse);
  Sums sums;
  sums.hi = store_codes(scaled_a, scaled_b, out.hi + at);
  if (out.lo) sums.lo = store_codes(rest(a, scaled_a, scales), rest(b, scaled_b, scales), out.lo + at);
  return sums;
}

// Returns the block's largest magnitude, as bits; where it is not finite, nothing is written.
unsigned quantize_block(const float* x, const QuantizedRows& out, std::ptrdiff_t row, std::ptrdiff_t block) {
  const __m256 v[4] = {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8), _mm256_loadu_ps(x + 16), _mm256_loadu_ps(x + 24)};
  const unsigned amax = largest_magnitude(v);
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
  const Sums first = store_half(v[0], v[1], scales, out, at), second = store_half(v[2], v[3], scales, out, at + 16);
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

}  // namespace couplet::kernels::avx2
