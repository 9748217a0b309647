#pragma once
// f32x16 and its integer companions as one 512-bit register each: the primitives that kernels/f32x16.h builds on. Each is
// one exact operation a lane.

#include <immintrin.h>

#include <cstdint>

#define COUPLET_LEVEL avx512
#define COUPLET_INLINE inline __attribute__((always_inline))

namespace couplet::kernels::avx512 {
namespace {

constexpr int kAccumulators = 24;  // f32x16 that an inner loop keeps, of 32 registers
constexpr int kIntegerTileQueries = 6;  // of integer attention: 6 queries x 2 pages of sums and scores, x 4 of values

struct f32x16 {
  __m512 v;
};
struct mask16 {
  __mmask16 bits;
};

struct i32x16 {
  __m512i v;
};
struct i16x32 {  // 16 pairs
  __m512i v;
};

COUPLET_INLINE f32x16 broadcast(float x) { return {_mm512_set1_ps(x)}; }
COUPLET_INLINE f32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
COUPLET_INLINE f32x16 load(const std::uint16_t* halves) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves)))};
}
COUPLET_INLINE void store(float* p, f32x16 x) { _mm512_storeu_ps(p, x.v); }
COUPLET_INLINE void store(std::uint16_t* halves, f32x16 x) {
  const __m256i rounded = _mm512_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(halves), rounded);
}

// Lanes begin <= i < end.
COUPLET_INLINE mask16 lanes_between(int begin, int end) {
  const unsigned below_begin = begin <= 0 ? 0u : begin >= 16 ? 0xffffu : (1u << begin) - 1;
  const unsigned below_end = end <= 0 ? 0u : end >= 16 ? 0xffffu : (1u << end) - 1;
  return {static_cast<__mmask16>(below_end & ~below_begin)};
}
// The first n lanes; the others are +0, or stay as they are in memory.
COUPLET_INLINE f32x16 load_first(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(lanes_between(0, n).bits, p)};
}
COUPLET_INLINE void store_first(float* p, int n, f32x16 x) {
  _mm512_mask_storeu_ps(p, lanes_between(0, n).bits, x.v);
}

COUPLET_INLINE f32x16 operator+(f32x16 a, f32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
COUPLET_INLINE f32x16 operator-(f32x16 a, f32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
COUPLET_INLINE f32x16 operator*(f32x16 a, f32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
COUPLET_INLINE f32x16 operator/(f32x16 a, f32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
COUPLET_INLINE f32x16 operator-(f32x16 a) { return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))}; }
COUPLET_INLINE f32x16 magnitude(f32x16 a) { return {_mm512_andnot_ps(_mm512_set1_ps(-0.0f), a.v)}; }
COUPLET_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
COUPLET_INLINE f32x16 fnma(f32x16 a, f32x16 b, f32x16 c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
COUPLET_INLINE f32x16 max(f32x16 a, f32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }  // a > b ? a : b
COUPLET_INLINE f32x16 min(f32x16 a, f32x16 b) { return {_mm512_min_ps(a.v, b.v)}; }  // a < b ? a : b

COUPLET_INLINE mask16 less(f32x16 a, f32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
COUPLET_INLINE mask16 equal(f32x16 a, f32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
COUPLET_INLINE f32x16 select(mask16 m, f32x16 yes, f32x16 no) {
  return {_mm512_mask_blend_ps(m.bits, no.v, yes.v)};
}
COUPLET_INLINE unsigned bits_of(mask16 m) { return m.bits; }

// Adds to the exponent of `a` the integer in the low bits of `shifted`.
COUPLET_INLINE f32x16 add_exponent(f32x16 a, f32x16 shifted) {
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted.v), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a.v), exponent))};
}

COUPLET_INLINE i32x16 no_sum() { return {_mm512_setzero_si512()}; }
COUPLET_INLINE i16x32 load_pairs(const std::int16_t* p) { return {_mm512_loadu_si512(p)}; }
COUPLET_INLINE i16x32 load_pairs(const std::int8_t* p) {
  return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
COUPLET_INLINE i16x32 broadcast_pair(const std::int16_t* p) {
  int pair;
  __builtin_memcpy(&pair, p, sizeof pair);
  return {_mm512_set1_epi32(pair)};
}
// sum + a[0] * b[0] + a[1] * b[1], a pair a lane
COUPLET_INLINE i32x16 dot_pairs(i32x16 sum, i16x32 a, i16x32 b) {
  // GCC 12 copies the sum before and after the intrinsic.
  asm("vpdpwssd %2, %1, %0" : "+v"(sum.v) : "v"(a.v), "v"(b.v));
  return sum;
}
COUPLET_INLINE f32x16 to_float(i32x16 a) { return {_mm512_cvtepi32_ps(a.v)}; }
COUPLET_INLINE i32x16 round(f32x16 a) { return {_mm512_cvtps_epi32(a.v)}; }  // ties to even
COUPLET_INLINE void store(std::int16_t* p, i32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a.v));
}
COUPLET_INLINE void store(std::int8_t* p, i32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}
COUPLET_INLINE i32x16 magnitude_bits(f32x16 a) { return {_mm512_castps_si512(magnitude(a).v)}; }
COUPLET_INLINE i32x16 greater(i32x16 a, i32x16 b) { return {_mm512_max_epi32(a.v, b.v)}; }
COUPLET_INLINE int greatest_lane(i32x16 a) { return _mm512_reduce_max_epi32(a.v); }

// Rule 2's tree: lanes 8, 4, 2, 1 apart.
COUPLET_INLINE float join_sum(f32x16 x) {
  const __m256 by8 = _mm256_add_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}
COUPLET_INLINE float join_max(f32x16 x) {
  const __m256 by8 = _mm256_max_ps(_mm512_castps512_ps256(x.v), _mm512_extractf32x8_ps(x.v, 1));
  const __m128 by4 = _mm_max_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_max_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_max_ss(by2, _mm_movehdup_ps(by2)));
}

COUPLET_INLINE float first_lane(f32x16 a) { return _mm512_cvtss_f32(a.v); }
COUPLET_INLINE float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

}  // namespace
}  // namespace couplet::kernels::avx512
