#pragma once
// Floats to the blocks of a quantized type. A block depends on its own values alone, and all arithmetic is exact in the
// sense of docs/numerics.md, so the bytes are the same on every machine and with any number of threads. Q4_0 to Q8_0 are
// what PyPI `gguf` makes, to the bit; the K types search for the scales with the least squared error.

#include <cstddef>

#include "formats/quant_types.h"

namespace couplet::formats {

// Whether quantize() makes this type.
bool has_quantizer(TensorType type);

// Writes the blocks of `count` values, a multiple of the type's block_values. False, and `out` holds nothing of use: a
// value is no finite number, or too large for the type.
[[nodiscard]] bool quantize(TensorType type, const float* values, std::size_t count, std::byte* out);

}  // namespace couplet::formats
