#pragma once
// The quantizers of the K types: 256 values in sub-blocks with scales of their own, which are quantized too.

#include <cstddef>

namespace couplet::formats {

inline constexpr int kSuperBlock = 256;

// One block; false: its scales are beyond half precision. The values are finite.
bool quantize_q2_k(const float* values, std::byte* block);
bool quantize_q3_k(const float* values, std::byte* block);
bool quantize_q4_k(const float* values, std::byte* block);
bool quantize_q5_k(const float* values, std::byte* block);
bool quantize_q6_k(const float* values, std::byte* block);

}  // namespace couplet::formats
