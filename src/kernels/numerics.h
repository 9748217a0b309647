#pragma once
// The version of the rules in docs/numerics.md. It is part of an answer's identity: two builds with the same version,
// weights and options give the same bits.

namespace couplet::kernels {

inline constexpr int kNumericsVersion = 2;

}  // namespace couplet::kernels
