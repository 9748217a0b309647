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

// 16 bytes in each half.
inline __m256i load_twice(const void* p) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(p)));
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

  // Vector j of part `index` of a block; signed where kSigned, else with the offset on.
  static inline __attribute__((always_inline)) __m256i code(const std::byte* block, int index, int j, int half) {
    const std::byte* part = block + Format::kHeadBytes + index * Format::kPartBytes;
    if constexpr (kType == WeightType::q8_0) return load_vector(part + 64 * j + 32 * half);
    if constexpr (Format::kTwoBits) {
      const __m256i four = load_vector(part + 64 * (j / 4) + 32 * half);
      const __m256i code = _mm256_and_si256(shifted_left(four, -2 * (j % 4)), _mm256_set1_epi8(3));
      if constexpr (kType == WeightType::q2_k) return code;
      const __m256i third = load_vector(part + 128 + 32 * half);
      return _mm256_or_si256(code, _mm256_and_si256(shifted_left(third, 2 - j), _mm256_set1_epi8(4)));
    }
    const __m256i both = load_vector(part + 64 * (j % 4) + 32 * half), low = _mm256_set1_epi8(15);
    const __m256i nibble = _mm256_and_si256(j < 4 ? both : _mm256_srli_epi16(both, 4), low);
    if constexpr (Format::kLookedUp) {
      const void* list = kType == WeightType::coded ? static_cast<const void*>(block + Format::kCodesAt)
                         : kType == WeightType::mxfp4 ? kMxfp4Codes
                                                      : kIq4Codes;
      return _mm256_shuffle_epi8(load_twice(list), nibble);
    }
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

  // The block's scale.
  static inline __attribute__((always_inline)) __m256 d(const std::byte* block, int half) {
    if constexpr (kType == WeightType::coded) return _mm256_loadu_ps(reinterpret_cast<const float*>(block) + 8 * half);
    if constexpr (kType == WeightType::mxfp4) {  // 2^(e - 128): for e below 2 a bit of the fraction
      const __m256i e = _mm256_cvtepu8_epi32(load_bytes(block + 8 * half)), two = _mm256_set1_epi32(2);
      const __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(1 << 21), _mm256_min_epi32(e, two));
      const __m256i rest = _mm256_slli_epi32(_mm256_sub_epi32(_mm256_max_epi32(e, two), two), 23);
      return _mm256_castsi256_ps(_mm256_add_epi32(small, rest));
    }
    return load_halves(block + 16 * half);
  }

  // The scale of sub-block `sub` of the block.
  static inline __attribute__((always_inline)) __m256 dw(const std::byte* block, int sub, int half) {
    if constexpr (!Format::kSuperBlocks) return d(block, half);
    const __m128i scales = load_bytes(block + Format::kScalesAt + 16 * sub + 8 * half);
    if constexpr (Format::kSignedScales) {
      return _mm256_mul_ps(d(block, half), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(scales)));
    }
    const __m128i sc = _mm_and_si128(scales, _mm_set1_epi8(kType == WeightType::q2_k ? 15 : 63));
    return _mm256_mul_ps(d(block, half), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(sc)));
  }

  // The minimum of sub-block `sub`, for types that have one.
  static inline __attribute__((always_inline)) __m256 mw(const std::byte* block, int sub, int half) {
    if constexpr (!Format::kSuperBlocks) return load_halves(block + 32 + 16 * half);
    const __m128i packed = load_bytes(block + Format::kScalesAt + 16 * sub + 8 * half);
    __m128i bytes;
    if constexpr (kType == WeightType::q2_k) {
      bytes = _mm_and_si128(_mm_srli_epi16(packed, 4), _mm_set1_epi8(15));
    } else {
      const __m128i lows = load_bytes(block + 192 + 16 * (sub / 2) + 8 * half);
      const __m128i high = _mm_and_si128(_mm_srli_epi16(packed, 2), _mm_set1_epi8(48));
      const __m128i low = _mm_and_si128(_mm_srl_epi16(lows, _mm_cvtsi32_si128(4 * (sub % 2))), _mm_set1_epi8(15));
      bytes = _mm_or_si128(high, low);
    }
    const __m256 m = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
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
