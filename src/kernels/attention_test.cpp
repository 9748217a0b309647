// Attention: every level gives the reference's bits, whatever a query can't see may hold anything, prefill and decode
// are the same function, and the reference is a softmax (against double, with a stated bound).

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/kernel_testing.h"
#include "kernels/page_layout.h"
#include "kernels/reference/half.h"

namespace couplet::kernels {
namespace {

using testing::Aligned;
using testing::all_levels;
using testing::Random;
using testing::reference_level;
using testing::same_bits;

constexpr PageFormat kFormats[] = {PageFormat::f16, PageFormat::q16, PageFormat::q16_fine};
const char* name(PageFormat format) {
  return format == PageFormat::f16 ? "f16" : format == PageFormat::q16 ? "q16" : "q16_fine";
}

// What a page says that a key is.
double key_at(PageFormat format, const std::byte* page, int head_dim, int dim, int slot) {
  if (format == PageFormat::f16) return reference::half_to_float(reinterpret_cast<const std::uint16_t*>(page)[dim * 16 + slot]);
  const auto* codes = reinterpret_cast<const std::int16_t*>(page + IntegerPage(head_dim, 1).keys);
  return codes[(dim / 2 * 16 + slot) * 2 + dim % 2] * static_cast<double>(reinterpret_cast<const float*>(page)[dim / 32 * 16 + slot]);
}

// What a page says that a value is.
double value_at(PageFormat format, const std::byte* page, int head_dim, int dim, int slot) {
  const int padded = padded16(head_dim);
  if (format == PageFormat::f16)
    return reference::half_to_float(reinterpret_cast<const std::uint16_t*>(page)[(16 + slot) * padded + dim]);
  const IntegerPage layout(head_dim, 2);
  const std::ptrdiff_t at = slot / 2 * 2 * padded + 2 * dim + slot % 2;
  const double hi = static_cast<std::int8_t>(page[layout.values + at]);
  const double scale = reinterpret_cast<const float*>(page + layout.value_scales)[slot];
  if (format == PageFormat::q16) return hi * scale;
  return (254 * hi + static_cast<std::int8_t>(page[layout.second_plane + at])) * scale;
}

// Keys and values of a sequence in pages, queries for its last rows.
struct Sequence {
  PageFormat format;
  int head_dim, group, first_position, num_rows, window;
  float cap = 0;
  std::vector<float> queries;
  std::vector<Aligned<std::byte>> pages;

  Sequence(Random& random, PageFormat format_, int head_dim_, int group_, int first_position_, int num_rows_, int window_, bool extreme)
      : format(format_), head_dim(head_dim_), group(group_), first_position(first_position_), num_rows(num_rows_), window(window_) {
    const auto dims = static_cast<std::size_t>(head_dim);
    queries = random.floats(dims * static_cast<std::size_t>(group * num_rows), -2, 2);
    if (extreme) {
      constexpr float kSpecials[] = {0.0f, -0.0f, 1e-45f, -1e-45f, 1e30f, -1e30f, 3e-38f};
      for (std::size_t i = 0; i < queries.size(); i += 5) queries[i] = kSpecials[random.below(7)];
    }
    const int positions = first_position + num_rows;
    for (int page = 0; page * kPagePositions < positions; ++page) pages.emplace_back(page_bytes(format, head_dim));
    for (int p = 0; p < positions; ++p) {
      if (p + window <= first_position && window > 0) continue;  // left the window of every row: stays NaN
      auto keys = random.floats(dims), values = random.floats(dims);
      if (extreme) {
        constexpr float kSpecials[] = {0.0f, -0.0f, 6e-8f, -6e-8f, 65504.0f, -65504.0f};
        for (std::size_t i = 0; i < dims; i += 3) {
          keys[i] = kSpecials[random.below(6)];
          values[i] = kSpecials[random.below(6)];
        }
      }
      store(p, keys, values);
    }
  }

  const AttentionKernels& kernels(const KernelTable& level) const { return level.attention[static_cast<std::size_t>(format)]; }
  bool store(int position, const std::vector<float>& keys, const std::vector<float>& values) {
    return kernels(reference_level()).store_page(keys.data(), values.data(), head_dim, 1, head_dim, position % kPagePositions,
                                                 pages[static_cast<std::size_t>(position / kPagePositions)].data());
  }
  int num_queries() const { return num_rows * group; }
  int num_spans() const { return (first_position + num_rows + kSpanPositions - 1) / kSpanPositions; }

  // Rows first_row .. first_row + rows of span `index`; pages that none of them sees are null.
  AttentionSpan span(int index, int first_row, int rows, const std::byte* table[kSpanPages]) const {
    AttentionSpan s;
    s.query_stride = group * head_dim;
    s.queries = queries.data() + static_cast<std::ptrdiff_t>(first_row) * s.query_stride;
    s.num_rows = rows;
    s.group = group;
    s.head_dim = head_dim;
    s.first_position = first_position + first_row;
    s.window = window;
    s.scale = 1 / std::sqrt(static_cast<float>(head_dim));
    s.cap = cap;
    s.span_begin = index * kSpanPositions;
    const int begin = window > 0 ? std::max(0, s.first_position + 1 - window) : 0, end = s.first_position + rows;
    for (int i = 0; i < kSpanPages; ++i) {
      const int page = index * kSpanPages + i, page_begin = page * kPagePositions;
      const bool seen = page_begin < end && page_begin + kPagePositions > begin;
      table[i] = seen ? pages[static_cast<std::size_t>(page)].data() : nullptr;
    }
    s.pages = table;
    return s;
  }
};

enum class Stage { prefill, decode };

struct State {
  std::vector<float> max, sum, out;
  State(int queries, int head_dim)
      : max(static_cast<std::size_t>(queries), 9),
        sum(static_cast<std::size_t>(queries), 0),
        out(static_cast<std::size_t>(queries * padded16(head_dim)), 9) {}
  AttentionState view(int first_query = 0) {
    const auto stride = static_cast<std::ptrdiff_t>(out.size() / max.size());
    return {max.data() + first_query, sum.data() + first_query, out.data() + first_query * stride};
  }
};

Aligned<std::byte> scratch_for(const KernelTable& level, const Sequence& sequence) {
  return Aligned<std::byte>(level.scratch_bytes(0, sequence.head_dim));
}

State one_span(const KernelTable& level, Stage stage, const Sequence& sequence, int index, int first_row, int rows) {
  const std::byte* table[kSpanPages];
  State state(rows * sequence.group, sequence.head_dim);
  auto scratch = scratch_for(level, sequence);
  const AttentionKernels& kernels = sequence.kernels(level);
  const auto attend = stage == Stage::prefill ? kernels.attend_prefill : kernels.attend_decode;
  attend(sequence.span(index, first_row, rows, table), state.view(), scratch.data());
  return state;
}

// The whole computation: rows cut at `cuts`, spans merged in order, divided.
std::vector<float> attend_all(const KernelTable& level, const Sequence& sequence, const std::vector<int>& cuts) {
  const int width = sequence.group * sequence.head_dim;
  std::vector<float> result(static_cast<std::size_t>(sequence.num_rows * width), 9);
  int first_row = 0;
  for (const int end_row : cuts) {
    const int rows = end_row - first_row, queries = rows * sequence.group;
    State state(queries, sequence.head_dim);
    for (int index = 0; index < sequence.num_spans(); ++index) {
      State span = one_span(level, rows == 1 ? Stage::decode : Stage::prefill, sequence, index, first_row, rows);
      level.merge_spans(state.view(), span.view(), queries, sequence.head_dim);
    }
    level.finish_attention(state.view(), queries, sequence.head_dim,
                           result.data() + static_cast<std::ptrdiff_t>(first_row) * width, sequence.head_dim);
    first_row = end_row;
  }
  return result;
}

void expect_same(const State& got, const State& expected, const std::string& what) {
  EXPECT_TRUE(same_bits(got.max.data(), expected.max.data(), got.max.size())) << what << " max";
  EXPECT_TRUE(same_bits(got.sum.data(), expected.sum.data(), got.sum.size())) << what << " sum";
  EXPECT_TRUE(same_bits(got.out.data(), expected.out.data(), got.out.size())) << what << " out";
}

constexpr int kRowCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 33};
constexpr int kWindows[] = {0, 1, 24, 512};
// First positions that put the rows at a span's start, in its middle, across its end and a page's, and far on.
constexpr int kFirstPositions[] = {0, 7, 100, 240, 250, 255, 256, 300, 511, 770};

class AttentionShapes : public ::testing::TestWithParam<std::tuple<PageFormat, int>> {};  // format, head_dim

TEST_P(AttentionShapes, EveryLevelHasTheReferencesBits) {
  const auto [format, head_dim] = GetParam();
  Random random(static_cast<std::uint64_t>(head_dim));
  int turn = head_dim;  // walks through windows and positions, so that every pair of them occurs
  for (const int group : {1, 2, 3, 4, 5, 8}) {
    for (const int rows : kRowCounts) {
      for (int round = 0; round < 4; ++round, ++turn) {
        const int window = kWindows[turn % 4], first = kFirstPositions[random.below(10)];
        Sequence sequence(random, format, head_dim, group, first, rows, window, turn % 3 == 0);
        sequence.cap = turn % 5 < 2 ? 0.5f : 0.0f;
        const int index = random.below(sequence.num_spans());
        const std::string what = " group " + std::to_string(group) + " rows " + std::to_string(rows) + " window " +
                                 std::to_string(window) + " first " + std::to_string(first) + " span " +
                                 std::to_string(index);
        const State expected =
            one_span(reference_level(), Stage::prefill, sequence, index, 0, rows);
        for (const KernelTable* level : all_levels()) {
          expect_same(one_span(*level, Stage::prefill, sequence, index, 0, rows), expected, level->name + what);
          if (rows > 1) continue;
          expect_same(one_span(*level, Stage::decode, sequence, index, 0, 1), expected,
                      level->name + what + " decode");
        }
      }
    }
  }
}

TEST_P(AttentionShapes, PrefillIsDecodeRowByRow) {
  const auto [format, head_dim] = GetParam();
  Random random(static_cast<std::uint64_t>(head_dim) + 1000);
  for (const KernelTable* level : all_levels()) {
    for (const int window : kWindows) {
      const int group = 1 + random.below(4), rows = 20, padded = padded16(head_dim);
      Sequence sequence(random, format, head_dim, group, 245, rows, window, false);
      sequence.cap = window == 24 ? 0.5f : 0.0f;
      for (int index = 0; index < sequence.num_spans(); ++index) {
        const State together = one_span(*level, Stage::prefill, sequence, index, 0, rows);
        for (int row = 0; row < rows; ++row) {
          const State alone = one_span(*level, Stage::decode, sequence, index, row, 1);
          for (int head = 0; head < group; ++head) {
            const auto query = static_cast<std::size_t>(row * group + head), here = static_cast<std::size_t>(head);
            EXPECT_TRUE(same_bits(&alone.max[here], &together.max[query], 1)) << level->name << " row " << row;
            EXPECT_TRUE(same_bits(&alone.sum[here], &together.sum[query], 1)) << level->name << " row " << row;
            const auto width = static_cast<std::size_t>(padded);
            EXPECT_TRUE(same_bits(&alone.out[here * width], &together.out[query * width], width))
                << level->name << " window " << window << " row " << row;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HeadDims, AttentionShapes,
                         ::testing::Combine(::testing::ValuesIn(kFormats), ::testing::Values(16, 40, 64, 80, 96, 128, 256)),
                         [](const auto& info) {
                           return std::string(name(std::get<0>(info.param))) + "_" + std::to_string(std::get<1>(info.param));
                         });

class AttentionFormats : public ::testing::TestWithParam<PageFormat> {};
INSTANTIATE_TEST_SUITE_P(Formats, AttentionFormats, ::testing::ValuesIn(kFormats), [](const auto& info) { return name(info.param); });

TEST_P(AttentionFormats, AnyCutOfTheRowsGivesTheSameBits) {
  const PageFormat format = GetParam();
  Random random(11);
  for (const int window : kWindows) {
    for (const int head_dim : {40, 64}) {
      const Sequence sequence(random, format, head_dim, 3, 500, 40, window, false);
      std::vector<int> single;
      for (int row = 1; row <= 40; ++row) single.push_back(row);
      const std::vector<float> expected = attend_all(reference_level(), sequence, {40});
      for (const KernelTable* level : all_levels()) {
        for (const auto& cuts : {std::vector<int>{40}, {12, 40}, {1, 2, 13, 30, 39, 40}, single}) {
          const std::vector<float> got = attend_all(*level, sequence, cuts);
          EXPECT_TRUE(same_bits(got.data(), expected.data(), got.size()))
              << level->name << " window " << window << ", " << cuts.size() << " cuts";
        }
      }
    }
  }
}

// Scores that round to zeros of both signs: max(a, b) is b then, so its order in lanes and tree decides the sign.
// Integers have no zero of negative sign: f16 alone.
TEST(Attention, ZerosOfBothSignsAreJoinedInTheReferencesOrder) {
  Random random(17);
  for (int round = 0; round < 40; ++round) {
    Sequence sequence(random, PageFormat::f16, 16, 1, random.below(256), 1, 0, false);
    std::fill(sequence.queries.begin(), sequence.queries.end(), 0.0f);
    sequence.queries[0] = 1e-45f;
    for (int p = 0; p <= sequence.first_position; ++p) {
      sequence.store(p, std::vector<float>(16, random.below(2) ? 1.0f : -1.0f), std::vector<float>(16, 1.0f));
    }
    const State expected = one_span(reference_level(), Stage::decode, sequence, 0, 0, 1);
    EXPECT_EQ(expected.max[0], 0);
    for (const KernelTable* level : all_levels()) {
      expect_same(one_span(*level, Stage::decode, sequence, 0, 0, 1), expected, level->name);
    }
  }
}

// A draft row may hold what doesn't fit the cache; the rows before it must not notice.
TEST_P(AttentionFormats, LaterRowsGarbageTouchesNoEarlierRow) {
  Random random(12);
  for (const KernelTable* level : all_levels()) {
    for (const int group : {1, 2, 3}) {
      for (const float garbage : {INFINITY, -INFINITY, NAN}) {
        Sequence sequence(random, GetParam(), 64, group, 37, 9, 0, false);
        const State clean = one_span(*level, Stage::prefill, sequence, 0, 0, 9);
        const int last = 37 + 8;
        EXPECT_FALSE(sequence.store(last, std::vector<float>(64, garbage), std::vector<float>(64, garbage)));
        const State spoilt = one_span(*level, Stage::prefill, sequence, 0, 0, 9);
        const auto earlier = static_cast<std::size_t>(8 * group);
        EXPECT_TRUE(same_bits(spoilt.sum.data(), clean.sum.data(), earlier)) << level->name;
        EXPECT_TRUE(same_bits(spoilt.out.data(), clean.out.data(), earlier * 64)) << level->name;
        EXPECT_FALSE(std::isfinite(spoilt.out[earlier * 64])) << level->name;
      }
    }
  }
}

// A query that is not finite gives no finite output, so that the next quantization finds it.
TEST_P(AttentionFormats, AQueryThatIsNotFiniteShows) {
  Random random(16);
  for (const KernelTable* level : all_levels()) {
    for (const float bad : {INFINITY, -INFINITY, NAN}) {
      Sequence sequence(random, GetParam(), 64, 2, 20, 3, 0, false);
      sequence.queries[2 * 64 + 7] = bad;  // row 1, head 0
      const State state = one_span(*level, Stage::prefill, sequence, 0, 0, 3);
      for (std::size_t query = 0; query < 6; ++query) {
        const float result = state.out[query * 64] / state.sum[query];
        EXPECT_EQ(std::isfinite(result), query != 2) << level->name << " " << bad << " query " << query;
      }
    }
  }
}

TEST_P(AttentionFormats, AQueryThatSeesNothingHasSumZero) {
  Random random(13);
  for (const KernelTable* level : all_levels()) {
    const Sequence sequence(random, GetParam(), 40, 2, 250, 12, 3, false);  // rows 250 .. 261, three positions each
    const State first = one_span(*level, Stage::prefill, sequence, 0, 0, 12);
    const State second = one_span(*level, Stage::prefill, sequence, 1, 0, 12);
    for (int query = 0; query < 24; ++query) {
      const int position = 250 + query / 2;
      EXPECT_EQ(first.sum[static_cast<std::size_t>(query)] > 0, position - 2 < 256) << level->name << position;
      EXPECT_EQ(second.sum[static_cast<std::size_t>(query)] > 0, position >= 256) << level->name << position;
    }
  }
}

// Scores of a few units, values up to 1. f16: each score, weight and output is off by a few 2^-24 of its magnitude. q16:
// queries are off by up to 1/8190 of their greatest, weights by 1/65534 of theirs.
TEST_P(AttentionFormats, IsASoftmaxInDouble) {
  const PageFormat format = GetParam();
  Random random(14);
  double worst = 0;
  for (const int head_dim : {40, 64, 128}) {
    for (const int window : {0, 24}) {
      Sequence sequence(random, format, head_dim, 2, 590, 6, window, false);
      sequence.cap = window == 24 ? 0.7f : 0.0f;
      const std::vector<float> result = attend_all(reference_level(), sequence, {6});
      for (int query = 0; query < 12; ++query) {
        const int position = 590 + query / 2, begin = window > 0 ? position + 1 - window : 0;
        std::vector<double> out(static_cast<std::size_t>(head_dim), 0.0);
        double total = 0;
        for (int p = begin; p <= position; ++p) {
          const std::byte* page = sequence.pages[static_cast<std::size_t>(p / 16)].data();
          double score = 0;
          for (int d = 0; d < head_dim; ++d) {
            score += static_cast<double>(sequence.queries[static_cast<std::size_t>(query * head_dim + d)]) *
                     key_at(format, page, head_dim, d, p % 16);
          }
          score /= std::sqrt(head_dim);
          if (window == 24) score = 0.7 * std::tanh(score / 0.7);
          const double weight = std::exp(score);
          total += weight;
          for (int d = 0; d < head_dim; ++d) {
            out[static_cast<std::size_t>(d)] += weight * value_at(format, page, head_dim, d, p % 16);
          }
        }
        for (int d = 0; d < head_dim; ++d) {
          const double exact = out[static_cast<std::size_t>(d)] / total;
          worst = std::max(worst, std::abs(result[static_cast<std::size_t>(query * head_dim + d)] - exact));
        }
      }
    }
  }
  EXPECT_LT(worst, format == PageFormat::f16 ? 3e-7 : 1e-4);  // seen: 1.2e-7
  EXPECT_GT(worst, 0);
}

TEST(Attention, MergeIsTheSameAtEveryLevel) {
  Random random(15);
  for (const int head_dim : {16, 40, 64, 256}) {
    const int queries = 11;
    State state(queries, head_dim), span(queries, head_dim);
    for (State* s : {&state, &span}) {
      s->max = random.floats(s->max.size(), -60, 60);
      s->sum = random.floats(s->sum.size(), 1, 200);
      s->out = random.floats(s->out.size(), -100, 100);
    }
    state.sum[2] = 0;  // takes the span's
    span.sum[3] = 0;   // keeps its own
    state.sum[4] = span.sum[4] = 0;
    state.max[5] = 200;  // exp(-87) and less: the span vanishes
    span.max[6] = 200;
    state.max[7] = span.max[7];
    State expected = state;
    reference_level().merge_spans(expected.view(), span.view(), queries, head_dim);
    EXPECT_EQ(expected.sum[2], span.sum[2]);
    EXPECT_EQ(expected.max[2], span.max[2]);
    EXPECT_EQ(expected.sum[3], state.sum[3]);
    EXPECT_EQ(expected.sum[5], state.sum[5]);
    EXPECT_EQ(expected.sum[7], state.sum[7] + span.sum[7]);
    for (const KernelTable* level : all_levels()) {
      State got = state;
      level->merge_spans(got.view(), span.view(), queries, head_dim);
      expect_same(got, expected, level->name);
    }
  }
}

TEST(Attention, FinishDividesAndLeavesTheStridesGaps) {
  Random random(16);
  for (const int head_dim : {16, 40, 96}) {
    const int queries = 5, stride = head_dim + 3, padded = padded16(head_dim);
    State state(queries, head_dim);
    state.sum = random.floats(state.sum.size(), 1, 9);
    state.out = random.floats(state.out.size());
    std::vector<float> expected(static_cast<std::size_t>(queries * stride), 4);
    for (int query = 0; query < queries; ++query) {
      for (int d = 0; d < head_dim; ++d) {
        expected[static_cast<std::size_t>(query * stride + d)] =
            state.out[static_cast<std::size_t>(query * padded + d)] / state.sum[static_cast<std::size_t>(query)];
      }
    }
    for (const KernelTable* level : all_levels()) {
      std::vector<float> got(expected.size(), 4);
      level->finish_attention(state.view(), queries, head_dim, got.data(), stride);
      EXPECT_TRUE(same_bits(got.data(), expected.data(), got.size())) << level->name;
    }
  }
}

}  // namespace
}  // namespace couplet::kernels
