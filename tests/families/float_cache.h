#pragma once
// A cache of floats, as no engine has one: without the rounding of keys and values, what is left between a model's logits
// and exact ones is float32 arithmetic, and a bound can be as tight as that. Attention over it is written for nothing but
// to be plainly right, in double.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernels.h"

namespace couplet::testing {

// A page holds keys [16 positions][head_dim], then values alike: twice a page of f16.
inline constexpr int kFloatPageFactor = 2;

inline bool store_floats(const float* keys, const float* values, int stride, int num_positions, int head_dim, int first_slot,
                         std::byte* page) {
  float* const floats = reinterpret_cast<float*>(page);
  for (int i = 0; i < num_positions; ++i) {
    std::copy_n(keys + i * stride, head_dim, floats + (first_slot + i) * head_dim);
    std::copy_n(values + i * stride, head_dim, floats + (kernels::kPagePositions + first_slot + i) * head_dim);
  }
  return true;
}

inline void attend_floats(const kernels::AttentionSpan& span, const kernels::AttentionState& state, std::byte*) {
  const int dim = span.head_dim, padded = kernels::padded16(dim);
  for (int query = 0; query < span.num_rows * span.group; ++query) {
    const int row = query / span.group, position = span.first_position + row;
    const float* q = span.queries + row * span.query_stride + query % span.group * dim;
    const int first = std::max(span.span_begin, span.window == 0 ? 0 : position + 1 - span.window);
    const int last = std::min(span.span_begin + kernels::kSpanPositions - 1, position);
    const auto slot = [&](int at, int half) {  // 0: key, 1: value
      const int in_span = at - span.span_begin;
      const auto* page = reinterpret_cast<const float*>(span.pages[in_span / kernels::kPagePositions]);
      return page + (half * kernels::kPagePositions + in_span % kernels::kPagePositions) * dim;
    };
    double scores[kernels::kSpanPositions], sum = 0;
    float max = -std::numeric_limits<float>::infinity();
    for (int at = first; at <= last; ++at) {
      double s = 0;
      for (int d = 0; d < dim; ++d) s += static_cast<double>(q[d]) * static_cast<double>(slot(at, 0)[d]);
      s *= static_cast<double>(span.scale);
      if (span.cap != 0) s = static_cast<double>(span.cap) * std::tanh(s / static_cast<double>(span.cap));
      scores[at - span.span_begin] = s;
      max = std::max(max, static_cast<float>(s));
    }
    for (int at = first; at <= last; ++at)
      sum += scores[at - span.span_begin] = std::exp(scores[at - span.span_begin] - static_cast<double>(max));
    state.max[query] = max;
    state.sum[query] = static_cast<float>(sum);
    std::fill_n(state.out + query * padded, padded, 0.0F);
    for (int d = 0; d < dim; ++d) {
      double o = 0;
      for (int at = first; at <= last; ++at) o += scores[at - span.span_begin] * static_cast<double>(slot(at, 1)[d]);
      state.out[query * padded + d] = static_cast<float>(o);
    }
  }
}

// `level` with this attention in the place of f16's.
inline kernels::KernelTable with_float_cache(const kernels::KernelTable& level) {
  kernels::KernelTable table = level;
  table.attention[static_cast<std::size_t>(kernels::PageFormat::f16)] = {store_floats, attend_floats, attend_floats};
  return table;
}

}  // namespace couplet::testing
