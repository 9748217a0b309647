// Rule 3, sixteen blocks of 32 at a time: their maxima meet in one vector, so that scales are divided and sums scaled for
// all of them at once.

#include <immintrin.h>

#include "kernels/avx512/product_kernels.h"
#include "kernels/scale_limits.h"

namespace couplet::kernels::avx512 {
namespace {

constexpr int kGroup = 16;  // blocks

// Lane i: the greatest lane of v[i]. Four rounds, each of which joins two vectors into one.
inline __m512i greatest_of_each(__m512i v[kGroup]) {
  const auto join128 = [](__m512i a, __m512i b) {
    return _mm512_max_epu32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
  };
  for (int i = 0; i < 8; ++i) v[i] = join128(v[2 * i], v[2 * i + 1]);
  for (int i = 0; i < 4; ++i) v[i] = join128(v[2 * i], v[2 * i + 1]);
  for (int i = 0; i < 2; ++i) {
    v[i] = _mm512_max_epu32(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]), _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
  }
  const __m512i all = _mm512_max_epu32(_mm512_unpacklo_epi64(v[0], v[1]), _mm512_unpackhi_epi64(v[0], v[1]));
  // Element e of 128-bit lane j belongs to v[4e + j].
  return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), all);
}

inline __m512i magnitude_bits(const float* x) {
  return _mm512_and_si512(_mm512_castps_si512(_mm512_loadu_ps(x)), _mm512_set1_epi32(0x7fffffff));
}

// Lane i: the greatest magnitude of block i, as bits; lanes from `num` on are 0.
inline __m512i greatest_of_blocks(const float* x, int num) {
  const auto greatest = [x](int i) { return _mm512_max_epu32(magnitude_bits(x + 32 * i), magnitude_bits(x + 32 * i + 16)); };
  if (num <= 4) {  // the rest of a row: rounds for 16 cost more than four reductions
    alignas(64) unsigned lanes[kGroup] = {};
    for (int i = 0; i < num; ++i) lanes[i] = _mm512_reduce_max_epu32(greatest(i));
    return _mm512_load_si512(lanes);
  }
  __m512i most[kGroup];
  for (int i = 0; i < kGroup; ++i) most[i] = i < num ? greatest(i) : _mm512_setzero_si512();
  return greatest_of_each(most);
}

// One plane of a block: codes, and the two sums of 16.
inline void store_plane(__m512 first, __m512 second, std::int8_t* codes, std::int16_t* sums) {
  const __m128i a = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(first)), b = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(second));
  const __m256i both = _mm256_set_m128i(b, a);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), both);
  // Sums of 8 bytes made unsigned by 128 each, in 64-bit lanes.
  const __m256i eights = _mm256_sad_epu8(_mm256_xor_si256(both, _mm256_set1_epi8(-128)), _mm256_setzero_si256());
  const __m256i halves = _mm256_sub_epi64(_mm256_add_epi64(eights, _mm256_shuffle_epi32(eights, 0x4e)), _mm256_set1_epi64x(16 * 128));
  const int pair = (_mm256_extract_epi16(halves, 0) & 0xffff) | _mm256_extract_epi16(halves, 8) << 16;
  __builtin_memcpy(sums, &pair, sizeof pair);
}

inline __m512i block_sums(const std::int16_t* sums, int num) {
  const __mmask16 used = static_cast<__mmask16>((1U << num) - 1);
  return _mm512_madd_epi16(_mm512_maskz_loadu_epi32(used, sums), _mm512_set1_epi16(1));
}

// `num` blocks of a row from `block` on. Returns the greatest magnitude, as bits; where it is not finite, what was written
// means nothing.
unsigned quantize_group(const float* x, const QuantizedRows& out, std::ptrdiff_t row, std::ptrdiff_t block, int num) {
  const __m512i amax = greatest_of_blocks(x, num);
  const __mmask16 scaled = _mm512_cmpge_epu32_mask(amax, _mm512_set1_epi32(kSmallestScaled));
  const __m512 largest = _mm512_castsi512_ps(amax);
  const __m512 d = _mm512_maskz_div_ps(scaled, largest, _mm512_set1_ps(127));
  alignas(64) float inverse[kGroup], fine_inverse[kGroup], step[kGroup];
  _mm512_store_ps(inverse, _mm512_maskz_div_ps(scaled, _mm512_set1_ps(127), largest));
  if (out.lo) {
    _mm512_store_ps(fine_inverse, _mm512_maskz_div_ps(scaled, _mm512_set1_ps(254), d));
    _mm512_store_ps(step, d);
  }

  const std::ptrdiff_t index = row * (out.cols / kActivationBlock) + block;
  std::int8_t* const hi = out.hi + row * out.code_stride + block * kActivationBlock;
  std::int8_t* const lo = out.lo + row * out.code_stride + block * kActivationBlock;
  for (int i = 0; i < num; ++i) {
    const __m512 a = _mm512_loadu_ps(x + 32 * i), b = _mm512_loadu_ps(x + 32 * i + 16), by = _mm512_set1_ps(inverse[i]);
    const __m512 code_a = _mm512_mul_ps(a, by), code_b = _mm512_mul_ps(b, by);
    store_plane(code_a, code_b, hi + 32 * i, out.sum_hi + 2 * (index + i));
    if (!out.lo) continue;
    const auto rest = [&](__m512 value, __m512 code) {
      const __m512 rounded = _mm512_roundscale_ps(code, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      return _mm512_mul_ps(_mm512_fnmadd_ps(rounded, _mm512_set1_ps(step[i]), value), _mm512_set1_ps(fine_inverse[i]));
    };
    store_plane(rest(a, code_a), rest(b, code_b), lo + 32 * i, out.sum_lo + 2 * (index + i));
  }

  const __mmask16 used = static_cast<__mmask16>((1U << num) - 1);
  __m512 scale = d;
  __m512i sum = block_sums(out.sum_hi + 2 * index, num);
  if (out.lo) {
    scale = _mm512_div_ps(d, _mm512_set1_ps(254));
    sum = _mm512_add_epi32(_mm512_mullo_epi32(sum, _mm512_set1_epi32(254)), block_sums(out.sum_lo + 2 * index, num));
  }
  _mm512_mask_storeu_ps(out.scale + index, used, scale);
  _mm512_mask_storeu_ps(out.scaled_sum + index, used, _mm512_mul_ps(scale, _mm512_cvtepi32_ps(sum)));
  return _mm512_reduce_max_epu32(amax);
}

// The greatest magnitude of a row whose values stand `step` blocks apart: step 1, or 0 for a row of one block's values.
unsigned quantize_row(const float* x, std::ptrdiff_t step, const QuantizedRows& out, std::ptrdiff_t row) {
  const std::ptrdiff_t num_blocks = out.cols / kActivationBlock;
  unsigned most = 0;
  for (std::ptrdiff_t block = 0; block < num_blocks; block += kGroup) {
    const int num = static_cast<int>(num_blocks - block < kGroup ? num_blocks - block : kGroup);
    const unsigned amax = quantize_group(x + step * block * kActivationBlock, out, row, block, num);
    most = amax > most ? amax : most;
  }
  return most;
}

}  // namespace

void quantize(const float* x, int x_stride, const QuantizedRows& out, std::uint8_t* poisoned) {
  alignas(64) static constexpr float kZeros[kGroup * kActivationBlock] = {};
  for (std::ptrdiff_t row = 0; row < out.num_rows; ++row) {
    if (quantize_row(x + row * x_stride, 1, out, row) <= kLargestFinite) continue;
    poisoned[row] = 1;
    quantize_row(kZeros, 0, out, row);
  }
}

}  // namespace couplet::kernels::avx512
