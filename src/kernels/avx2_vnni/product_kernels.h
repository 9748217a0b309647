#pragma once
// The products of this level, defined by what reference/ gives; its other kernels are those of avx2/.

#include <cstddef>

#include "kernels/avx2_vnni/vnni.h"
#include "kernels/kernels.h"

namespace couplet::kernels::COUPLET_LEVEL {

void many_rows(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
               int out_stride, std::byte* scratch);
void one_row(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
             int out_stride, std::byte* scratch);
std::size_t product_scratch_bytes(int max_cols);

}  // namespace couplet::kernels::COUPLET_LEVEL
