#include "kernels/avx2/float_kernels.h"

#include "kernels/f32x16.h"

#include "kernels/float/attention.inl"
#include "kernels/float/rows.inl"
