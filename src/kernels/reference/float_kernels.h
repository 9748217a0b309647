#pragma once
// Float kernels in plain scalar C++, written without f32x16: the meaning of what the levels compute.

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace couplet::kernels::reference {

#include "kernels/float/float_kernels.inl"

}  // namespace couplet::kernels::reference
