#include <algorithm>

#include "base/check.h"
#include "model/ops.h"

// Attention. Keys and values of the running rows go into the cache first and are read back from there like all others,
// so a position's value never depends on the step that made it. Then prefill takes blocks of rows through all spans in
// order; decode, which has one row, gives each span to whoever is free and merges them in order afterwards.

namespace couplet::model {

using kernels::kPagePositions;
using kernels::kSpanPages;
using kernels::kSpanPositions;

namespace {

int first_visible(int position, int window) { return window == 0 ? 0 : std::max(0, position + 1 - window); }

}  // namespace

void Ops::attend(int layer, Vector sinks) {
  store_rows(layer);
  plan_attention(layer);
  threads_->parallel_for(static_cast<int>(items_.size()), [&](int index, int thread) {
    const AttendItem& item = items_[static_cast<std::size_t>(index)];
    if (item.span < 0)
      attend_block(layer, item, sinks, thread);
    else
      attend_partial(layer, item, thread);
  });
  // A merge is tiny: only many sequences are worth more than one thread.
  constexpr int kRangesAnItem = 8;
  const int num_ranges = static_cast<int>(ranges_.size());
  threads_->parallel_for((num_ranges + kRangesAnItem - 1) / kRangesAnItem, [&](int item, int thread) {
    const int first = item * kRangesAnItem;
    for (int i = first; i < std::min(first + kRangesAnItem, num_ranges); ++i)
      merge_partials(ranges_[static_cast<std::size_t>(i)], sinks, thread);
  });
}

void Ops::store_rows(int layer) {
  const int num_kv_heads = config_->num_kv_heads;
  const int num_pairs = static_cast<int>(batch_.sequences.size()) * num_kv_heads;
  const auto store = [&](int pair) {
    store_sequence(layer, batch_.sequences[static_cast<std::size_t>(pair / num_kv_heads)], pair % num_kv_heads);
  };
  if (num_rows_ < 16) {
    for (int pair = 0; pair < num_pairs; ++pair) store(pair);
  } else {
    threads_->parallel_for(num_pairs, [&](int pair, int) { store(pair); });
  }
}

void Ops::store_sequence(int layer, const SequenceRows& sequence, int kv_head) {
  const Activations& a = activations_;
  const std::size_t head = static_cast<std::size_t>(kv_head * config_->head_dim);
  for (int done = 0; done < sequence.num_rows;) {
    const int position = sequence.first_position + done, slot = position % kPagePositions;
    const int num = std::min(kPagePositions - slot, sequence.num_rows - done);
    const int row = sequence.first_row + done;
    std::byte* page =
        pool_->page(layer, sequence.pages->pages()[static_cast<std::size_t>(position / kPagePositions)], kv_head);
    COUPLET_ASSERT(a.k.stride == a.v.stride);
    const bool fits =
        attention_->store_page(a.k.row(row) + head, a.v.row(row) + head, a.k.stride, num, config_->head_dim, slot, page);
    // Which of the rows it was makes no difference to the sequence.
    if (!fits) note_fault(row, all_finite(row, head, num) ? RowFault::cache_range : RowFault::not_finite);
    done += num;
  }
}

bool Ops::all_finite(int first_row, std::size_t first_col, int num_rows) const {
  for (const Rows* rows : {&activations_.k, &activations_.v})
    for (int r = first_row; r < first_row + num_rows; ++r) {
      bool finite = true;
      kernels_->argmax(rows->row(r) + first_col, config_->head_dim, &finite);
      if (!finite) return false;
    }
  return true;
}

void Ops::count_attention(int layer, const SequenceRows& s, SequenceCounters& own) {
  const int begin = first_visible(s.first_position, window(layer)), end = s.first_position + s.num_rows;
  std::uint64_t num_seen = 0;  // positions, by all rows together
  for (int position = s.first_position; position < end; ++position)
    num_seen += static_cast<std::uint64_t>(position + 1 - first_visible(position, window(layer)));
  const std::uint64_t operations = 4 * static_cast<std::uint64_t>(config_->q_size()) * num_seen;
  const bool is_float = pool_->shape().format == cache::PageFormat::f16;
  const std::uint64_t bytes = position_bytes() * static_cast<std::uint64_t>(config_->num_kv_heads);
  const std::uint64_t read = bytes * static_cast<std::uint64_t>(end - begin);
  const std::uint64_t written = bytes * static_cast<std::uint64_t>(s.num_rows);
  own.attention_operations += operations;
  own.cache_read_bytes += read;
  own.cache_write_bytes += written;
  counters_.attention_operations += operations;
  if (is_float) {
    own.float_operations += operations;
    counters_.float_operations += operations;
  }
  counters_.cache_read_bytes += read;
  counters_.cache_write_bytes += written;
}

void Ops::plan_attention(int layer) {
  items_.clear();
  ranges_.clear();
  int num_partials = 0;
  for (std::size_t n = 0; n < batch_.sequences.size(); ++n) {
    const SequenceRows& s = batch_.sequences[n];
    const int begin = first_visible(s.first_position, window(layer));
    count_attention(layer, s, sequence_counters_[n]);
    for (int kv_head = 0; kv_head < config_->num_kv_heads; ++kv_head) {
      if (s.num_rows == 1) {
        const int first_span = begin / kSpanPositions, last_span = s.first_position / kSpanPositions;
        ranges_.push_back({&s, kv_head, num_partials, last_span - first_span + 1});
        for (int span = first_span; span <= last_span; ++span)
          items_.push_back({&s, kv_head, 0, 1, span, num_partials++});
        continue;
      }
      // Last rows first: they see most, and the short items even out the end.
      const int num_blocks = (s.num_rows + block_rows_ - 1) / block_rows_;
      for (int block = num_blocks - 1; block >= 0; --block) {
        const int first = block * block_rows_;
        items_.push_back({&s, kv_head, first, std::min(block_rows_, s.num_rows - first), -1, 0});
      }
    }
  }
  COUPLET_CHECK(static_cast<std::size_t>(num_partials) * partial_floats_ <= partials_.size());
}

void Ops::fill_pages(int layer, const SequenceRows& sequence, int kv_head, int span, const std::byte* pages[]) const {
  const std::span<const cache::PageId> table = sequence.pages->pages();
  for (int i = 0; i < kSpanPages; ++i) {
    const auto index = static_cast<std::size_t>(span * kSpanPages + i);
    pages[i] = index < table.size() && table[index] >= 0 ? pool_->page(layer, table[index], kv_head) : nullptr;
  }
}

kernels::AttentionSpan Ops::span_of(int layer, const AttendItem& item, int span) const {
  const int group = config_->num_heads / config_->num_kv_heads;
  kernels::AttentionSpan args;
  args.queries = activations_.q.row(item.sequence->first_row + item.first_row) + item.kv_head * group * config_->head_dim;
  args.query_stride = activations_.q.stride;
  args.num_rows = item.num_rows;
  args.group = group;
  args.head_dim = config_->head_dim;
  args.first_position = item.sequence->first_position + item.first_row;
  args.window = window(layer);
  args.scale = config_->attention_scale;
  args.cap = config_->attention_cap;
  args.span_begin = span * kSpanPositions;
  return args;
}

// A state of `queries` queries over memory: max, sum, then out.
kernels::AttentionState Ops::state(float* base, int queries) {
  return {base, base + queries, base + 2 * queries};
}

void Ops::merge_sinks(Vector sinks, const kernels::AttentionState& total, int group, float* memory) const {
  const kernels::AttentionState span = state(memory, group);
  std::copy_n(sinks, group, span.max);
  std::fill_n(span.sum, group, 1.0F);
  std::fill_n(span.out, group * head_stride_, 0.0F);
  kernels_->merge_spans(total, span, group, config_->head_dim);
}

void Ops::attend_block(int layer, const AttendItem& item, Vector sinks, int thread) {
  const int queries = item.num_rows * (config_->num_heads / config_->num_kv_heads);
  float* const base = block_states_ + 2 * state_floats_ * static_cast<std::size_t>(thread);
  const kernels::AttentionState total = state(base, queries), one = state(base + state_floats_, queries);
  std::fill_n(total.sum, queries, 0.0F);
  const int first_position = item.sequence->first_position + item.first_row;
  const int first_span = first_visible(first_position, window(layer)) / kSpanPositions;
  const int last_span = (first_position + item.num_rows - 1) / kSpanPositions;
  for (int span = first_span; span <= last_span; ++span) {
    const std::byte* pages[kSpanPages];
    fill_pages(layer, *item.sequence, item.kv_head, span, pages);
    kernels::AttentionSpan args = span_of(layer, item, span);
    args.pages = pages;
    attention_->attend_prefill(args, one, scratch(thread));
    kernels_->merge_spans(total, one, queries, config_->head_dim);
  }
  const int group = config_->num_heads / config_->num_kv_heads;
  for (int r = 0; r < item.num_rows; ++r) {
    const int q = r * group;
    float* const result = activations_.attended.row(item.sequence->first_row + item.first_row + r) +
                          item.kv_head * group * config_->head_dim;
    const kernels::AttentionState of_row = {total.max + q, total.sum + q, total.out + q * head_stride_};
    if (sinks != nullptr)
      merge_sinks(sinks + item.kv_head * group, of_row, group, reinterpret_cast<float*>(scratch(thread)));
    kernels_->finish_attention(of_row, group, config_->head_dim, result, config_->head_dim);
  }
}

void Ops::attend_partial(int layer, const AttendItem& item, int thread) {
  const int group = config_->num_heads / config_->num_kv_heads;
  const std::byte* pages[kSpanPages];
  fill_pages(layer, *item.sequence, item.kv_head, item.span, pages);
  kernels::AttentionSpan args = span_of(layer, item, item.span);
  args.pages = pages;
  // The next item is this thread's, too, but for the last of its share.
  const std::byte* ahead[kSpanPages];
  if (const AttendItem* next = &item + 1; next < items_.data() + items_.size() && next->span >= 0) {
    fill_pages(layer, *next->sequence, next->kv_head, next->span, ahead);
    args.ahead = ahead;
  }
  float* const base = partials_.data() + static_cast<std::size_t>(item.partial) * partial_floats_;
  attention_->attend_decode(args, state(base, group), scratch(thread));
}

void Ops::merge_partials(const PartialRange& range, Vector sinks, int thread) {
  const int group = config_->num_heads / config_->num_kv_heads;
  float* const base = partials_.data() + static_cast<std::size_t>(range.first_partial) * partial_floats_;
  const kernels::AttentionState total = state(base, group);
  for (int i = 1; i < range.num_partials; ++i)
    kernels_->merge_spans(total, state(base + static_cast<std::size_t>(i) * partial_floats_, group), group,
                          config_->head_dim);
  if (sinks != nullptr)
    merge_sinks(sinks + range.kv_head * group, total, group, reinterpret_cast<float*>(scratch(thread)));
  float* const result = activations_.attended.row(range.sequence->first_row) + range.kv_head * group * config_->head_dim;
  kernels_->finish_attention(total, group, config_->head_dim, result, config_->head_dim);
}

}  // namespace couplet::model
