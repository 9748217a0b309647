#pragma once
// Distribution -> token. Draws come from a counter-based generator: a draw is a pure function of (seed, choice,
// position), so batches, restarts and drafts can't move it (docs/numerics.md, rule 9).

#include <array>
#include <cstdint>
#include <span>

#include "couplet/request.h"
#include "couplet/stats.h"
#include "engine/distribution.h"

namespace couplet::engine {

// Philox4x32-10 (Salmon et al., 2011): four random words for a counter under a key.
std::array<std::uint32_t, 4> philox(const std::array<std::uint32_t, 4>& counter, const std::array<std::uint32_t, 2>& key);

// Uniform in [0, 1), 53 bits. `position` is the place in the sequence that the drawn token will take.
double uniform(std::uint64_t seed, std::uint32_t choice, std::uint32_t position);

// One row on its way to a token.
struct Selection {
  const SamplingOptions* options = nullptr;
  History history = {};
  TokenId forced = -1;       // taken instead of a draw; -1: none
  bool measure = false;      // fill the probabilities
  int num_alternatives = 0;  // > 0 measures too
};

// Logits [vocab_size] -> choice, whole: assign, draw or force, describe. The token's position is the history's length.
// False: a logit is not finite; `choice` is then empty.
bool select_token(Distribution& distribution, std::span<const float> logits, const Selection& selection,
                  TokenChoice& choice);

}  // namespace couplet::engine
