// What attention over every cache format shares (rule 6 of docs/numerics.md), against f32x16: which positions of a span a
// query sees, the scores' maximum, the merge of spans.

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

constexpr int least(int a, int b) { return a < b ? a : b; }
constexpr int greatest(int a, int b) { return a > b ? a : b; }

struct Range {  // slots of a span: [begin, end) of 0..256
  int begin;
  int end;
};

Range visible_to(const AttentionSpan& span, int row) {
  const int end = span.first_position + row + 1;
  const int begin = span.window > 0 ? greatest(0, end - span.window) : 0;
  return {greatest(begin - span.span_begin, 0), least(end - span.span_begin, kSpanPositions)};
}

// Scores of pages [page, end_page), where the model caps them.
void cap_scores(float* scores, int page, int end_page, float cap) {
  for (int i = page * kPagePositions; i < end_page * kPagePositions; i += kPagePositions) {
    store(scores + i, soft_capped(load(scores + i), broadcast(cap)));
  }
}

// What the query doesn't see becomes -inf, in the pages where it sees a part; returns the maximum.
float mask_and_max(float* scores, Range visible) {
  const f32x16 nothing = broadcast(-__builtin_inff());
  const int begin = visible.begin / kPagePositions * kPagePositions;
  const int last = (visible.end - 1) / kPagePositions * kPagePositions;
  for (const int page : {begin, last}) {
    const mask16 seen = lanes_between(visible.begin - page, visible.end - page);
    store(scores + page, select(seen, load(scores + page), nothing));
  }
  f32x16 greatest_score = nothing;
  for (int i = begin; i <= last; i += kPagePositions) greatest_score = max(greatest_score, load(scores + i));
  return join_max(greatest_score);
}

// The queries that see a position of the span, which stand together; the others get an empty state.
Range queries_with_work(const AttentionSpan& span, const AttentionState& state) {
  const int padded = padded16(span.head_dim);
  Range rows = {0, 0};
  for (int row = 0; row < span.num_rows; ++row) {
    const Range visible = visible_to(span, row);
    if (visible.begin < visible.end) {
      rows = {rows.begin < rows.end ? rows.begin : row, row + 1};
      continue;
    }
    for (int query = row * span.group; query < (row + 1) * span.group; ++query) {
      state.max[query] = -__builtin_inff();
      state.sum[query] = 0.0f;
      float* out = state.out + static_cast<std::ptrdiff_t>(query) * padded;
      for (int i = 0; i < padded; i += kLanes) store(out + i, zero());
    }
  }
  return {rows.begin * span.group, rows.end * span.group};
}

}  // namespace

void merge_spans(const AttentionState& state, const AttentionState& span, int num_queries, int head_dim) {
  const int padded = padded16(head_dim);
  for (int query = 0; query < num_queries; ++query) {
    if (span.sum[query] == 0.0f) continue;
    float* out = state.out + static_cast<std::ptrdiff_t>(query) * padded;
    const float* span_out = span.out + static_cast<std::ptrdiff_t>(query) * padded;
    if (state.sum[query] == 0.0f) {
      state.max[query] = span.max[query];
      state.sum[query] = span.sum[query];
      for (int d = 0; d < padded; d += kLanes) store(out + d, load(span_out + d));
      continue;
    }
    const f32x16 m = broadcast(state.max[query]), ms = broadcast(span.max[query]), M = max(m, ms);
    const f32x16 a = exp(m - M), b = exp(ms - M);
    state.max[query] = first_lane(M);
    state.sum[query] = first_lane(fma(broadcast(state.sum[query]), a, broadcast(span.sum[query]) * b));
    for (int d = 0; d < padded; d += kLanes) store(out + d, fma(load(out + d), a, load(span_out + d) * b));
  }
}

void finish_attention(const AttentionState& state, int num_queries, int head_dim, float* result,
                      int result_stride) {
  const int padded = padded16(head_dim), whole = head_dim / kLanes * kLanes;
  for (int query = 0; query < num_queries; ++query) {
    const float* out = state.out + static_cast<std::ptrdiff_t>(query) * padded;
    float* row = result + static_cast<std::ptrdiff_t>(query) * result_stride;
    const f32x16 sum = broadcast(state.sum[query]);
    for (int d = 0; d < whole; d += kLanes) store(row + d, load(out + d) / sum);
    store_first(row + whole, head_dim - whole, load_first(out + whole, head_dim - whole) / sum);
  }
}

}  // namespace couplet::kernels::COUPLET_LEVEL
