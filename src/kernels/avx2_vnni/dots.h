#pragma once
// The integer dot products of level avx2_vnni: vpdpbusd adds fours of products in 32 bits, exactly. For
// avx2/products.inl.

#include "kernels/avx2/unpack.h"
#include "kernels/avx2_vnni/vnni.h"

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

using namespace avx2;  // NOLINT: unpack.h

template <WeightType kType>
struct Dots : Unpack<kType> {
  using Format = PackedFormat<kType>;

  // With one plane and with two: 12 sums, which with 2 codes and an activation fit 16 registers. With 16 values a
  // scale the sums are converted twice as often and would spill.
  static constexpr int kTileRows[2] = {Format::kSubBlocks == 2 ? 4 : 6, Format::kSubBlocks == 2 ? 2 : 3};
  // Signed codes become unsigned here.
  static constexpr int kOffset = Format::kSigned ? 128 : Format::kOffset;

  static inline __attribute__((always_inline)) __m256i code(const std::byte* block, int part, int j, int half) {
    const __m256i code = Unpack<kType>::code(block, part, j, half);
    return Format::kSigned ? _mm256_xor_si256(code, _mm256_set1_epi8(-128)) : code;
  }

  // dots += codes of a sub-block's vectors first, first + 1, ... times the activations from k on.
  template <class Part, class Rows, int kRows, int kPlanes>
  static inline __attribute__((always_inline)) void add(const Part& part, int first, const Rows& rows, std::ptrdiff_t k,
                                                        __m256i (&dots)[kRows][kPlanes][2]) {
#pragma GCC unroll 8
    for (int j = first; j < first + Format::kSubBlockVectors; ++j) {
      const __m256i codes[2] = {part.code(j, 0), part.code(j, 1)};
#pragma GCC unroll 6
      for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
        for (int plane = 0; plane < kPlanes; ++plane) {
          const __m256i x = broadcast_word(rows.codes(row, plane, k + 4 * j));
#pragma GCC unroll 2
          for (int half = 0; half < 2; ++half) {
            dots[row][plane][half] = vpdpbusd(dots[row][plane][half], codes[half], x);
          }
        }
      }
    }
  }
};

}  // namespace
}  // namespace couplet::kernels::COUPLET_LEVEL
