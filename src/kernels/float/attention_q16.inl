// Attention over the cache's integer pages (rules 6, 7 and 10 of docs/numerics.md), against f32x16 and i32x16.
//
// Keys, queries, values and weights are integers whose sums over 32 dims or 256 positions fit 32 bits: exact, so in any
// order. Queries are taken in tiles which share every load of a key or value; prefill and decode run the same tiles.
// What a query doesn't see has weight 0, and an integer times 0 is 0 whatever the slot holds.

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

constexpr float kKeyLevels = 8191, kQueryLevels = 4095;      // 32 products fit 31 bits
constexpr float kValueLevels = 127, kWeightLevels = 32767;  // 256 products fit 31 bits

// code = rne(x * inverse), x = code * d. A maximum that is not finite gives code 0 and a d that is not finite either.
struct Scale {
  float d;
  float inverse;
};

COUPLET_INLINE Scale scale_of(int amax_bits, float levels) {
  if (amax_bits < kSmallestScaled) return {0, 0};
  float amax;
  __builtin_memcpy(&amax, &amax_bits, sizeof amax);
  return {amax / levels, amax_bits > kLargestFinite ? 0 : levels / amax};
}

// The codes of one plane of a vector; those of a maximum that is not finite are all 0.
COUPLET_INLINE i32x16 codes_of(f32x16 x, Scale scale) {
  return round(scale.inverse == 0 ? zero() : x * broadcast(scale.inverse));
}

struct IntegerScratch {
  float* scores;           // [tile, kSpanPositions]
  std::int16_t* weights;   // [tile, kSpanPositions]
  float* query_scales;     // [tile, blocks]
  std::int16_t* queries;   // [tile, blocks * 32]
};

constexpr std::size_t padded_dims(int head_dim) {
  return static_cast<std::size_t>(IntegerPage::num_blocks(head_dim)) * kKeyBlock;
}

IntegerScratch divide_integers(std::byte* scratch, int head_dim) {
  IntegerScratch parts;
  parts.scores = reinterpret_cast<float*>(scratch);
  parts.weights = reinterpret_cast<std::int16_t*>(parts.scores + kIntegerTileQueries * kSpanPositions);
  parts.query_scales = reinterpret_cast<float*>(parts.weights + kIntegerTileQueries * kSpanPositions);
  parts.queries = reinterpret_cast<std::int16_t*>(parts.query_scales + kIntegerTileQueries * padded_dims(head_dim) / kKeyBlock);
  return parts;
}

// Up to 32 dims -> codes, zeros after them, and their scale; false: not all are finite.
bool quantize_dims(const float* x, int num, float levels, std::int16_t codes[kKeyBlock], float* scale_out) {
  const f32x16 a = load_first(x, least(num, kLanes)), b = load_first(x + kLanes, least(num - kLanes, kLanes));
  const int amax = greatest_lane(greater(magnitude_bits(a), magnitude_bits(b)));
  const Scale scale = scale_of(amax, levels);
  store(codes, codes_of(a, scale));
  store(codes + kLanes, codes_of(b, scale));
  *scale_out = scale.d;
  return amax <= kLargestFinite;
}

// scores[g, page u, slot] = scale * sum over blocks of float(I) * key scale * query scale
template <int N, int P, bool kPrefetch>
void score_integer_pages(const IntegerScratch& scratch, const std::byte* const* pages, int pages_left, int head_dim,
                         int planes, float scale, float* scores) {
  const IntegerPage layout(head_dim, planes);
  const int num_blocks = IntegerPage::num_blocks(head_dim), stride = num_blocks * kKeyBlock;
  f32x16 s[N][P];
  COUPLET_UNROLL
  for (int g = 0; g < N; ++g) {
    COUPLET_UNROLL
    for (int u = 0; u < P; ++u) s[g][u] = zero();
  }
  for (std::ptrdiff_t block = 0; block < num_blocks; ++block) {
    const std::int16_t* keys[P];
    i32x16 sum[N][P];
    COUPLET_UNROLL
    for (int u = 0; u < P; ++u) {
      keys[u] = reinterpret_cast<const std::int16_t*>(pages[u] + layout.keys) + block * kKeyBlock * kPagePositions;
      COUPLET_UNROLL
      for (int g = 0; g < N; ++g) sum[g][u] = no_sum();
    }
    if constexpr (kPrefetch) {  // for a span that none before it fetched
      COUPLET_UNROLL
      for (int u = 0; u < P; ++u) {
        __builtin_prefetch(pages[least(P + u, pages_left - 1)] + block * 64, 0, 2);
        if (block == 0) __builtin_prefetch(pages[u] + layout.value_scales, 0, 2);
      }
    }
    const std::int16_t* queries = scratch.queries + block * kKeyBlock;
    for (std::ptrdiff_t pair = 0; pair < kKeyBlock / 2; ++pair) {
      i16x32 k[P];
      COUPLET_UNROLL
      for (int u = 0; u < P; ++u) {
        k[u] = load_pairs(keys[u] + pair * 2 * kPagePositions);
        if constexpr (kPrefetch) {
          const std::ptrdiff_t line = (block * (kKeyBlock / 2) + pair) * 64;
          __builtin_prefetch(pages[least(P + u, pages_left - 1)] + layout.keys + line, 0, 2);
          if (layout.values + line < layout.end) __builtin_prefetch(pages[u] + layout.values + line, 0, 2);
        }
      }
      COUPLET_UNROLL
      for (int g = 0; g < N; ++g) {
        const i16x32 q = broadcast_pair(queries + g * stride + 2 * pair);
        COUPLET_UNROLL
        for (int u = 0; u < P; ++u) sum[g][u] = dot_pairs(sum[g][u], k[u], q);
      }
    }
    COUPLET_UNROLL
    for (int u = 0; u < P; ++u) {
      const f32x16 dk = load(reinterpret_cast<const float*>(pages[u]) + block * kPagePositions);
      COUPLET_UNROLL
      for (int g = 0; g < N; ++g) {
        s[g][u] = fma(to_float(sum[g][u]) * dk, broadcast(scratch.query_scales[g * num_blocks + block]), s[g][u]);
      }
    }
  }
  COUPLET_UNROLL
  for (int g = 0; g < N; ++g) {
    COUPLET_UNROLL
    for (int u = 0; u < P; ++u) store(scores + g * kSpanPositions + u * kPagePositions, s[g][u] * broadcast(scale));
  }
}

// One query's scores -> integer weights times *weight_scale, each position's value scale within; what the query doesn't
// see of `pages` gets 0.
void integer_softmax(float* scores, const std::byte* const* pages, std::ptrdiff_t value_scales, Range visible, Range any,
                     float* max_out, float* sum_out, std::int16_t* weights, float* weight_scale) {
  *max_out = mask_and_max(scores, visible);
  const f32x16 offset = broadcast(*max_out);
  const int first_page = visible.begin / kPagePositions, last_page = (visible.end - 1) / kPagePositions;
  f32x16 sum = zero();
  i32x16 most = no_sum();
  for (int page = first_page; page <= last_page; ++page) {
    float* const at = scores + page * kPagePositions;
    const f32x16 weight = exp_of_negative(load(at) - offset);
    sum = sum + weight;
    f32x16 scaled = weight * load(reinterpret_cast<const float*>(pages[page] + value_scales));
    if (page == first_page || page == last_page) {  // an unseen slot's scale may be anything
      scaled = select(lanes_between(visible.begin - page * kPagePositions, visible.end - page * kPagePositions), scaled, zero());
    }
    most = greater(most, magnitude_bits(scaled));
    store(at, scaled);
  }
  *sum_out = join_sum(sum);
  const Scale scale = scale_of(greatest_lane(most), kWeightLevels);
  *weight_scale = scale.d;
  const int begin = any.begin / kPagePositions, end = (any.end + kPagePositions - 1) / kPagePositions;
  for (int page = begin; page < end; ++page) {
    const bool seen = page >= first_page && page <= last_page;
    store(weights + page * kPagePositions, seen ? codes_of(load(scores + page * kPagePositions), scale) : no_sum());
  }
}

// Pages lie scattered, and each stops the hardware's prefetcher: one of the next span's is asked for with each page that is
// weighed, or memory would rest meanwhile (decode at depth 2,048: attention a quarter slower).
void fetch_ahead(const AttentionSpan& span, std::ptrdiff_t page, std::ptrdiff_t page_bytes) {
  if (span.ahead == nullptr || span.ahead[page] == nullptr) return;
  for (std::ptrdiff_t line = 0; line < page_bytes; line += 64) __builtin_prefetch(span.ahead[page] + line, 0, 2);
}

// out[g, V vectors from first_dim on] = weight scale * the exact sum of weights[g, i] * values[i] over `any`'s pages
template <int N, int V, int kPlanes, bool kPrefetch>
void weigh_integers(const AttentionSpan& span, const std::int16_t* weights, const float* weight_scales,
                    const IntegerPage& layout, int padded, std::ptrdiff_t first_dim, Range any, float* out) {
  f32x16 hi[N][V];
  for (int plane = 0; plane < kPlanes; ++plane) {
    i32x16 sum[N][V];
    COUPLET_UNROLL
    for (int g = 0; g < N; ++g) {
      COUPLET_UNROLL
      for (int u = 0; u < V; ++u) sum[g][u] = no_sum();
    }
    const int end = (any.end + kPagePositions - 1) / kPagePositions;
    for (std::ptrdiff_t page = any.begin / kPagePositions; page < end; ++page) {
      if (kPrefetch && plane == 0 && first_dim == 0) fetch_ahead(span, page, layout.end);
      const std::byte* const start = span.pages[page] + (plane == 0 ? layout.values : layout.second_plane);
      const std::int8_t* values = reinterpret_cast<const std::int8_t*>(start) + 2 * first_dim;
      for (std::ptrdiff_t pair = 0; pair < kPagePositions / 2; ++pair, values += 2 * padded) {
        i16x32 v[V];
        COUPLET_UNROLL
        for (int u = 0; u < V; ++u) v[u] = load_pairs(values + u * 2 * kLanes);
        COUPLET_UNROLL
        for (int g = 0; g < N; ++g) {
          const i16x32 w = broadcast_pair(weights + g * kSpanPositions + page * kPagePositions + 2 * pair);
          COUPLET_UNROLL
          for (int u = 0; u < V; ++u) sum[g][u] = dot_pairs(sum[g][u], v[u], w);
        }
      }
    }
    COUPLET_UNROLL
    for (int g = 0; g < N; ++g) {
      COUPLET_UNROLL
      for (int u = 0; u < V; ++u) {
        f32x16 f = to_float(sum[g][u]);
        if (kPlanes == 2 && plane == 0) {
          hi[g][u] = f;
          continue;
        }
        if constexpr (kPlanes == 2) f = fma(broadcast(254.0f), hi[g][u], f);
        store(out + g * padded + first_dim + u * kLanes, f * broadcast(weight_scales[g]));
      }
    }
  }
}

constexpr int integer_step(int queries) { return greatest(1, least(4, kAccumulators / queries)); }

// Queries first_query .. first_query + N, each of which sees a position of the span.
template <int N, int kPlanes, bool kPrefetch>
void attend_integer_tile(const AttentionSpan& span, int first_query, const AttentionState& state,
                         const IntegerScratch& scratch) {
  const int head_dim = span.head_dim, padded = padded16(head_dim), num_blocks = IntegerPage::num_blocks(head_dim);
  const IntegerPage layout(head_dim, kPlanes);
  Range visible[N], any = {kSpanPositions, 0};
  for (int g = 0; g < N; ++g) {
    const int row = (first_query + g) / span.group, head = (first_query + g) % span.group;
    const float* query = span.queries + static_cast<std::ptrdiff_t>(row) * span.query_stride + head * head_dim;
    for (int block = g * num_blocks, left = head_dim; left > 0; left -= kKeyBlock, query += kKeyBlock, ++block) {
      quantize_dims(query, left, kQueryLevels, scratch.queries + block * kKeyBlock, scratch.query_scales + block);
    }
    visible[g] = visible_to(span, row);
    any = {least(any.begin, visible[g].begin), greatest(any.end, visible[g].end)};
  }

  constexpr int P = greatest(1, least(4, kAccumulators / 2 / N));  // a sum and a score each
  const int end_page = (any.end + kPagePositions - 1) / kPagePositions;
  int page = any.begin / kPagePositions;
  for (; page + P <= end_page; page += P) {
    score_integer_pages<N, P, kPrefetch>(scratch, span.pages + page, end_page - page, head_dim, kPlanes, span.scale,
                                         scratch.scores + page * kPagePositions);
  }
  for (; page < end_page; ++page) {
    score_integer_pages<N, 1, kPrefetch>(scratch, span.pages + page, end_page - page, head_dim, kPlanes, span.scale,
                                         scratch.scores + page * kPagePositions);
  }
  float weight_scales[N];
  for (int g = 0; g < N; ++g) {
    if (span.cap != 0.0f) cap_scores(scratch.scores + g * kSpanPositions, any.begin / kPagePositions, end_page, span.cap);
    integer_softmax(scratch.scores + g * kSpanPositions, span.pages, layout.value_scales, visible[g], any,
                    state.max + first_query + g, state.sum + first_query + g, scratch.weights + g * kSpanPositions,
                    weight_scales + g);
  }
  float* const out = state.out + static_cast<std::ptrdiff_t>(first_query) * padded;
  constexpr int V = integer_step(N);
  int dim = 0;
  for (; dim + V * kLanes <= padded; dim += V * kLanes) {
    weigh_integers<N, V, kPlanes, kPrefetch>(span, scratch.weights, weight_scales, layout, padded, dim, any, out);
  }
  for (; dim < padded; dim += kLanes) {
    weigh_integers<N, 1, kPlanes, kPrefetch>(span, scratch.weights, weight_scales, layout, padded, dim, any, out);
  }
}

// `num` queries, at most N.
template <int N, int kPlanes, bool kPrefetch>
void attend_integer_queries(const AttentionSpan& span, int first_query, int num, const AttentionState& state,
                            const IntegerScratch& scratch) {
  if constexpr (N > 1) {
    if (num < N) return attend_integer_queries<N - 1, kPlanes, kPrefetch>(span, first_query, num, state, scratch);
  }
  attend_integer_tile<N, kPlanes, kPrefetch>(span, first_query, state, scratch);
}

template <int kPlanes, bool kPrefetch>
void attend_integers(const AttentionSpan& span, const AttentionState& state, std::byte* scratch) {
  constexpr int kMost = kIntegerTileQueries;
  const Range queries = queries_with_work(span, state);
  const IntegerScratch parts = divide_integers(scratch, span.head_dim);
  const int count = queries.end - queries.begin, tiles = (count + kMost - 1) / kMost;
  for (int tile = 0; tile < tiles; ++tile) {  // of even sizes: 8 queries are 4 and 4
    const int first = queries.begin + count * tile / tiles, end = queries.begin + count * (tile + 1) / tiles;
    attend_integer_queries<kMost, kPlanes, kPrefetch>(span, first, end - first, state, parts);
  }
}

// One position's keys into its slot of a page.
bool store_keys(const float* keys, int head_dim, int slot, std::byte* page) {
  const IntegerPage layout(head_dim, 1);
  bool finite = true;
  for (int d = 0, block = 0; d < head_dim; d += kKeyBlock, ++block) {
    std::int16_t codes[kKeyBlock];
    float* const scale = reinterpret_cast<float*>(page) + block * kPagePositions + slot;
    finite &= quantize_dims(keys + d, head_dim - d, kKeyLevels, codes, scale);
    std::byte* const column = page + layout.keys + (d / 2 * kPagePositions + slot) * 4;
    for (int pair = 0; pair < kKeyBlock / 2; ++pair) {
      __builtin_memcpy(column + pair * kPagePositions * 4, codes + 2 * pair, 4);
    }
  }
  return finite;
}

// 16 codes of one plane into every second byte.
COUPLET_INLINE void store_column(i32x16 codes, std::byte* column) {
  std::int8_t bytes[kLanes];
  store(bytes, codes);
  for (int lane = 0; lane < kLanes; ++lane) column[2 * lane] = static_cast<std::byte>(bytes[lane]);
}

// One position's values, which share a scale.
template <int kPlanes>
bool store_values(const float* values, int head_dim, int slot, std::byte* page) {
  const IntegerPage layout(head_dim, kPlanes);
  i32x16 most = no_sum();
  for (int d = 0; d < head_dim; d += kLanes) {
    most = greater(most, magnitude_bits(load_first(values + d, least(head_dim - d, kLanes))));
  }
  const int amax = greatest_lane(most);
  const Scale scale = scale_of(amax, kValueLevels);
  const Scale fine = {scale.d / 254.0f, scale.inverse == 0 ? 0 : 254.0f / scale.d};
  const std::ptrdiff_t column = slot / 2 * 2 * padded16(head_dim) + slot % 2;
  for (int d = 0; d < head_dim; d += kLanes) {
    const f32x16 value = load_first(values + d, least(head_dim - d, kLanes));
    const i32x16 codes = codes_of(value, scale);
    store_column(codes, page + layout.values + column + 2 * d);
    if constexpr (kPlanes == 2) {
      const f32x16 rest = fnma(to_float(codes), broadcast(scale.d), value);
      store_column(codes_of(rest, fine), page + layout.second_plane + column + 2 * d);
    }
  }
  reinterpret_cast<float*>(page + layout.value_scales)[slot] = kPlanes == 2 ? fine.d : scale.d;
  return amax <= kLargestFinite;
}

template <int kPlanes>
bool store_integers(const float* keys, const float* values, int stride, int num_positions, int head_dim, int first_slot,
                    std::byte* page) {
  bool finite = true;
  for (int i = 0; i < num_positions; ++i, keys += stride, values += stride) {
    finite &= store_keys(keys, head_dim, first_slot + i, page);
    finite &= store_values<kPlanes>(values, head_dim, first_slot + i, page);
  }
  return finite;
}

}  // namespace

bool store_q16(const float* keys, const float* values, int stride, int num_positions, int head_dim, int first_slot,
               std::byte* page) {
  return store_integers<1>(keys, values, stride, num_positions, head_dim, first_slot, page);
}
void attend_prefill_q16(const AttentionSpan& span, const AttentionState& state, std::byte* scratch) {
  attend_integers<1, false>(span, state, scratch);
}
void attend_decode_q16(const AttentionSpan& span, const AttentionState& state, std::byte* scratch) {
  attend_integers<1, true>(span, state, scratch);
}

bool store_q16_fine(const float* keys, const float* values, int stride, int num_positions, int head_dim, int first_slot,
                    std::byte* page) {
  return store_integers<2>(keys, values, stride, num_positions, head_dim, first_slot, page);
}
void attend_prefill_q16_fine(const AttentionSpan& span, const AttentionState& state, std::byte* scratch) {
  attend_integers<2, false>(span, state, scratch);
}
void attend_decode_q16_fine(const AttentionSpan& span, const AttentionState& state, std::byte* scratch) {
  attend_integers<2, true>(span, state, scratch);
}

std::size_t q16_scratch_bytes(int head_dim) {
  const std::size_t dims = padded_dims(head_dim);
  return (kIntegerTileQueries * (kSpanPositions * 6 + dims * 2 + dims / 8) + 63) / 64 * 64;
}

}  // namespace couplet::kernels::COUPLET_LEVEL
