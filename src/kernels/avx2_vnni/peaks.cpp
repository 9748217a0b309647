// The level's own peak: vpdpbusd for codes.

#include <cstdint>

#include "kernels/avx2_vnni/vnni.h"

namespace couplet::kernels::COUPLET_LEVEL {

std::uint64_t int8_dots(std::uint64_t rounds, std::uint64_t* sink) {
  constexpr int kChains = 12;  // of the 16 registers; two of latency 5 a cycle need 10
  __m256i sums[kChains], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5);
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    asm volatile("" : "+x"(a), "+x"(b));  // unknown in each round: nothing can be computed ahead
#pragma GCC unroll 16
    for (__m256i& sum : sums) sum = vpdpbusd(sum, a, b);
  }
  for (const __m256i& sum : sums) *sink += static_cast<std::uint64_t>(_mm256_extract_epi64(sum, 0));
  return rounds * kChains * 32 * 2;
}

}  // namespace couplet::kernels::COUPLET_LEVEL
