#pragma once
// The meaning of quantization and of the products (docs/numerics.md, rules 3 to 5), in plain C++.

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace couplet::kernels::reference {

#include "kernels/product_kernels.inl"

}  // namespace couplet::kernels::reference
