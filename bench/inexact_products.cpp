// The avx512 level's product of many rows in another namespace, where a row has one scale: the chain's step
// acc = fma(f * dw, da, acc) becomes acc = fma(f, dw, acc), and the row's scale multiplies the result once.

#include <cmath>

#include "inexact.h"

#define avx512 inexact
#include "kernels/avx512/few_rows.h"
#include "kernels/avx512/product_kernels.h"
#include "kernels/avx512/unpack.h"

namespace couplet::kernels::inexact {
namespace {

struct UnscaledProduct {
  __m512 f, dw;
};
inline UnscaledProduct unscaled(__m512 f, __m512 dw) { return {f, dw}; }
inline __m512 chain_step(UnscaledProduct product, __m512, __m512 acc) { return _mm512_fmadd_ps(product.f, product.dw, acc); }
inline __m512 chain_step(__m512 a, __m512 b, __m512 acc) { return _mm512_fmadd_ps(a, b, acc); }

}  // namespace
}  // namespace couplet::kernels::inexact

#undef _mm512_mul_ps
#undef _mm512_fmadd_ps
#define _mm512_mul_ps(f, dw) unscaled(f, dw)
#define _mm512_fmadd_ps(a, b, acc) chain_step(a, b, acc)
#include "kernels/avx512/many_rows.cpp"
#undef _mm512_mul_ps
#undef _mm512_fmadd_ps
#undef avx512

namespace couplet::kernels::inexact {
namespace {

const KernelTable* exact = nullptr;

void quantize_rows(const float* x, int x_stride, const QuantizedRows& out, std::uint8_t* poisoned) {
  if (out.lo) return exact->quantize(x, x_stride, out, poisoned);  // the head
  const std::ptrdiff_t blocks = out.cols / kActivationBlock;
  for (std::ptrdiff_t row = 0; row < out.num_rows; ++row, x += x_stride) {
    __m512 greatest = _mm512_setzero_ps();
    for (int i = 0; i < out.cols; i += 16) greatest = _mm512_max_ps(greatest, _mm512_abs_ps(_mm512_loadu_ps(x + i)));
    const float d = _mm512_reduce_max_ps(greatest) / 127;
    const __m512 inverse = _mm512_set1_ps(d > 0 ? 1 / d : 0);
    std::int8_t* codes = out.hi + row * out.code_stride;
    for (std::ptrdiff_t block = 0; block < blocks; ++block) {
      int sums[2];
      for (int half = 0; half < 2; ++half) {
        const std::ptrdiff_t at = block * kActivationBlock + half * 16;
        const __m512i code = _mm512_cvtps_epi32(_mm512_loadu_ps(x + at) * inverse);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + at), _mm512_cvtepi32_epi8(code));
        sums[half] = _mm512_reduce_add_epi32(code);
        out.sum_hi[2 * (row * blocks + block) + half] = static_cast<std::int16_t>(sums[half]);
      }
      out.scale[row * blocks + block] = d;
      out.scaled_sum[row * blocks + block] = static_cast<float>(sums[0] + sums[1]);  // the result is scaled, not this
    }
  }
}

void many_rows_one_scale(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
                         int out_stride, std::byte* scratch) {
  if (x.lo) return exact->many_rows(weights, first_panel, num_panels, x, out, out_stride, scratch);
  many_rows(weights, first_panel, num_panels, x, out, out_stride, scratch);
  for (std::ptrdiff_t row = 0; row < x.num_rows; ++row) {
    const __m512 d = _mm512_set1_ps(x.scale[row * (x.cols / kActivationBlock)]);
    float* at = out + row * out_stride + static_cast<std::ptrdiff_t>(first_panel) * kPanelRows;
    for (int panel = 0; panel < num_panels; ++panel, at += kPanelRows) _mm512_storeu_ps(at, _mm512_loadu_ps(at) * d);
  }
}

}  // namespace

// Up to 24 rows the level takes another way; this variant is for prefill alone.
void few_rows(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out, int out_stride) {
  exact->one_row(weights, first_panel, num_panels, x, out, out_stride, nullptr);
}

KernelTable with_row_scales(KernelTable table) {
  exact = &select_kernels("avx512");
  table.quantize = quantize_rows;
  table.many_rows = many_rows_one_scale;
  return table;
}

}  // namespace couplet::kernels::inexact
