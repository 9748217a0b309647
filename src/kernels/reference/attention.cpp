// f16 pages, attention over them one query at a time, and the merge of spans (rules 6 and 7 of docs/numerics.md).

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/attention.h"
#include "kernels/reference/float_kernels.h"
#include "kernels/reference/half.h"
#include "kernels/reference/scalar.h"

namespace couplet::kernels::reference {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

const std::uint16_t* halves(const AttentionSpan& span, int i) {
  return reinterpret_cast<const std::uint16_t*>(span.pages[i / kPagePositions]);
}

void attend_query(const AttentionSpan& span, int query, const AttentionState& state) {
  const int row = query / span.group, head = query % span.group, padded = padded16(span.head_dim);
  const float* q = span.queries + static_cast<std::ptrdiff_t>(row) * span.query_stride + head * span.head_dim;
  const Visible visible = visible_to(span, row);

  float scores[kSpanPositions];
  for (int i = visible.begin; i < visible.end; ++i) {
    const std::uint16_t* keys = halves(span, i) + i % kPagePositions;
    float s = 0.0f;
    for (int d = 0; d < span.head_dim; ++d) s = std::fma(q[d], half_to_float(keys[d * kPagePositions]), s);
    scores[i] = capped_score(span, s);
  }
  softmax(scores, visible, &state.max[query], &state.sum[query]);

  float* out = state.out + static_cast<std::ptrdiff_t>(query) * padded;
  for (int d = 0; d < padded; ++d) {
    float o = 0.0f;
    for (int i = visible.begin; i < visible.end; ++i) {
      const std::uint16_t* values = halves(span, i) + padded * kPagePositions;
      o = std::fma(scores[i], half_to_float(values[i % kPagePositions * padded + d]), o);
    }
    out[d] = o + 0.0f;
  }
}

}  // namespace

Visible visible_to(const AttentionSpan& span, int row) {
  const int end = span.first_position + row + 1;
  const int begin = span.window > 0 ? std::max(0, end - span.window) : 0;
  return {std::max(begin - span.span_begin, 0), std::min(end - span.span_begin, kSpanPositions)};
}

float capped_score(const AttentionSpan& span, float product) {
  const float score = product * span.scale;
  return span.cap == 0.0f ? score : soft_capped(score, span.cap);
}

void softmax(float scores[kSpanPositions], Visible visible, float* max, float* sum) {
  float lane_max[kLanes], lane_sum[kLanes] = {};
  std::fill(lane_max, lane_max + kLanes, kNothing);
  for (int i = visible.begin; i < visible.end; ++i) lane_max[i % kLanes] = max_float(lane_max[i % kLanes], scores[i]);
  *max = join_max(lane_max);
  for (int i = visible.begin; i < visible.end; ++i) {
    scores[i] = exp_float(scores[i] - *max);
    lane_sum[i % kLanes] = lane_sum[i % kLanes] + scores[i];
  }
  *sum = join_sum(lane_sum);
}

bool store_f16(const float* keys, const float* values, int stride, int num_positions, int head_dim, int first_slot,
               std::byte* bytes) {
  std::uint16_t* page = reinterpret_cast<std::uint16_t*>(bytes);
  const int padded = padded16(head_dim);
  bool fits = true;
  for (int i = 0; i < num_positions; ++i, keys += stride, values += stride) {
    std::uint16_t* key_column = page + first_slot + i;
    std::uint16_t* value_row = page + (kPagePositions + first_slot + i) * padded;
    for (int d = 0; d < padded; ++d) {
      const std::uint16_t key = d < head_dim ? float_to_half(keys[d]) : std::uint16_t{0};
      const std::uint16_t value = d < head_dim ? float_to_half(values[d]) : std::uint16_t{0};
      key_column[d * kPagePositions] = key;
      value_row[d] = value;
      fits = fits && is_finite_half(key) && is_finite_half(value);
    }
  }
  return fits;
}

void attend_prefill_f16(const AttentionSpan& span, const AttentionState& state, std::byte*) {
  for (int query = 0; query < span.num_rows * span.group; ++query) attend_query(span, query, state);
}

void attend_decode_f16(const AttentionSpan& span, const AttentionState& state, std::byte* scratch) {
  attend_prefill_f16(span, state, scratch);
}

void merge_spans(const AttentionState& state, const AttentionState& span, int num_queries, int head_dim) {
  const int padded = padded16(head_dim);
  for (int query = 0; query < num_queries; ++query) {
    if (span.sum[query] == 0.0f) continue;
    float* out = state.out + static_cast<std::ptrdiff_t>(query) * padded;
    const float* span_out = span.out + static_cast<std::ptrdiff_t>(query) * padded;
    if (state.sum[query] == 0.0f) {
      state.max[query] = span.max[query];
      state.sum[query] = span.sum[query];
      std::copy(span_out, span_out + padded, out);
      continue;
    }
    const float max = max_float(state.max[query], span.max[query]);
    const float a = exp_float(state.max[query] - max), b = exp_float(span.max[query] - max);
    state.max[query] = max;
    state.sum[query] = std::fma(state.sum[query], a, span.sum[query] * b);
    for (int d = 0; d < padded; ++d) out[d] = std::fma(out[d], a, span_out[d] * b);
  }
}

void finish_attention(const AttentionState& state, int num_queries, int head_dim, float* result,
                      int result_stride) {
  const int padded = padded16(head_dim);
  for (int query = 0; query < num_queries; ++query) {
    const float* out = state.out + static_cast<std::ptrdiff_t>(query) * padded;
    float* row = result + static_cast<std::ptrdiff_t>(query) * result_stride;
    for (int d = 0; d < head_dim; ++d) row[d] = out[d] / state.sum[query];
  }
}

std::size_t f16_scratch_bytes(int) { return 0; }

}  // namespace couplet::kernels::reference
