#pragma once
// Quantization and products of this level, defined by what reference/ gives.

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace couplet::kernels::avx512 {

#include "kernels/product_kernels.inl"

}  // namespace couplet::kernels::avx512
