#pragma once
// One running generation. Its tokens are the prompt and, behind it, the reply; those before num_computed have their
// keys and values in the cache. Prefill and decode are the same motion: run what is not computed yet, and when the end
// is reached, choose the next token and append it. Losing the cache (preemption) only moves num_computed back.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/page_table.h"
#include "cache/prefix_tree.h"
#include "couplet/request.h"
#include "couplet/stats.h"
#include "couplet/tokenizer.h"
#include "engine/distribution.h"
#include "engine/client_shares.h"
#include "engine/stop.h"

namespace couplet::engine {

struct Sequence {
  Sequence(RequestId id, Request request, const Tokenizer& tokenizer, cache::PagePool& pool, int context);

  int num_prompt() const { return static_cast<int>(request.prompt.size()); }
  int num_tokens() const { return static_cast<int>(tokens.size()); }
  int num_reply() const { return num_tokens() - num_prompt(); }
  int num_pending() const { return num_tokens() - num_computed; }  // rows that must run before a token can be chosen
  bool observed() const { return static_cast<bool>(request.on_logits); }
  bool uses_tree() const { return request.use_prefix_cache && !observed(); }
  // The stage of the next rows. A prompt's last row alone is prefill still; so is a recomputed cache.
  Stage stage() const { return num_computed < num_prompt() || num_pending() > 1 ? Stage::prefill : Stage::decode; }
  History history() const;
  TokenId next_forced() const;

  RequestId id;
  Request request;
  std::vector<TokenId> tokens;
  int num_computed = 0;
  int num_reached = 0;       // the most that num_computed ever was
  int num_cached = 0;        // prompt positions that came from the prefix tree when they were first reached
  int num_cached_noted = 0;  // of them, those that stand in a StepRecord already
  int num_observed = 0;      // positions whose logits on_logits has seen
  int max_tokens;            // of prompt and reply together: the request's limit and the context's
  bool context_limits;       // max_tokens is the context's
  cache::PageTable pages;
  cache::PrefixTree::Place place;  // of the whole computed pages, where the sequence uses the tree

  // The scheduler's.
  ClientShares::Client* client = nullptr;
  bool started = false;          // it has been admitted once
  bool considered = false;       // this step has decided about its prompt rows,
  int num_planned = 0;           //   which are so many

  Detokenizer detokenizer;
  StopMatcher stop_matcher;
  std::uint32_t num_held = 0;  // tokens since text last became certain
  std::string piece;         // text that the last token made certain
  std::string shown;         // of it, what the stop texts let through
  TokenChoice choice;
  StopReason stop = StopReason::none;
  StopReason stop_when_computed = StopReason::none;  // on_logits: the last token still has to run
};

}  // namespace couplet::engine
