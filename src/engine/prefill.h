#pragma once
// The first stage: the whole prompt is known, so its rows run together, in one step or in chunks, each seeing the
// positions before it. It starts where the prefix tree's knowledge ends and leads to the first distribution.

#include "cache/prefix_tree.h"
#include "engine/sequence.h"

namespace couplet::engine {

// Takes over the pages of the longest known beginning, all but the last token's: its logits are wanted.
void begin_prefill(Sequence& sequence, cache::PrefixTree& tree);

// Rows of the next chunk, at most `budget`.
int chunk_rows(const Sequence& sequence, int budget);

// Gives the computed whole pages to the tree, for those that come after.
void publish_pages(const Sequence& sequence, cache::PrefixTree& tree);

}  // namespace couplet::engine
