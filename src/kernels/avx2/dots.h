#pragma once
// The integer dot products of level avx2: vpmaddubsw adds pairs of products in 16 bits, as long as they can't overflow,
// then vpmaddwd adds fours in 32. For avx2/products.inl.

#include "kernels/avx2/unpack.h"

#define COUPLET_LEVEL avx2

namespace couplet::kernels::avx2 {
namespace {

// Keeps GCC from computing all products first and spilling them: a sum is finished before the next one starts.
inline __attribute__((always_inline)) void in_order(__m256i& sum) { asm volatile("" : "+x"(sum)); }

template <WeightType kType>
struct Dots : Unpack<kType> {
  using Format = PackedFormat<kType>;

  // With one plane and with two: 8 sums in 16 bits, which with 2 codes and an activation fit 16 registers.
  static constexpr int kTileRows[2] = {4, 2};
  // So many vectors' 16-bit products of code pairs can be added without overflow: 8 * 2 * 15 * 127, 4 * 2 * 31 * 127,
  // 2 * 2 * 63 * 127 and 2 * 128 * 127 are below 32768.
  static constexpr int kGroup = Format::kGreatestCode > 63                                    ? 1
                                : Format::kGreatestCode > 31                                  ? 2
                                : Format::kGreatestCode > 15 || Format::kSubBlockVectors == 4 ? 4
                                                                                              : 8;

  static inline __attribute__((always_inline)) __m256i pairs(__m256i code, __m256i x) {
    if constexpr (Format::kSigned) return _mm256_maddubs_epi16(_mm256_abs_epi8(code), _mm256_sign_epi8(x, code));
    return _mm256_maddubs_epi16(code, x);
  }

  // dots += codes of a sub-block's vectors first, first + 1, ... times the activations from k on.
  template <class Part, class Rows, int kRows, int kPlanes>
  static inline __attribute__((always_inline)) void add(const Part& part, int first, const Rows& rows, std::ptrdiff_t k,
                                                        __m256i (&dots)[kRows][kPlanes][2]) {
#pragma GCC unroll 8
    for (int j = first; j < first + Format::kSubBlockVectors; j += kGroup) add_group(part, j, rows, k, dots);
  }

 private:
  template <class Part, class Rows, int kRows, int kPlanes>
  static inline __attribute__((always_inline)) void add_group(const Part& part, int first, const Rows& rows,
                                                              std::ptrdiff_t k, __m256i (&dots)[kRows][kPlanes][2]) {
    __m256i sums[kRows][kPlanes][2];
#pragma GCC unroll 8
    for (int i = 0; i < kGroup; ++i) {
      const int j = first + i;
      const __m256i codes[2] = {part.code(j, 0), part.code(j, 1)};
#pragma GCC unroll 4
      for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
        for (int plane = 0; plane < kPlanes; ++plane) {
          const __m256i x = broadcast_word(rows.codes(row, plane, k + 4 * j));
#pragma GCC unroll 2
          for (int half = 0; half < 2; ++half) {
            __m256i& sum = sums[row][plane][half];
            const __m256i products = pairs(codes[half], x);
            sum = i == 0 ? products : _mm256_add_epi16(sum, products);
            in_order(sum);
          }
        }
      }
    }
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
      for (int plane = 0; plane < kPlanes; ++plane) {
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          __m256i& dot = dots[row][plane][half];
          dot = _mm256_add_epi32(dot, _mm256_madd_epi16(sums[row][plane][half], ones));
        }
      }
    }
  }
};

}  // namespace
}  // namespace couplet::kernels::avx2
