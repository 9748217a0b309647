#include "engine/decode.h"

#include <algorithm>

namespace couplet::engine {
namespace {

bool ends_reply(const Sequence& sequence, const Tokenizer& tokenizer, TokenId id) {
  const auto& own = sequence.request.stop.ids;
  if (std::find(own.begin(), own.end(), id) != own.end()) return true;
  const auto ends = tokenizer.end_ids();
  return !sequence.request.stop.ignore_end && std::find(ends.begin(), ends.end(), id) != ends.end();
}

// A character may take several tokens, and a token may end one and begin the next.
void count_text_tokens(Sequence& sequence) {
  const bool holds_back = !sequence.detokenizer.pending().empty();
  if (!sequence.piece.empty()) {
    sequence.choice.text_tokens = sequence.num_held + 1;
    sequence.num_held = holds_back ? 1 : 0;
  } else {
    sequence.num_held = holds_back ? sequence.num_held + 1 : 0;
  }
}

}  // namespace

void feed_back(Sequence& sequence, const Tokenizer& tokenizer) {
  const TokenId id = sequence.choice.id;
  sequence.tokens.push_back(id);
  if (ends_reply(sequence, tokenizer, id)) return end_reply(sequence, StopReason::end_of_turn);
  sequence.piece.clear();
  sequence.detokenizer.push(id, sequence.piece);
  count_text_tokens(sequence);
  sequence.shown += sequence.stop_matcher.push(sequence.piece);
  if (sequence.stop_matcher.matched())
    sequence.stop = StopReason::stop_text;
  else if (sequence.num_tokens() >= sequence.max_tokens)
    end_reply(sequence, sequence.context_limits ? StopReason::context_full : StopReason::max_tokens);
}

void end_reply(Sequence& sequence, StopReason reason) {
  sequence.stop = reason;
  sequence.piece.clear();
  sequence.detokenizer.finish(sequence.piece);
  sequence.shown += sequence.stop_matcher.push(sequence.piece);
  if (!sequence.stop_matcher.matched()) sequence.shown += sequence.stop_matcher.flush();
}

}  // namespace couplet::engine
