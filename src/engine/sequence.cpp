#include "engine/sequence.h"

#include <algorithm>

namespace couplet::engine {
namespace {

// Text of one token is a few bytes; a held-back stop text is bounded by its own length.
constexpr std::size_t kTextReserve = 256;

}  // namespace

Sequence::Sequence(RequestId request_id, Request asked, const Tokenizer& tokenizer, cache::PagePool& pool, int context)
    : id(request_id),
      request(std::move(asked)),
      tokens(request.prompt),
      pages(pool, context),
      detokenizer(tokenizer),
      stop_matcher(request.stop.texts) {
  const int wanted = request.stop.max_tokens < 0 ? context : request.stop.max_tokens;
  context_limits = wanted > context - num_prompt();
  max_tokens = context_limits ? context : num_prompt() + wanted;
  tokens.reserve(static_cast<std::size_t>(max_tokens));
  piece.reserve(kTextReserve);
  shown.reserve(kTextReserve);
  choice.alternatives.reserve(static_cast<std::size_t>(request.num_alternatives));
}

History Sequence::history() const {
  const std::span<const TokenId> all(tokens);
  return {all.first(request.prompt.size()), all.subspan(request.prompt.size())};
}

TokenId Sequence::next_forced() const {
  const auto next = static_cast<std::size_t>(num_reply());
  return next < request.forced.size() ? request.forced[next] : -1;
}

}  // namespace couplet::engine
