#pragma once
// The first stage: the whole prompt is known, so its rows run together, in one step or in chunks, each seeing the
// positions before it. It starts where the prefix tree's knowledge ends, goes on from there whenever others have come to
// know more, and leads to the first distribution.

#include "cache/prefix_tree.h"
#include "engine/sequence.h"

namespace couplet::engine {

// Starts over with the pages of the longest known beginning, all but the last token's: its logits are wanted.
void begin_prefill(Sequence& sequence, cache::PrefixTree& tree);
// Takes over what has become known behind the whole computed pages; a page that was begun gives way.
void catch_up(Sequence& sequence, cache::PrefixTree& tree);
// Counts what came from the tree since the last call.
void note_cached(Sequence& sequence);

// Both are about to compute the same page for the tree: one of them is enough.
bool share_next_page(const Sequence& a, const Sequence& b);

// Gives the computed whole pages to the tree, where they are found at once.
void publish_pages(Sequence& sequence, cache::PrefixTree& tree);

}  // namespace couplet::engine
