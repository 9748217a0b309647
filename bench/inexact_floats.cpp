// The avx512 level's float kernels in another namespace, compiled with -Ofast -mrecip=all, with a short exp.

#include "inexact.h"

#define avx512 inexact
#include "kernels/avx512/float_kernels.h"
#include "kernels/f32x16.h"
#include "kernels/page_layout.h"
#include "kernels/scale_limits.h"

namespace couplet::kernels::inexact {
namespace {

// Degree 4, one step of reduction: off by up to 0.00004 of the value, where the exact one is off by 0.0000001.
COUPLET_INLINE f32x16 short_exp(f32x16 x) {
  const __m512 y = _mm512_mul_ps(_mm512_max_ps(x.v, _mm512_set1_ps(-87)), _mm512_set1_ps(0x1.715476p0f));
  const __m512 n = _mm512_roundscale_ps(y, 0), r = _mm512_sub_ps(y, n);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(0.00961813F), r, _mm512_set1_ps(0.05550411F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.24022651F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.69314718F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1));
  return {_mm512_scalef_ps(p, n)};
}

}  // namespace
}  // namespace couplet::kernels::inexact

#define exp(x) short_exp(x)
#define exp_of_negative(x) short_exp(x)
#include "kernels/float/attention.inl"
#include "kernels/float/attention_f16.inl"
#include "kernels/float/attention_q16.inl"
#include "kernels/float/rows.inl"
#undef exp

namespace couplet::kernels::inexact {

KernelTable with_fast_floats(KernelTable table) {
  table.rms_norm = rms_norm;
  table.rope = rope;
  table.silu_mul = silu_mul;
  table.gelu_mul = gelu_mul;
  table.add = add;
  table.scale = scale;
  const AttentionKernels attention[] = {{store_f16, attend_prefill_f16, attend_decode_f16},
                                        {store_q16, attend_prefill_q16, attend_decode_q16},
                                        {store_q16_fine, attend_prefill_q16_fine, attend_decode_q16_fine}};
  for (int format = 0; format < kNumPageFormats; ++format) table.attention[format] = attention[format];
  table.merge_spans = merge_spans;
  table.finish_attention = finish_attention;
  return table;
}

}  // namespace couplet::kernels::inexact
