#pragma once
// One form for the rarer tensor types (IQ1, IQ2, IQ3, TQ1, TQ2): however each of them packs its grids, signs, deltas and
// digits, a block is 256 values of at most 16 different small integers, an integer scale for every 16 of them and one float:
// value = d * scale * code, exactly. Their floats (quant_types.h) and the kernels' weights are both made from it.

#include <cstddef>
#include <cstdint>

#include "formats/quant_types.h"

namespace couplet::formats {

struct CodedBlock {
  float d;
  std::int8_t codes[16];      // what a nibble stands for, -63 to 63; the same in all blocks of a type
  std::int8_t scales[16];     // for every 16 values, 0 to 63
  std::uint8_t nibbles[128];  // of 32 values the first 16 low, the others high in 16 bytes, as in Q4_0
};
inline constexpr int kCodedValues = 256;

bool is_coded(TensorType type);
// `count` values (a multiple of 256) from file bytes, which need not be aligned. `type` is a coded one.
void to_coded_blocks(TensorType type, const std::byte* bytes, std::size_t count, CodedBlock* out);

// 256 floats, each the exact value.
void dequantize(const CodedBlock& block, float* out);

}  // namespace couplet::formats
