// Integer pages and attention over them, one query at a time: what rules 6, 7 and 10 of docs/numerics.md say.

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "kernels/page_layout.h"
#include "kernels/reference/attention.h"
#include "kernels/reference/float_kernels.h"
#include "kernels/reference/scalar.h"
#include "kernels/scale_limits.h"

namespace couplet::kernels::reference {
namespace {

constexpr int kKeyLevels = 8191, kQueryLevels = 4095, kValueLevels = 127, kWeightLevels = 32767;

struct Codes {
  std::vector<int> codes;
  float d = 0;  // x is about code * d
  bool finite = true;
};

// One scale for all; a maximum that is not finite leaves codes of 0 and a d that is not finite.
Codes quantized(const float* x, int count, int levels) {
  Codes result;
  result.codes.assign(static_cast<std::size_t>(count), 0);
  std::uint32_t amax = 0;
  for (int i = 0; i < count; ++i) amax = std::max(amax, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffU);
  result.finite = amax <= kLargestFinite;
  if (amax < kSmallestScaled) return result;
  result.d = std::bit_cast<float>(amax) / static_cast<float>(levels);
  if (!result.finite) return result;
  const float inverse = static_cast<float>(levels) / std::bit_cast<float>(amax);
  for (int i = 0; i < count; ++i) result.codes[static_cast<std::size_t>(i)] = static_cast<int>(std::nearbyint(x[i] * inverse));
  return result;
}

// The second plane: what the first leaves of each value, in steps of d / 254.
Codes second_plane(const float* x, const Codes& first) {
  Codes result;
  result.codes.assign(first.codes.size(), 0);
  result.d = first.d / 254.0f;
  if (first.d == 0 || !first.finite) return result;
  const float inverse = 254.0f / first.d;
  for (std::size_t i = 0; i < first.codes.size(); ++i) {
    const float rest = std::fma(-static_cast<float>(first.codes[i]), first.d, x[i]);
    result.codes[i] = static_cast<int>(std::nearbyint(rest * inverse));
  }
  return result;
}

std::int16_t* key_code(std::byte* page, const IntegerPage& layout, int dim, int slot) {
  return reinterpret_cast<std::int16_t*>(page + layout.keys) + (dim / 2 * kPagePositions + slot) * 2 + dim % 2;
}
std::int8_t* value_code(std::byte* plane, int head_dim, int dim, int slot) {
  return reinterpret_cast<std::int8_t*>(plane) + slot / 2 * 2 * padded16(head_dim) + 2 * dim + slot % 2;
}
float* key_scale(std::byte* page, int block, int slot) {
  return reinterpret_cast<float*>(page) + block * kPagePositions + slot;
}
float* value_scale(std::byte* page, const IntegerPage& layout, int slot) {
  return reinterpret_cast<float*>(page + layout.value_scales) + slot;
}

bool store_position(const float* keys, const float* values, int head_dim, int planes, int slot, std::byte* page) {
  const IntegerPage layout(head_dim, planes);
  bool finite = true;
  for (int block = 0; block < IntegerPage::num_blocks(head_dim); ++block) {
    float padded[kKeyBlock] = {};
    std::copy(keys + block * kKeyBlock, keys + std::min(head_dim, (block + 1) * kKeyBlock), padded);
    const Codes key = quantized(padded, kKeyBlock, kKeyLevels);
    for (int i = 0; i < kKeyBlock; ++i) {
      *key_code(page, layout, block * kKeyBlock + i, slot) = static_cast<std::int16_t>(key.codes[static_cast<std::size_t>(i)]);
    }
    *key_scale(page, block, slot) = key.d;
    finite = finite && key.finite;
  }
  std::vector<float> padded(static_cast<std::size_t>(padded16(head_dim)), 0.0f);
  std::copy(values, values + head_dim, padded.begin());
  const Codes hi = quantized(padded.data(), padded16(head_dim), kValueLevels), lo = second_plane(padded.data(), hi);
  for (int d = 0; d < padded16(head_dim); ++d) {
    const auto i = static_cast<std::size_t>(d);
    *value_code(page + layout.values, head_dim, d, slot) = static_cast<std::int8_t>(hi.codes[i]);
    if (planes == 2) *value_code(page + layout.second_plane, head_dim, d, slot) = static_cast<std::int8_t>(lo.codes[i]);
  }
  *value_scale(page, layout, slot) = planes == 2 ? lo.d : hi.d;
  return finite && hi.finite;
}

bool store(const float* keys, const float* values, int stride, int num_positions, int head_dim, int planes, int first_slot,
           std::byte* page) {
  bool finite = true;
  for (int i = 0; i < num_positions; ++i, keys += stride, values += stride) {
    finite = store_position(keys, values, head_dim, planes, first_slot + i, page) && finite;
  }
  return finite;
}

// A position's part of the span.
struct Slot {
  std::byte* page;
  int slot;
};
Slot slot_of(const AttentionSpan& span, int i) {
  return {const_cast<std::byte*>(span.pages[i / kPagePositions]), i % kPagePositions};
}

// `query`: its blocks of 32 dims.
float score(const AttentionSpan& span, const std::vector<Codes>& query, int planes, int i) {
  const IntegerPage layout(span.head_dim, planes);
  const Slot at = slot_of(span, i);
  float s = 0.0f;
  int dim = 0, block = 0;
  for (const Codes& q : query) {
    std::int32_t dot = 0;
    for (const int code : q.codes) dot += code * *key_code(at.page, layout, dim++, at.slot);
    s = std::fma(static_cast<float>(dot) * *key_scale(at.page, block++, at.slot), q.d, s);
  }
  return capped_score(span, s);
}

void attend_query(const AttentionSpan& span, int query, int planes, const AttentionState& state) {
  const int row = query / span.group, head = query % span.group, padded = padded16(span.head_dim);
  const float* q = span.queries + static_cast<std::ptrdiff_t>(row) * span.query_stride + head * span.head_dim;
  const Visible visible = visible_to(span, row);
  const IntegerPage layout(span.head_dim, planes);
  std::vector<Codes> query_codes;
  for (int d = 0; d < span.head_dim; d += kKeyBlock)
    query_codes.push_back(quantized(q + d, std::min(kKeyBlock, span.head_dim - d), kQueryLevels));
  float weights[kSpanPositions];
  for (int i = visible.begin; i < visible.end; ++i) weights[i] = score(span, query_codes, planes, i);
  softmax(weights, visible, &state.max[query], &state.sum[query]);

  for (int i = visible.begin; i < visible.end; ++i) {
    const Slot at = slot_of(span, i);
    weights[i] = weights[i] * *value_scale(at.page, layout, at.slot);
  }
  const int count = std::max(0, visible.end - visible.begin);
  const Codes w = quantized(weights + visible.begin, count, kWeightLevels);
  float* out = state.out + static_cast<std::ptrdiff_t>(query) * padded;
  for (int d = 0; d < padded; ++d) {
    std::int32_t hi = 0, lo = 0;
    for (int i = 0; i < count; ++i) {
      const Slot at = slot_of(span, visible.begin + i);
      hi += w.codes[static_cast<std::size_t>(i)] * *value_code(at.page + layout.values, span.head_dim, d, at.slot);
      if (planes == 2)
        lo += w.codes[static_cast<std::size_t>(i)] * *value_code(at.page + layout.second_plane, span.head_dim, d, at.slot);
    }
    const float sum = planes == 2 ? std::fma(254.0f, static_cast<float>(hi), static_cast<float>(lo)) : static_cast<float>(hi);
    out[d] = sum * w.d;
  }
}

void attend(const AttentionSpan& span, int planes, const AttentionState& state) {
  for (int query = 0; query < span.num_rows * span.group; ++query) attend_query(span, query, planes, state);
}

}  // namespace

bool store_q16(const float* keys, const float* values, int stride, int num_positions, int head_dim, int first_slot,
               std::byte* page) {
  return store(keys, values, stride, num_positions, head_dim, 1, first_slot, page);
}
void attend_prefill_q16(const AttentionSpan& span, const AttentionState& state, std::byte*) { attend(span, 1, state); }
void attend_decode_q16(const AttentionSpan& span, const AttentionState& state, std::byte*) { attend(span, 1, state); }

bool store_q16_fine(const float* keys, const float* values, int stride, int num_positions, int head_dim, int first_slot,
                    std::byte* page) {
  return store(keys, values, stride, num_positions, head_dim, 2, first_slot, page);
}
void attend_prefill_q16_fine(const AttentionSpan& span, const AttentionState& state, std::byte*) { attend(span, 2, state); }
void attend_decode_q16_fine(const AttentionSpan& span, const AttentionState& state, std::byte*) { attend(span, 2, state); }

std::size_t q16_scratch_bytes(int) { return 0; }

}  // namespace couplet::kernels::reference
