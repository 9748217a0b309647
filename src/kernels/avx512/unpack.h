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

// 16 bytes in each quarter.
inline __m512i load_quarters(const void* p) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(static_cast<const __m128i*>(p)));
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

  // Signed codes become unsigned here.
  static constexpr int kOffset = Format::kSigned ? 128 : Format::kOffset;

  // Of part `index` of a block.
  static inline __attribute__((always_inline)) void codes(const std::byte* block, int index, __m512i out[8]) {
    const std::byte* part = block + Format::kHeadBytes + index * Format::kPartBytes;
    if constexpr (kType == WeightType::q8_0) {
      const __m512i sign = _mm512_set1_epi8(-128);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) out[j] = _mm512_xor_si512(load_vector(part + 64 * j), sign);
      return;
    }
    constexpr int kSelectOr = 0xea;  // (a & b) | c
    if constexpr (Format::kTwoBits) {
      const __m512i two = _mm512_set1_epi8(3), third = _mm512_set1_epi8(4);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        out[j] = _mm512_and_si512(shifted_left(load_vector(part + 64 * (j / 4)), -2 * (j % 4)), two);
        if constexpr (kType == WeightType::q3_k) {
          out[j] = _mm512_ternarylogic_epi32(shifted_left(load_vector(part + 128), 2 - j), third, out[j], kSelectOr);
        }
      }
      return;
    }
    const __m512i low = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m512i both = load_vector(part + 64 * j);
      out[j] = _mm512_and_si512(both, low);
      out[j + 4] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
    }
    if constexpr (Format::kLookedUp) {
      const void* list = kType == WeightType::coded ? static_cast<const void*>(block + Format::kCodesAt)
                         : kType == WeightType::mxfp4 ? kMxfp4Codes
                                                      : kIq4Codes;
      const __m512i codes = _mm512_xor_si512(load_quarters(list), _mm512_set1_epi8(-128));
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) out[j] = _mm512_shuffle_epi8(codes, out[j]);
    }
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

  // The block's scale.
  static inline __attribute__((always_inline)) __m512 d(const std::byte* block) {
    if constexpr (kType == WeightType::coded) return _mm512_loadu_ps(block);
    if constexpr (kType == WeightType::mxfp4) {  // 2^(e - 128): for e below 2 a bit of the fraction
      const __m512i e = load_bytes(block), two = _mm512_set1_epi32(2);
      const __m512i small = _mm512_sllv_epi32(_mm512_set1_epi32(1 << 21), _mm512_min_epi32(e, two));
      const __m512i rest = _mm512_slli_epi32(_mm512_sub_epi32(_mm512_max_epi32(e, two), two), 23);
      return _mm512_castsi512_ps(_mm512_add_epi32(small, rest));
    }
    return load_halves(block);
  }

  // The scale of sub-block `sub` of the block.
  static inline __attribute__((always_inline)) __m512 dw(const std::byte* block, int sub) {
    if constexpr (!Format::kSuperBlocks) return d(block);
    const std::byte* scales = block + Format::kScalesAt + 16 * sub;
    if constexpr (Format::kSignedScales) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(scales));
      return _mm512_mul_ps(d(block), _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)));
    }
    const __m512i sc = _mm512_and_si512(load_bytes(scales), _mm512_set1_epi32(kType == WeightType::q2_k ? 15 : 63));
    return _mm512_mul_ps(d(block), _mm512_cvtepi32_ps(sc));
  }

  // The minimum of sub-block `sub`, for types that have one.
  static inline __attribute__((always_inline)) __m512 mw(const std::byte* block, int sub) {
    if constexpr (!Format::kSuperBlocks) return load_halves(block + 32);
    const __m512i packed = load_bytes(block + Format::kScalesAt + 16 * sub);
    __m512i m;
    if constexpr (kType == WeightType::q2_k) {
      m = _mm512_srli_epi32(packed, 4);
    } else {
      const __m512i high = _mm512_and_si512(_mm512_srli_epi32(packed, 2), _mm512_set1_epi32(48));
      const __m512i lows = _mm512_srl_epi32(load_bytes(block + 192 + 16 * (sub / 2)), _mm_cvtsi32_si128(4 * (sub % 2)));
      m = _mm512_or_si512(high, _mm512_and_si512(lows, _mm512_set1_epi32(15)));
    }
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
