#pragma once
// What a caller asks, and what comes back while it runs. All plain values; units and defaults are stated here.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "couplet/tokenizer.h"

namespace couplet {

struct TokenChoice;  // stats.h

// Logits -> distribution, in this order: logit bias, repetition penalty, presence and frequency penalties, then on the
// shaped logits temperature, top-k, top-p, min-p. top-p truncates after temperature.
struct SamplingOptions {
  float temperature = 0.8F;         // >= 0; 0 (and below 1e-5) is greedy: the best logit, ties to the lowest id
  int top_k = 0;                    // keep the k best; 0 or -1: off
  float top_p = 0.95F;              // keep the smallest set with this mass, (0, 1]; 1: off
  float min_p = 0.0F;               // keep what has at least min_p of the best one's probability, [0, 1]
  float repetition_penalty = 1.0F;  // > 0; counts prompt and reply, as Hugging Face does; 1: off
  float presence_penalty = 0.0F;    // [-2, 2]; counts the reply alone, as OpenAI does
  float frequency_penalty = 0.0F;   // [-2, 2]; counts the reply alone, as OpenAI does
  std::vector<std::pair<TokenId, float>> logit_bias = {};  // finite, added first
  std::uint64_t seed = 0;           // draws are keyed by (seed, choice, position) and by nothing else
  std::uint32_t choice = 0;         // which of n answers to one request
};

struct StopOptions {
  int max_tokens = -1;                  // of the reply; 0: only prefill; -1: what the context holds
  std::vector<std::string> texts = {};  // none empty; nothing of a match is shown
  std::vector<TokenId> ids = {};        // beside the model's own end ids
  bool ignore_end = false;              // run past the model's own end ids
};

using RequestId = std::uint64_t;

struct Request {
  std::vector<TokenId> prompt;  // at least one id
  SamplingOptions sampling;
  StopOptions stop;
  std::vector<TokenId> forced;  // taken instead of sampling, in order; sampling goes on after the last
  int num_alternatives = 0;     // best candidates reported with every token, at most kMaxAlternatives
  bool log_probabilities = false;  // fill TokenChoice's probabilities (costs a pass over the vocabulary)
  bool use_prefix_cache = true;
  std::uint64_t cache_salt = 0;  // requests of different salts share no cached prefix
  int priority = 0;              // the lower goes first, [-100, 100]; a long wait makes up for it
  std::uint64_t client = 0;      // whose it is: clients of one priority get equal shares of the engine
  // Called by the thread in step() with the raw logits [vocab_size] after every position of prompt and reply, in
  // order; must not throw. Positions that a prefix cache holds have no logits, so it turns the cache off for this request.
  std::function<void(int position, std::span<const float> logits)> on_logits;
  // Called by the thread in step() with each choice, measured as asked above, before it counts: the id returned is taken
  // instead, where it is one of the vocabulary. May take its time, which no record counts; must not throw.
  std::function<TokenId(const TokenChoice& choice)> on_choice;
};

inline constexpr int kMaxAlternatives = 64;

enum class StopReason {
  none,          // still running
  end_of_turn,   // the model's own end id, or one of StopOptions::ids
  stop_text,     // one of StopOptions::texts
  max_tokens,
  context_full,
  cancelled,
  numeric_error,  // a logit or activation that is not finite
  cache_range,    // a key or value beyond what the cache's format holds
};
const char* name(StopReason reason);

enum class Refusal {
  none,
  invalid,     // something the request says can't be
  too_long,    // prompt and forced tokens exceed the context
  queue_full,  // EngineOptions::max_queue requests wait already
};

struct SubmitResult {
  RequestId id = 0;     // 0: refused
  std::string refusal;  // one line: what was expected, what came
  Refusal kind = Refusal::none;
  explicit operator bool() const { return id != 0; }
};

}  // namespace couplet
