#pragma once
// One part (32 values) of a packed panel, eight outputs (one half of the panel) at a time: vectors of codes, 8 outputs by
// 4 values each, and the floats that scale them.

#include <immintrin.h>

#include "kernels/packed_format.h"

namespace couplet::kernels::avx2 {
namespace {

inline __m256i load_vector(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

inline __m256 load_halves(const std::byte* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

inline __m128i load_bytes(const std::byte* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }

// Four consecutive activation codes, or two sums, in every lane.
inline __m256i broadcast_word(const void* p) {
  int word;
  __builtin_memcpy(&word, p, sizeof word);
  return _mm256_set1_epi32(word);
}

inline __m256i shifted_left(__m256i v, int count) {  // count is a constant after unrolling; negative: to the right
  return count > 0 ? _mm256_slli_epi16(v, count) : count < 0 ? _mm256_srli_epi16(v, -count) : v;
}

template <WeightType kType>
struct Unpack : PackedFormat<kType> {
  using Format = PackedFormat<kType>;

  // Vector j of the part; signed for Q8_0, else with the offset on.
  static inline __attribute__((always_inline)) __m256i code(const std::byte* part, int j, int half) {
    if constexpr (kType == WeightType::q8_0) return load_vector(part + 64 * j + 32 * half);
    const __m256i both = load_vector(part + 64 * (j % 4) + 32 * half), low = _mm256_set1_epi8(15);
    const __m256i nibble = _mm256_and_si256(j < 4 ? both : _mm256_srli_epi16(both, 4), low);
    if constexpr (Format::kFifthBit) {
      const __m256i fifth = load_vector(part + 256 + 32 * half);
      return _mm256_or_si256(nibble, _mm256_and_si256(shifted_left(fifth, 4 - j), _mm256_set1_epi8(16)));
    }
    if constexpr (kType == WeightType::q6_k) {
      const __m256i high = load_vector(part + 256 + 64 * (j / 4) + 32 * half);
      return _mm256_or_si256(nibble, _mm256_and_si256(shifted_left(high, 4 - 2 * (j % 4)), _mm256_set1_epi8(48)));
    }
    return nibble;
  }

  // The scale of sub-block `sub` of the block.
  static inline __attribute__((always_inline)) __m256 dw(const std::byte* block, int sub, int half) {
    const __m256 d = load_halves(block + 16 * half);
    if constexpr (!Format::kSuperBlocks) return d;
    if constexpr (kType == WeightType::q6_k) {
      const __m128i scales = load_bytes(block + 32 + 16 * sub + 8 * half);
      return _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(scales)));
    }
    const __m128i sc = _mm_and_si128(load_bytes(block + 64 + 16 * sub + 8 * half), _mm_set1_epi8(63));
    return _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(sc)));
  }

  // The minimum of sub-block `sub`, for types that have one.
  static inline __attribute__((always_inline)) __m256 mw(const std::byte* block, int sub, int half) {
    if constexpr (!Format::kSuperBlocks) return load_halves(block + 32 + 16 * half);
    const __m128i packed = load_bytes(block + 64 + 16 * sub + 8 * half);
    const __m128i lows = load_bytes(block + 192 + 16 * (sub / 2) + 8 * half);
    const __m128i high = _mm_and_si128(_mm_srli_epi16(packed, 2), _mm_set1_epi8(48));
    const __m128i low = _mm_and_si128(_mm_srl_epi16(lows, _mm_cvtsi32_si128(4 * (sub % 2))), _mm_set1_epi8(15));
    const __m256 m = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_or_si128(high, low)));
    return _mm256_xor_ps(_mm256_mul_ps(load_halves(block + 32 + 16 * half), m), _mm256_set1_ps(-0.0f));
  }
};

// -kOffset * (sum of a sub-block's activation codes): where its integer dot product starts. `sums` are the two sums of
// 16 codes of the part, which has kSubBlocks sub-blocks.
template <int kOffset, int kSubBlocks>
inline __attribute__((always_inline)) __m256i start(const std::int16_t* sums, int sub) {
  if constexpr (kOffset == 0) return _mm256_setzero_si256();
  constexpr int kWord = -kOffset & 0xffff;
  const int both = kSubBlocks == 1 ? kWord | kWord << 16 : sub == 0 ? kWord : kWord << 16;
  return _mm256_madd_epi16(_mm256_set1_epi32(both), broadcast_word(sums));
}

}  // namespace
}  // namespace couplet::kernels::avx2
