#include "engine/prefill.h"

#include <algorithm>
#include <vector>

namespace couplet::engine {
namespace {

// One engine holds one set of weights in one format: nothing to keep apart.
constexpr std::uint64_t kSalt = 0;

bool uses_tree(const Sequence& sequence) { return sequence.request.use_prefix_cache && !sequence.observed(); }

}  // namespace

void begin_prefill(Sequence& sequence, cache::PrefixTree& tree) {
  if (!uses_tree(sequence)) return;
  const int max_pages = (sequence.num_tokens() - 1) / kernels::kPagePositions;
  std::vector<cache::PageId> pages(static_cast<std::size_t>(max_pages));
  const int num_pages = tree.match(kSalt, sequence.tokens, max_pages, pages);
  sequence.pages.adopt(std::span(pages).first(static_cast<std::size_t>(num_pages)));
  sequence.num_computed = num_pages * kernels::kPagePositions;
  sequence.num_cached = std::min(sequence.num_computed, sequence.num_prompt());
}

int chunk_rows(const Sequence& sequence, int budget) { return std::min(sequence.num_pending(), budget); }

void publish_pages(const Sequence& sequence, cache::PrefixTree& tree) {
  if (!uses_tree(sequence)) return;
  const auto num_pages = static_cast<std::size_t>(sequence.num_computed / kernels::kPagePositions);
  const std::span<const TokenId> tokens(sequence.tokens);
  tree.insert(kSalt, tokens.first(num_pages * kernels::kPagePositions), sequence.pages.pages().first(num_pages));
}

}  // namespace couplet::engine
