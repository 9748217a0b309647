#pragma once
// Float kernels of this level: the shared source of float/, compiled against the f32x16 of avx2/ with vpdpwssd.

#include <cstddef>
#include <cstdint>

#include "kernels/avx2_vnni/vnni.h"
#include "kernels/kernels.h"

namespace couplet::kernels::COUPLET_LEVEL {

#include "kernels/float/float_kernels.inl"

}  // namespace couplet::kernels::COUPLET_LEVEL
