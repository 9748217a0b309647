#pragma once
// f32x16 and its integer companions as two 256-bit registers each: the primitives that kernels/f32x16.h builds on. Each is
// one exact operation a lane.

#include <immintrin.h>

#include <cstdint>

#if !defined(COUPLET_LEVEL)
#define COUPLET_LEVEL avx2
#else  // avx2_vnni/, which has the same registers and vpdpwssd
#define COUPLET_VNNI
#endif
#define COUPLET_INLINE inline __attribute__((always_inline))

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

constexpr int kAccumulators = 4;  // f32x16 that an inner loop of a few queries keeps: 8 of 16 registers; more spill

// Of integer attention. 3 queries x 1 page is all that 16 registers hold; without room for products 6 (by half faster).
#if defined(COUPLET_VNNI)
constexpr int kIntegerTileQueries = 6;
#else
constexpr int kIntegerTileQueries = 3;
#endif

struct f32x16 {
  __m256 low, high;
};
struct mask16 {
  __m256 low, high;  // all ones or all zeros a lane
};

struct i32x16 {
  __m256i low, high;
};
struct i16x32 {  // 16 pairs
  __m256i low, high;
};

COUPLET_INLINE f32x16 broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
COUPLET_INLINE f32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
COUPLET_INLINE f32x16 load(const std::uint16_t* halves) {
  const __m128i* p = reinterpret_cast<const __m128i*>(halves);
  return {_mm256_cvtph_ps(_mm_loadu_si128(p)), _mm256_cvtph_ps(_mm_loadu_si128(p + 1))};
}
COUPLET_INLINE void store(float* p, f32x16 x) {
  _mm256_storeu_ps(p, x.low);
  _mm256_storeu_ps(p + 8, x.high);
}
COUPLET_INLINE void store(std::uint16_t* halves, f32x16 x) {
  __m128i* p = reinterpret_cast<__m128i*>(halves);
  _mm_storeu_si128(p, _mm256_cvtps_ph(x.low, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(p + 1, _mm256_cvtps_ph(x.high, _MM_FROUND_TO_NEAREST_INT));
}

// Lanes begin <= i < end.
COUPLET_INLINE mask16 lanes_between(int begin, int end) {
  const __m256i low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), high = _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15);
  const __m256i first = _mm256_set1_epi32(begin), last = _mm256_set1_epi32(end);
  return {_mm256_castsi256_ps(_mm256_andnot_si256(_mm256_cmpgt_epi32(first, low), _mm256_cmpgt_epi32(last, low))),
          _mm256_castsi256_ps(_mm256_andnot_si256(_mm256_cmpgt_epi32(first, high), _mm256_cmpgt_epi32(last, high)))};
}
// The first n lanes; the others are +0, or stay as they are in memory.
COUPLET_INLINE f32x16 load_first(const float* p, int n) {
  const mask16 m = lanes_between(0, n);
  return {_mm256_maskload_ps(p, _mm256_castps_si256(m.low)), _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.high))};
}
COUPLET_INLINE void store_first(float* p, int n, f32x16 x) {
  const mask16 m = lanes_between(0, n);
  _mm256_maskstore_ps(p, _mm256_castps_si256(m.low), x.low);
  _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.high), x.high);
}

COUPLET_INLINE f32x16 operator+(f32x16 a, f32x16 b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
COUPLET_INLINE f32x16 operator-(f32x16 a, f32x16 b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
COUPLET_INLINE f32x16 operator*(f32x16 a, f32x16 b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
COUPLET_INLINE f32x16 operator/(f32x16 a, f32x16 b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
COUPLET_INLINE f32x16 operator-(f32x16 a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_xor_ps(a.low, sign), _mm256_xor_ps(a.high, sign)};
}
COUPLET_INLINE f32x16 magnitude(f32x16 a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
}
COUPLET_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
COUPLET_INLINE f32x16 fnma(f32x16 a, f32x16 b, f32x16 c) {
  return {_mm256_fnmadd_ps(a.low, b.low, c.low), _mm256_fnmadd_ps(a.high, b.high, c.high)};
}
COUPLET_INLINE f32x16 max(f32x16 a, f32x16 b) {  // a > b ? a : b
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
COUPLET_INLINE f32x16 min(f32x16 a, f32x16 b) {  // a < b ? a : b
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}

COUPLET_INLINE mask16 less(f32x16 a, f32x16 b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ)};
}
COUPLET_INLINE mask16 equal(f32x16 a, f32x16 b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_EQ_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_EQ_OQ)};
}
COUPLET_INLINE f32x16 select(mask16 m, f32x16 yes, f32x16 no) {
  return {_mm256_blendv_ps(no.low, yes.low, m.low), _mm256_blendv_ps(no.high, yes.high, m.high)};
}
COUPLET_INLINE unsigned bits_of(mask16 m) {
  return static_cast<unsigned>(_mm256_movemask_ps(m.low)) | static_cast<unsigned>(_mm256_movemask_ps(m.high)) << 8;
}

// Adds to the exponent of `a` the integer in the low bits of `shifted`.
COUPLET_INLINE __m256 add_exponent(__m256 a, __m256 shifted) {
  const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), exponent));
}
COUPLET_INLINE f32x16 add_exponent(f32x16 a, f32x16 shifted) {
  return {add_exponent(a.low, shifted.low), add_exponent(a.high, shifted.high)};
}

COUPLET_INLINE i32x16 no_sum() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
COUPLET_INLINE i16x32 load_pairs(const std::int16_t* p) {
  const __m256i* halves = reinterpret_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)};
}
COUPLET_INLINE i16x32 load_pairs(const std::int8_t* p) {
  const __m128i* halves = reinterpret_cast<const __m128i*>(p);
  return {_mm256_cvtepi8_epi16(_mm_loadu_si128(halves)), _mm256_cvtepi8_epi16(_mm_loadu_si128(halves + 1))};
}
COUPLET_INLINE i16x32 broadcast_pair(const std::int16_t* p) {
  int pair;
  __builtin_memcpy(&pair, p, sizeof pair);
  return {_mm256_set1_epi32(pair), _mm256_set1_epi32(pair)};
}
// sum + a[0] * b[0] + a[1] * b[1], a pair a lane
COUPLET_INLINE i32x16 dot_pairs(i32x16 sum, i16x32 a, i16x32 b) {
#if defined(COUPLET_VNNI)
  return {vpdpwssd(sum.low, a.low, b.low), vpdpwssd(sum.high, a.high, b.high)};
#else
  return {_mm256_add_epi32(sum.low, _mm256_madd_epi16(a.low, b.low)),
          _mm256_add_epi32(sum.high, _mm256_madd_epi16(a.high, b.high))};
#endif
}
COUPLET_INLINE f32x16 to_float(i32x16 a) { return {_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high)}; }
COUPLET_INLINE i32x16 round(f32x16 a) { return {_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high)}; }  // ties to even
COUPLET_INLINE __m256i narrow(i32x16 a) {  // to 16 bits, in order
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(a.low, a.high), 0xd8);
}
COUPLET_INLINE void store(std::int16_t* p, i32x16 a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(a)); }
COUPLET_INLINE void store(std::int8_t* p, i32x16 a) {
  const __m256i words = narrow(a);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}
COUPLET_INLINE i32x16 magnitude_bits(f32x16 a) {
  const f32x16 m = magnitude(a);
  return {_mm256_castps_si256(m.low), _mm256_castps_si256(m.high)};
}
COUPLET_INLINE i32x16 greater(i32x16 a, i32x16 b) {
  return {_mm256_max_epi32(a.low, b.low), _mm256_max_epi32(a.high, b.high)};
}
COUPLET_INLINE int greatest_lane(i32x16 a) {
  __m256i m = _mm256_max_epi32(a.low, a.high);
  m = _mm256_max_epi32(m, _mm256_permute2x128_si256(m, m, 1));
  m = _mm256_max_epi32(m, _mm256_shuffle_epi32(m, 0x4e));
  m = _mm256_max_epi32(m, _mm256_shuffle_epi32(m, 0xb1));
  return _mm256_cvtsi256_si32(m);
}

// Rule 2's tree: lanes 8, 4, 2, 1 apart.
COUPLET_INLINE float join_sum(f32x16 x) {
  const __m256 by8 = _mm256_add_ps(x.low, x.high);
  const __m128 by4 = _mm_add_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_add_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_add_ss(by2, _mm_movehdup_ps(by2)));
}
COUPLET_INLINE float join_max(f32x16 x) {
  const __m256 by8 = _mm256_max_ps(x.low, x.high);
  const __m128 by4 = _mm_max_ps(_mm256_castps256_ps128(by8), _mm256_extractf128_ps(by8, 1));
  const __m128 by2 = _mm_max_ps(by4, _mm_movehl_ps(by4, by4));
  return _mm_cvtss_f32(_mm_max_ss(by2, _mm_movehdup_ps(by2)));
}

COUPLET_INLINE float first_lane(f32x16 a) { return _mm256_cvtss_f32(a.low); }
COUPLET_INLINE float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

}  // namespace
}  // namespace couplet::kernels::COUPLET_LEVEL
