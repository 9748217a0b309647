#pragma once
// The pieces that the reference kernels share: exp and the tree that joins 16 lanes. They are rules 1 and 2 of
// docs/numerics.md in scalar form.

#include <cstdint>

namespace couplet::kernels::reference {

inline constexpr int kLanes = 16;

// +0 below -87, exp(88) above 88, NaN for NaN.
float exp_float(float x);

// cap * tanh(x / cap)
float soft_capped(float x, float cap);

float max_float(float a, float b);  // a > b ? a : b

// Joins lanes 8, 4, 2, 1 apart; the arrays are spent.
float join_sum(float lanes[kLanes]);
float join_max(float lanes[kLanes]);

}  // namespace couplet::kernels::reference
