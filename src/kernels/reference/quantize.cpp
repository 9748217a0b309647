// Rule 3: activations of a row in blocks of 32.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/reference/product_kernels.h"
#include "kernels/scale_limits.h"

namespace couplet::kernels::reference {
namespace {

// To the nearest integer, ties to even, for |x| <= 2^22.
int round_even(float x) {
  constexpr float kShift = 0x1.8p23f;
  return static_cast<int>((x + kShift) - kShift);
}

std::uint32_t largest_magnitude(const float* x, int count) {
  std::uint32_t amax = 0;
  for (int i = 0; i < count; ++i) amax = std::max(amax, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffU);
  return amax;
}

void quantize_block(const float* x, const QuantizedRows& out, std::ptrdiff_t row, std::ptrdiff_t block) {
  const std::ptrdiff_t at = row * out.code_stride + block * kActivationBlock;
  const std::ptrdiff_t num_blocks = out.cols / kActivationBlock;
  const std::uint32_t amax = largest_magnitude(x, kActivationBlock);
  const bool zero = amax < kSmallestScaled;
  const float d = zero ? 0.0f : std::bit_cast<float>(amax) / 127.0f;
  const float inverse = zero ? 0.0f : 127.0f / std::bit_cast<float>(amax);
  const float fine_inverse = zero ? 0.0f : 254.0f / d;
  int sum_hi[2] = {}, sum_lo[2] = {};
  for (int i = 0; i < kActivationBlock; ++i) {
    const int hi = round_even(x[i] * inverse);
    out.hi[at + i] = static_cast<std::int8_t>(hi);
    sum_hi[i / 16] += hi;
    if (!out.lo) continue;
    const int lo = zero ? 0 : round_even(std::fma(-static_cast<float>(hi), d, x[i]) * fine_inverse);
    out.lo[at + i] = static_cast<std::int8_t>(lo);
    sum_lo[i / 16] += lo;
  }
  for (int half = 0; half < 2; ++half) {
    const std::ptrdiff_t sum = (row * num_blocks + block) * 2 + half;
    out.sum_hi[sum] = static_cast<std::int16_t>(sum_hi[half]);
    if (out.lo) out.sum_lo[sum] = static_cast<std::int16_t>(sum_lo[half]);
  }
  const int hi = sum_hi[0] + sum_hi[1], lo = sum_lo[0] + sum_lo[1];
  const float scale = out.lo ? d / 254.0f : d;
  out.scale[row * num_blocks + block] = scale;
  out.scaled_sum[row * num_blocks + block] = scale * static_cast<float>(out.lo ? 254 * hi + lo : hi);
}

}  // namespace

void quantize(const float* x, int x_stride, const QuantizedRows& out, std::uint8_t* poisoned) {
  constexpr float kZeros[kActivationBlock] = {};
  for (std::ptrdiff_t row = 0; row < out.num_rows; ++row) {
    const float* values = x + row * x_stride;
    const bool finite = largest_magnitude(values, out.cols) <= kLargestFinite;
    if (!finite) poisoned[row] = 1;
    for (std::ptrdiff_t block = 0; block < out.cols / kActivationBlock; ++block) {
      quantize_block(finite ? values + block * kActivationBlock : kZeros, out, row, block);
    }
  }
}

}  // namespace couplet::kernels::reference
