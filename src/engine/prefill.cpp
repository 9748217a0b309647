#include "engine/prefill.h"

#include <algorithm>

namespace couplet::engine {
namespace {

constexpr int kPage = kernels::kPagePositions;

std::span<const TokenId> page_tokens(const Sequence& sequence, int page) {
  return std::span(sequence.tokens).subspan(static_cast<std::size_t>(page) * kPage, kPage);
}

// Whether the tree could have the next page and another token would be left to run.
bool may_step(const Sequence& sequence) { return (sequence.place.num_pages() + 1) * kPage < sequence.num_tokens(); }

}  // namespace

void begin_prefill(Sequence& sequence, cache::PrefixTree& tree) {
  sequence.num_computed = 0;
  sequence.place = cache::PrefixTree::root(sequence.request.cache_salt);
  catch_up(sequence, tree);
  tree.touch(sequence.place);
}

void catch_up(Sequence& sequence, cache::PrefixTree& tree) {
  while (sequence.uses_tree() && may_step(sequence)) {
    const int page = sequence.place.num_pages();
    const cache::PageId known = tree.step(sequence.place, page_tokens(sequence, page));
    if (known < 0) return;
    sequence.pages.adopt(known);
    sequence.num_computed = (page + 1) * kPage;
  }
}

void note_cached(Sequence& sequence) {
  const int cached = std::min(sequence.num_computed, sequence.num_prompt()) - sequence.num_reached;
  sequence.num_cached += std::max(cached, 0);
  sequence.num_reached = std::max(sequence.num_reached, sequence.num_computed);
}

bool share_next_page(const Sequence& a, const Sequence& b) {
  return a.uses_tree() && b.uses_tree() && a.place == b.place && may_step(a) &&
         b.num_tokens() >= (b.place.num_pages() + 1) * kPage &&
         std::ranges::equal(page_tokens(a, a.place.num_pages()), page_tokens(b, b.place.num_pages()));
}

void publish_pages(Sequence& sequence, cache::PrefixTree& tree) {
  if (!sequence.uses_tree()) return;
  while (sequence.place.num_pages() < sequence.num_computed / kPage) {
    const int page = sequence.place.num_pages();
    const cache::PageId own = sequence.pages.pages()[static_cast<std::size_t>(page)];
    const cache::PageId known = tree.enter(sequence.place, page_tokens(sequence, page), own);
    if (known != own) sequence.pages.replace(page, known);
  }
}

}  // namespace couplet::engine
