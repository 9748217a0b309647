#pragma once
// One part (32 values) of a packed panel in registers: eight vectors of unsigned codes, 16 outputs by 4 values each,
// and the floats that scale them.

#include <immintrin.h>

#include "kernels/packed_format.h"

namespace couplet::kernels::avx512 {
namespace {

inline __m512i load_vector(const std::byte* p) { return _mm512_loadu_si512(p); }

inline __m512 load_halves(const std::byte* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

inline __m512i load_bytes(const std::byte* p) {  // 16 bytes, zero extended
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

// Four consecutive activation codes, or two sums, in every lane.
inline __m512i broadcast_word(const void* p) {
  int word;
  __builtin_memcpy(&word, p, sizeof word);
  return _mm512_set1_epi32(word);
}

inline __m512i shifted_left(__m512i v, int count) {  // count is a constant after unrolling; negative: to the right
  return count > 0   ? _mm512_slli_epi16(v, static_cast<unsigned>(count))
         : count < 0 ? _mm512_srli_epi16(v, static_cast<unsigned>(-count))
                     : v;
}

template <WeightType kType>
struct Unpack : PackedFormat<kType> {
  using Format = PackedFormat<kType>;

  // Q8_0's signed codes become unsigned here.
  static constexpr int kOffset = kType == WeightType::q8_0 ? 128 : Format::kOffset;

  static inline __attribute__((always_inline)) void codes(const std::byte* part, __m512i out[8]) {
    if constexpr (kType == WeightType::q8_0) {
      const __m512i sign = _mm512_set1_epi8(-128);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) out[j] = _mm512_xor_si512(load_vector(part + 64 * j), sign);
      return;
    }
    const __m512i low = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m512i both = load_vector(part + 64 * j);
      out[j] = _mm512_and_si512(both, low);
      out[j + 4] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
    }
    constexpr int kSelectOr = 0xea;  // (a & b) | c
    if constexpr (Format::kFifthBit) {
      const __m512i fifth = load_vector(part + 256), bit = _mm512_set1_epi8(16);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) out[j] = _mm512_ternarylogic_epi32(shifted_left(fifth, 4 - j), bit, out[j], kSelectOr);
    }
    if constexpr (kType == WeightType::q6_k) {
      const __m512i bits = _mm512_set1_epi8(48);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        const __m512i high = load_vector(part + 256 + 64 * (j / 4));
        out[j] = _mm512_ternarylogic_epi32(shifted_left(high, 4 - 2 * (j % 4)), bits, out[j], kSelectOr);
      }
    }
  }

  // The scale of sub-block `sub` of the block.
  static inline __attribute__((always_inline)) __m512 dw(const std::byte* block, int sub) {
    const __m512 d = load_halves(block);
    if constexpr (!Format::kSuperBlocks) return d;
    if constexpr (kType == WeightType::q6_k) {
      const auto* scales = reinterpret_cast<const __m128i*>(block + 32 + 16 * sub);
      return _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(scales))));
    }
    const __m512i sc = _mm512_and_si512(load_bytes(block + 64 + 16 * sub), _mm512_set1_epi32(63));
    return _mm512_mul_ps(d, _mm512_cvtepi32_ps(sc));
  }

  // The minimum of sub-block `sub`, for types that have one.
  static inline __attribute__((always_inline)) __m512 mw(const std::byte* block, int sub) {
    if constexpr (!Format::kSuperBlocks) return load_halves(block + 32);
    const __m512i high = _mm512_and_si512(_mm512_srli_epi32(load_bytes(block + 64 + 16 * sub), 2), _mm512_set1_epi32(48));
    const __m512i lows = _mm512_srl_epi32(load_bytes(block + 192 + 16 * (sub / 2)), _mm_cvtsi32_si128(4 * (sub % 2)));
    const __m512i m = _mm512_or_si512(high, _mm512_and_si512(lows, _mm512_set1_epi32(15)));
    const __m512 product = _mm512_mul_ps(load_halves(block + 32), _mm512_cvtepi32_ps(m));
    return _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(product), _mm512_set1_epi32(INT32_MIN)));
  }

  // -kOffset * (sum of a sub-block's activation codes): where its integer dot product starts. `sums` are the two sums
  // of 16 codes of the part.
  static inline __attribute__((always_inline)) __m512i start(const std::int16_t* sums, int sub) {
    if constexpr (kOffset == 0) return _mm512_setzero_si512();
    constexpr int kWord = -kOffset & 0xffff;
    const int both = Format::kSubBlocks == 1 ? kWord | kWord << 16 : sub == 0 ? kWord : kWord << 16;
    return _mm512_madd_epi16(_mm512_set1_epi32(both), broadcast_word(sums));
  }
};

}  // namespace
}  // namespace couplet::kernels::avx512
