// Rule 5: acc = fma(w, x, acc) over ascending k, one chain an output.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/reference/half.h"
#include "kernels/reference/product_kernels.h"

namespace couplet::kernels::reference {
namespace {

float weight_at(WeightType type, const std::byte* panel, std::ptrdiff_t index) {
  if (type == WeightType::f32) {
    float value;
    std::memcpy(&value, panel + 4 * index, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, panel + 2 * index, sizeof bits);
  return type == WeightType::f16 ? half_to_float(bits) : std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace

void float_rows(const PackedMatrix& weights, int first_panel, int num_panels, const float* x, int x_stride,
                int num_rows, float* out, int out_stride) {
  for (std::ptrdiff_t p = first_panel; p < first_panel + num_panels; ++p) {
    const std::byte* panel = weights.panels + static_cast<std::size_t>(p) * weights.panel_bytes;
    for (std::ptrdiff_t row = 0; row < num_rows; ++row) {
      float acc[kPanelRows] = {};
      for (std::ptrdiff_t k = 0; k < weights.cols; ++k) {
        for (int r = 0; r < kPanelRows; ++r) {
          acc[r] = std::fma(weight_at(weights.type, panel, k * kPanelRows + r), x[row * x_stride + k], acc[r]);
        }
      }
      std::memcpy(out + row * out_stride + p * kPanelRows, acc, sizeof acc);
    }
  }
}

}  // namespace couplet::kernels::reference
