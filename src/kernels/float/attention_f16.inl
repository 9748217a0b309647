// Attention over the cache's f16 pages, in float (rules 6 and 7 of docs/numerics.md), against f32x16.
//
// Queries are taken in tiles of up to kTileQueries, which share every load of a key or value. A tile has three steps:
// scores (lanes along a page's positions), softmax (a query at a time), weighted values (lanes along head_dim). Both
// products are chains a lane, so a tile's shape moves no bit. Prefill widens the span's pages to float once, for all
// its tiles; decode reads them as they are. The tile code is the same for both: T is what a page holds.

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

constexpr int kTileQueries = 6;  // 6 queries x 4 pages (avx512), x 1 page (avx2) of accumulators

// Pages, or vectors of head_dim, that an inner loop takes at once for so many queries.
constexpr int step_of(int queries) { return greatest(1, least(4, kAccumulators / queries)); }

struct Scratch {
  float* scores;  // [kTileQueries, kSpanPositions], later the weights
  float* pages;   // [16] pages of floats
};

constexpr std::size_t page_values(int head_dim) {
  return 2 * kPagePositions * static_cast<std::size_t>(padded16(head_dim));
}

Scratch divide(std::byte* scratch) {
  float* scores = reinterpret_cast<float*>(scratch);
  return {scores, scores + kTileQueries * kSpanPositions};
}

const std::uint16_t* halves(const AttentionSpan& span, int page) {
  return reinterpret_cast<const std::uint16_t*>(span.pages[page]);
}

// scores[g, page u, slot] = scale * sum over d of queries[g][d] * keys[u][d, slot]
template <int N, int P, class T>
void score_pages(const float* const* queries, int head_dim, const T* const* pages, int pages_left, float scale,
                 float* scores) {
  f32x16 s[N][P];
  const T *keys[P], *next_keys[P];
  const float* q[N];
  COUPLET_UNROLL
  for (int u = 0; u < P; ++u) {
    keys[u] = pages[u];
    next_keys[u] = pages[least(P + u, pages_left - 1)];
  }
  const std::ptrdiff_t values = padded16(head_dim) * kPagePositions;
  COUPLET_UNROLL
  for (int g = 0; g < N; ++g) {
    q[g] = queries[g];
    COUPLET_UNROLL
    for (int u = 0; u < P; ++u) s[g][u] = zero();
  }
  for (std::ptrdiff_t d = 0; d < head_dim; ++d) {
    f32x16 k[P];
    COUPLET_UNROLL
    for (int u = 0; u < P; ++u) {
      k[u] = load(keys[u] + d * kPagePositions);
      if constexpr (sizeof(T) == 2) {  // pages lie scattered, each stops the hardware's prefetcher: 2 to 4 times slower
        __builtin_prefetch(next_keys[u] + d * kPagePositions, 0, 2);
        __builtin_prefetch(keys[u] + values + d * kPagePositions, 0, 2);
      }
    }
    COUPLET_UNROLL
    for (int g = 0; g < N; ++g) {
      const f32x16 element = broadcast(q[g][d]);
      COUPLET_UNROLL
      for (int u = 0; u < P; ++u) s[g][u] = fma(element, k[u], s[g][u]);
    }
  }
  COUPLET_UNROLL
  for (int g = 0; g < N; ++g) {
    COUPLET_UNROLL
    for (int u = 0; u < P; ++u) {
      store(scores + g * kSpanPositions + u * kPagePositions, s[g][u] * broadcast(scale));
    }
  }
}

// Turns one query's scores into weights in place; what the query doesn't see gets +0.
void softmax(float* scores, Range visible, float* max_out, float* sum_out) {
  *max_out = mask_and_max(scores, visible);
  const f32x16 offset = broadcast(*max_out);
  f32x16 sum = zero();
  for (int i = visible.begin / kPagePositions * kPagePositions; i < visible.end; i += kPagePositions) {
    const f32x16 weight = exp_of_negative(load(scores + i) - offset);
    store(scores + i, weight);
    sum = sum + weight;
  }
  *sum_out = join_sum(sum);
}

// out[g, V vectors] goes on with weights[g, i] * values[i] for i in `range`, ascending.
template <int N, int V, class T>
void weigh_values(const float* weights, const T* const* pages, int padded, int first_dim, Range range, float* out) {
  f32x16 o[N][V];
  out += first_dim;
  COUPLET_UNROLL
  for (int g = 0; g < N; ++g) {
    COUPLET_UNROLL
    for (int u = 0; u < V; ++u) o[g][u] = load(out + g * padded + u * kLanes);
  }
  for (int i = range.begin; i < range.end;) {
    const int page_end = least((i / kPagePositions + 1) * kPagePositions, range.end);
    const T* values = pages[i / kPagePositions] + (kPagePositions + i % kPagePositions) * padded + first_dim;
    for (; i < page_end; ++i, values += padded) {
      f32x16 v[V];
      COUPLET_UNROLL
      for (int u = 0; u < V; ++u) v[u] = load(values + u * kLanes);
      COUPLET_UNROLL
      for (int g = 0; g < N; ++g) {
        const f32x16 w = broadcast(weights[g * kSpanPositions + i]);
        COUPLET_UNROLL
        for (int u = 0; u < V; ++u) o[g][u] = fma(w, v[u], o[g][u]);
      }
    }
  }
  COUPLET_UNROLL
  for (int g = 0; g < N; ++g) {
    COUPLET_UNROLL
    for (int u = 0; u < V; ++u) store(out + g * padded + u * kLanes, o[g][u]);
  }
}

template <int N, class T>
void weigh_all_values(const float* weights, const T* const* pages, int padded, Range range, float* out) {
  if (range.begin >= range.end) return;
  constexpr int V = step_of(N);
  int dim = 0;
  for (; dim + V * kLanes <= padded; dim += V * kLanes) {
    weigh_values<N, V>(weights, pages, padded, dim, range, out);
  }
  for (; dim < padded; dim += kLanes) weigh_values<N, 1>(weights, pages, padded, dim, range, out);
}

// Queries first_query .. first_query + N, each of which sees a position of the span.
template <int N, class T>
void attend_tile(const AttentionSpan& span, const T* const* pages, int first_query, const AttentionState& state,
                 const Scratch& scratch) {
  const int head_dim = span.head_dim, padded = padded16(head_dim);
  const float* queries[N];
  Range visible[N], any = {kSpanPositions, 0}, all = {0, kSpanPositions};
  for (int g = 0; g < N; ++g) {
    const int row = (first_query + g) / span.group, head = (first_query + g) % span.group;
    queries[g] = span.queries + static_cast<std::ptrdiff_t>(row) * span.query_stride + head * head_dim;
    visible[g] = visible_to(span, row);
    any = {least(any.begin, visible[g].begin), greatest(any.end, visible[g].end)};
    all = {greatest(all.begin, visible[g].begin), least(all.end, visible[g].end)};
  }
  if (all.begin >= all.end) all = {any.end, any.end};

  constexpr int P = step_of(N);
  const int end_page = (any.end + kPagePositions - 1) / kPagePositions;
  int page = any.begin / kPagePositions;
  for (; page + P <= end_page; page += P) {
    score_pages<N, P>(queries, head_dim, pages + page, end_page - page, span.scale, scratch.scores + page * kPagePositions);
  }
  for (; page < end_page; ++page) {
    score_pages<N, 1>(queries, head_dim, pages + page, end_page - page, span.scale, scratch.scores + page * kPagePositions);
  }
  for (int g = 0; g < N; ++g) {
    if (span.cap != 0.0f) cap_scores(scratch.scores + g * kSpanPositions, any.begin / kPagePositions, end_page, span.cap);
    softmax(scratch.scores + g * kSpanPositions, visible[g], state.max + first_query + g, state.sum + first_query + g);
  }

  // What all queries see is weighed together, what lies before and after it a query alone: another query's position is
  // never multiplied by a zero weight, it may hold anything.
  float* out = state.out + static_cast<std::ptrdiff_t>(first_query) * padded;
  for (int i = 0; i < N * padded; i += kLanes) store(out + i, zero());
  for (int g = 0; g < N; ++g) {
    const Range before = {visible[g].begin, least(visible[g].end, all.begin)};
    weigh_all_values<1>(scratch.scores + g * kSpanPositions, pages, padded, before, out + g * padded);
  }
  weigh_all_values<N>(scratch.scores, pages, padded, all, out);
  for (int g = 0; g < N; ++g) {
    const Range after = {greatest(visible[g].begin, all.end), visible[g].end};
    weigh_all_values<1>(scratch.scores + g * kSpanPositions, pages, padded, after, out + g * padded);
  }
  for (int i = 0; i < N * padded; i += kLanes) store(out + i, load(out + i) + zero());
}

template <class T>
void attend_queries(const AttentionSpan& span, const T* const* pages, Range queries, const AttentionState& state,
                    const Scratch& scratch) {
  using AttendTile = void (*)(const AttentionSpan&, const T* const*, int, const AttentionState&, const Scratch&);
  static constexpr AttendTile kTiles[] = {attend_tile<1, T>, attend_tile<2, T>, attend_tile<3, T>,
                                          attend_tile<4, T>, attend_tile<5, T>, attend_tile<6, T>};
  static_assert(sizeof kTiles / sizeof kTiles[0] == kTileQueries);
  const int count = queries.end - queries.begin, tiles = (count + kTileQueries - 1) / kTileQueries;
  for (int tile = 0; tile < tiles; ++tile) {  // of even sizes: 8 queries are 4 and 4
    const int first = queries.begin + count * tile / tiles, end = queries.begin + count * (tile + 1) / tiles;
    kTiles[end - first - 1](span, pages, first, state, scratch);
  }
}

}  // namespace

bool store_f16(const float* keys, const float* values, int stride, int num_positions, int head_dim, int first_slot,
               std::byte* bytes) {
  std::uint16_t* page = reinterpret_cast<std::uint16_t*>(bytes);
  const int padded = padded16(head_dim);
  const f32x16 limit = broadcast(65520.0f);  // from here on a float rounds to infinity
  unsigned fits = 0xffffu;
  for (int i = 0; i < num_positions; ++i, keys += stride, values += stride) {
    std::uint16_t* key_column = page + first_slot + i;
    std::uint16_t* value_row = page + (kPagePositions + first_slot + i) * padded;
    for (int d = 0; d < padded; d += kLanes) {
      const int n = least(head_dim - d, kLanes);
      const f32x16 key = load_first(keys + d, n), value = load_first(values + d, n);
      fits &= bits_of(less(magnitude(key), limit)) & bits_of(less(magnitude(value), limit));
      store(value_row + d, value);
      std::uint16_t halves[kLanes];
      store(halves, key);
      for (int lane = 0; lane < kLanes; ++lane) key_column[(d + lane) * kPagePositions] = halves[lane];
    }
  }
  return fits == 0xffffu;
}

void attend_decode_f16(const AttentionSpan& span, const AttentionState& state, std::byte* scratch) {
  const std::uint16_t* pages[kSpanPages];
  for (int page = 0; page < kSpanPages; ++page) pages[page] = halves(span, page);
  attend_queries(span, pages, queries_with_work(span, state), state, divide(scratch));
}

void attend_prefill_f16(const AttentionSpan& span, const AttentionState& state, std::byte* scratch) {
  const Range queries = queries_with_work(span, state);
  if (queries.end - queries.begin <= kTileQueries) {  // one tile: a wider copy would be read once
    attend_decode_f16(span, state, scratch);
    return;
  }
  const Scratch parts = divide(scratch);
  const std::size_t values = page_values(span.head_dim);
  const int first_page = visible_to(span, queries.begin / span.group).begin / kPagePositions;
  const int last_page = (visible_to(span, (queries.end - 1) / span.group).end - 1) / kPagePositions;
  const float* pages[kSpanPages] = {};
  for (int page = first_page; page <= last_page; ++page) {
    float* wide = parts.pages + static_cast<std::size_t>(page) * values;
    for (std::size_t i = 0; i < values; i += kLanes) store(wide + i, load(halves(span, page) + i));
    pages[page] = wide;
  }
  attend_queries(span, pages, queries, state, parts);
}

std::size_t f16_scratch_bytes(int head_dim) {
  return (kTileQueries * kSpanPositions + kSpanPages * page_values(head_dim)) * sizeof(float);
}

}  // namespace couplet::kernels::COUPLET_LEVEL
