#pragma once
// many_rows without an unpacked copy: the faster way while the weights' bytes cost more than the arithmetic.

#include "kernels/kernels.h"

namespace couplet::kernels::avx512 {

void few_rows(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
              int out_stride);

}  // namespace couplet::kernels::avx512
