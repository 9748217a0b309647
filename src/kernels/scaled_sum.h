#pragma once
// Rule 4's sa of a sub-block of 16 codes, for types with a minimum that have them.

#include "kernels/kernels.h"

namespace couplet::kernels {
namespace {

// Sub-block `sub` of block `block` of 32 codes, counted over all rows.
inline __attribute__((always_inline)) float scaled_sum_of_16(const QuantizedRows& x, std::ptrdiff_t block, int sub) {
  const std::ptrdiff_t at = 2 * block + sub;
  const int sum = x.sum_lo ? 254 * x.sum_hi[at] + x.sum_lo[at] : x.sum_hi[at];
  return x.scale[block] * static_cast<float>(sum);
}

}  // namespace
}  // namespace couplet::kernels
