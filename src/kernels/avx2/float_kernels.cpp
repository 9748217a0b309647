#include "kernels/avx2/float_kernels.h"

#include "kernels/f32x16.h"
#include "kernels/page_layout.h"
#include "kernels/scale_limits.h"

#include "kernels/float/attention.inl"
#include "kernels/float/attention_f16.inl"
#include "kernels/float/attention_q16.inl"
#include "kernels/float/rows.inl"
