#pragma once
// Half precision under the reference kernels' name (rule 7 of docs/numerics.md).

#include "base/half.h"

namespace couplet::kernels::reference {

using couplet::float_to_half;
using couplet::half_to_float;
using couplet::is_finite_half;

}  // namespace couplet::kernels::reference
