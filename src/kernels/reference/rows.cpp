// Norm, rope, activations, elementwise steps, and the passes over a row of logits.

#include <cmath>
#include <limits>

#include "kernels/reference/float_kernels.h"
#include "kernels/reference/scalar.h"

namespace couplet::kernels::reference {

void rms_norm(const float* x, int x_stride, const float* weight, float eps, int rows, int cols, float* out,
              int out_stride) {
  for (int r = 0; r < rows; ++r, x += x_stride, out += out_stride) {
    float lanes[kLanes] = {};
    for (int i = 0; i < cols; ++i) lanes[i % kLanes] = std::fma(x[i], x[i], lanes[i % kLanes]);
    const float mean_square = join_sum(lanes) / static_cast<float>(cols);
    const float inverse = 1.0f / std::sqrt(mean_square + eps);
    for (int i = 0; i < cols; ++i) out[i] = (x[i] * inverse) * weight[i];
  }
}

void rope(float* x, int num_heads, int head_dim, const float* cos, const float* sin, int half) {
  for (int h = 0; h < num_heads; ++h, x += head_dim) {
    for (int i = 0; i < half; ++i) {
      const float a = x[i], b = x[i + half];
      x[i] = std::fma(-b, sin[i], a * cos[i]);
      x[i + half] = std::fma(a, sin[i], b * cos[i]);
    }
  }
}

void silu_mul(float* gate, const float* up, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float e = exp_float(-gate[i]);
    gate[i] = (gate[i] / (1.0f + e)) * up[i];
  }
}

void gelu_mul(float* gate, const float* up, std::size_t count) {
  constexpr float k1 = 0x1.988454p0f, k2 = 0x1.2444f2p-4f;  // 2 sqrt(2 / pi), and that times 0.044715
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gate[i], square = g * g;
    const float y = g * std::fma(k2, square, k1);
    gate[i] = (g / (1.0f + exp_float(-y))) * up[i];
  }
}

void clamped_silu_mul(float* gate, const float* up, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gate[i] > 7.0f ? 7.0f : gate[i];
    const float low = up[i] > 7.0f ? 7.0f : up[i], u = low < -7.0f ? -7.0f : low;
    const float e = exp_float(-(1.702f * g));
    gate[i] = (g / (1.0f + e)) * (u + 1.0f);
  }
}

void soft_cap(float* x, float cap, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x[i] = soft_capped(x[i], cap);
}

void add(float* x, const float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x[i] = x[i] + y[i];
}

void add_scaled(float* x, const float* y, float factor, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x[i] = std::fma(y[i], factor, x[i]);
}

void scale(float* x, float factor, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) x[i] = x[i] * factor;
}

void add_bias(float* x, int x_stride, const float* bias, int rows, int cols) {
  for (int r = 0; r < rows; ++r, x += x_stride) add(x, bias, static_cast<std::size_t>(cols));
}

double sum_exp(const float* logits, int count, float max, double* weighted) {
  double sum = 0, weighted_sum = 0;
  for (int i = 0; i < count; ++i) {
    const float difference = logits[i] - max, term = exp_float(difference);
    sum = sum + static_cast<double>(term);
    if (term != 0.0f) weighted_sum = weighted_sum + static_cast<double>(term) * static_cast<double>(difference);
  }
  if (weighted) *weighted = weighted_sum;
  return sum;
}

int argmax(const float* logits, int count, bool* finite) {
  int best = 0;
  *finite = true;
  for (int i = 0; i < count; ++i) {
    if (!(std::abs(logits[i]) <= std::numeric_limits<float>::max())) *finite = false;
    if (logits[i] > logits[best]) best = i;
  }
  return *finite ? best : 0;
}

}  // namespace couplet::kernels::reference
