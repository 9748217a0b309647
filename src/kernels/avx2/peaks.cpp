// The level's peaks: vpmaddubsw + vpmaddwd + vpaddd for codes, vfmadd for floats, 32-byte loads.

#include <immintrin.h>

#include "kernels/peaks.h"

namespace couplet::kernels::avx2 {
namespace {

// The sums must stay in registers, so the loops over them are unrolled.
constexpr int kChains = 10;  // of the 16 registers; two fused multiply-adds a cycle of latency 4 need 8

std::uint64_t first_lane(__m256i v) {
  std::uint64_t lanes[4];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), v);
  return lanes[0];
}

std::uint64_t int8_dots(std::uint64_t rounds, std::uint64_t* sink) {
  __m256i sums[kChains], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5);
  const __m256i ones = _mm256_set1_epi16(1);
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (__m256i& sum : sums) {
      asm volatile("" : "+x"(a), "+x"(b));  // else the products would be computed once
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
    }
  }
  for (const __m256i& sum : sums) *sink += first_lane(sum);
  return rounds * kChains * 32 * 2;
}

std::uint64_t float_fmas(std::uint64_t rounds, std::uint64_t* sink) {
  __m256 sums[kChains], a = _mm256_set1_ps(1.0001F), b = _mm256_set1_ps(0.5F);
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    asm volatile("" : "+x"(a), "+x"(b));
#pragma GCC unroll 16
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, b, a);
  }
  for (const __m256& sum : sums) *sink += first_lane(_mm256_castps_si256(sum));
  return rounds * kChains * 8 * 2;
}

void read(const std::byte* bytes, std::size_t count, std::uint64_t* sink) {
  __m256i sums[8];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (std::size_t i = 0; i < count; i += 256) {
    const auto* lines = reinterpret_cast<const __m256i*>(bytes + i);
#pragma GCC unroll 16
    for (int j = 0; j < 8; ++j) sums[j] = _mm256_add_epi64(sums[j], _mm256_load_si256(lines + j));
  }
  for (const __m256i& sum : sums) *sink += first_lane(sum);
}

}  // namespace

extern const PeakLoops kPeakLoops;
const PeakLoops kPeakLoops = {int8_dots, float_fmas, read};

}  // namespace couplet::kernels::avx2
