#pragma once
// Rule 3's two bounds on the greatest magnitude of what shares a scale, as bits of a float.

namespace couplet::kernels {

inline constexpr int kLargestFinite = 0x7f7fffff;   // above it: infinite, or not a number
inline constexpr int kSmallestScaled = 0x0f800000;  // 2^-96: below it levels / amax and 254 / d leave the range

}  // namespace couplet::kernels
