#pragma once
// Kernels that break the numerics contract on purpose, in ways that other engines take for speed. They are compiled from the
// avx512 level's own source with single steps replaced, so that nothing else differs. exactness_bench.cpp measures what
// they gain: the price of exactness.

#include "kernels/kernels.h"

namespace couplet::kernels::inexact {

// Norms, activations and attention with the instructions' approximate reciprocals, a short exp, and whatever order of sums
// the compiler likes (-Ofast).
KernelTable with_fast_floats(KernelTable table);

// Activations with one scale a row, as dynamic quantization commonly has it, and not one every 32: a multiplication less in
// the inner loop of many rows. Whole rows cost accuracy too (docs/numerics.md).
KernelTable with_row_scales(KernelTable table);

}  // namespace couplet::kernels::inexact
