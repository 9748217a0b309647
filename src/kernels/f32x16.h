#pragma once
// The virtual 16-lane machine of rule 2 (docs/numerics.md): float kernels are written once against f32x16 and compiled a
// level. What stands here is built from the level's primitives alone, so that lanes, tree and exp agree everywhere.
// All of it has internal linkage: code compiled for one machine can't be picked by the linker for another.

#if defined(__AVX512F__) && !defined(COUPLET_LEVEL)
#include "kernels/avx512/f32x16_zmm.h"
#elif defined(__AVX2__)
#include "kernels/avx2/f32x16_ymm.h"
#endif

// Lane arrays live in registers only where the loops over them are unrolled.
#if defined(__clang__)
#define COUPLET_UNROLL _Pragma("unroll")
#else
#define COUPLET_UNROLL _Pragma("GCC unroll 16")
#endif

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

constexpr int kLanes = 16;

COUPLET_INLINE f32x16 zero() { return broadcast(0.0f); }

// Rule 1 for x <= 0 or NaN: +0 below -87, NaN passes; docs/numerics.md derives the constants.
COUPLET_INLINE f32x16 exp_of_negative(f32x16 x) {
  const mask16 vanishes = less(x, broadcast(-87.0f));
  const f32x16 rounder = broadcast(0x1.8p23f);
  const f32x16 shifted = fma(x, broadcast(0x1.715476p0f), rounder);  // its low bits are n = rne(x / ln 2)
  const f32x16 n = shifted - rounder;
  f32x16 r = fma(n, broadcast(-0x1.62e43p-1f), x);
  r = fma(n, broadcast(0x1.05c61p-29f), r);
  f32x16 p = fma(broadcast(0x1.6a41f6p-10f), r, broadcast(0x1.1239ep-7f));
  p = fma(p, r, broadcast(0x1.5558bcp-5f));
  p = fma(p, r, broadcast(0x1.555492p-3f));
  p = fma(p, r, broadcast(0x1.fffffcp-2f));
  p = fma(p, r, broadcast(1.0f));
  p = fma(p, r, broadcast(1.0f));
  return select(vanishes, zero(), add_exponent(p, shifted));
}

// Rule 1: the same up to 88, exp(88) above.
COUPLET_INLINE f32x16 exp(f32x16 x) { return exp_of_negative(min(broadcast(88.0f), x)); }

// cap * tanh(x / cap)
COUPLET_INLINE f32x16 soft_capped(f32x16 x, f32x16 cap) {
  const f32x16 y = x / cap, e = exp(-(y + y)), one = broadcast(1.0f);
  return ((one - e) / (one + e)) * cap;
}

}  // namespace
}  // namespace couplet::kernels::COUPLET_LEVEL
