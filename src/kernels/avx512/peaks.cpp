// The level's peaks: vpdpbusd for codes, vfmadd for floats, 64-byte loads.

#include <immintrin.h>

#include "kernels/peaks.h"

namespace couplet::kernels::avx512 {
namespace {

// The sums must stay in registers, so the loops over them are unrolled.
constexpr int kChains = 16;

std::uint64_t first_lane(__m512i v) {
  std::uint64_t lanes[8];
  _mm512_storeu_si512(lanes, v);
  return lanes[0];
}

std::uint64_t int8_dots(std::uint64_t rounds, std::uint64_t* sink) {
  __m512i sums[kChains], a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(5);
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    asm volatile("" : "+v"(a), "+v"(b));  // unknown in each round: nothing can be computed ahead
#pragma GCC unroll 16
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, a, b);
  }
  for (const __m512i& sum : sums) *sink += first_lane(sum);
  return rounds * kChains * 64 * 2;
}

std::uint64_t float_fmas(std::uint64_t rounds, std::uint64_t* sink) {
  __m512 sums[kChains], a = _mm512_set1_ps(1.0001F), b = _mm512_set1_ps(0.5F);
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    asm volatile("" : "+v"(a), "+v"(b));
#pragma GCC unroll 16
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, b, a);
  }
  for (const __m512& sum : sums) *sink += first_lane(_mm512_castps_si512(sum));
  return rounds * kChains * 16 * 2;
}

void read(const std::byte* bytes, std::size_t count, std::uint64_t* sink) {
  __m512i sums[4];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (std::size_t i = 0; i < count; i += 256) {
#pragma GCC unroll 16
    for (int j = 0; j < 4; ++j) sums[j] = _mm512_add_epi64(sums[j], _mm512_load_si512(bytes + i + 64 * j));
  }
  for (const __m512i& sum : sums) *sink += first_lane(sum);
}

}  // namespace

extern const PeakLoops kPeakLoops;
const PeakLoops kPeakLoops = {int8_dots, float_fmas, read};

}  // namespace couplet::kernels::avx512
