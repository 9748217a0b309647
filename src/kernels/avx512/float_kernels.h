#pragma once
// Float kernels of this level: the shared source of float/, compiled against this level's f32x16.

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace couplet::kernels::avx512 {

#include "kernels/float/float_kernels.inl"

}  // namespace couplet::kernels::avx512
