#pragma once
// What sets this level apart from avx2: two instructions. AVX-VNNI and AVX-512 VNNI encode them in two ways; the tests
// compile this level a second time in the other encoding, for machines with AVX-512 alone (docs/adr/0007). COUPLET_LEVEL
// is the namespace of either.

#include <immintrin.h>

#if defined(__AVXVNNI__)
#define COUPLET_LEVEL avx2_vnni
#define COUPLET_ENCODED "%{vex%} "
#else
#define COUPLET_LEVEL avx2_vnni_evex
#define COUPLET_ENCODED "%{evex%} "
#endif

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

// In assembler, because GCC 12 copies the sum before and after its intrinsics.

// sum + a[0] * b[0] + ... + a[3] * b[3], four bytes a lane, those of `a` unsigned.
inline __attribute__((always_inline)) __m256i vpdpbusd(__m256i sum, __m256i a, __m256i b) {
  asm(COUPLET_ENCODED "vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
  return sum;
}

// sum + a[0] * b[0] + a[1] * b[1], two signed words a lane.
inline __attribute__((always_inline)) __m256i vpdpwssd(__m256i sum, __m256i a, __m256i b) {
  asm(COUPLET_ENCODED "vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
  return sum;
}

}  // namespace
}  // namespace couplet::kernels::COUPLET_LEVEL
