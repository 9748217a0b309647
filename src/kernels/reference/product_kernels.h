#pragma once
// The meaning of quantization and of the products (docs/numerics.md, rules 3 to 5), in plain C++.

#include "kernels/kernels.h"

namespace couplet::kernels::reference {

void quantize(const float* x, int x_stride, const QuantizedRows& out, std::uint8_t* poisoned);

// Any quantized type; what differs between many rows and one row at other levels is here the same function.
void product(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
             int out_stride, std::byte* scratch);
#ifdef COUPLET_SPLIT_K
void product_split_k(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
                     int out_stride, std::byte* scratch);
#endif
std::size_t product_scratch_bytes(int max_cols);

// F32, F16 and BF16.
void float_product(const PackedMatrix& weights, int first_panel, int num_panels, const float* x, int x_stride,
                   int num_rows, float* out, int out_stride);

}  // namespace couplet::kernels::reference
