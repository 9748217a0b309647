#pragma once
// What Request::on_logits is handed, read in double: for log probabilities of given tokens, score's and echo's.

#include <cstddef>
#include <span>
#include <vector>

#include "couplet/tokenizer.h"

namespace couplet {

// log(sum(exp(logits))), summed by ascending id; a token's log probability is its logit less this.
double log_sum_exp(std::span<const float> logits);
// The `count` best ids, best first, ties to the lowest id.
std::vector<TokenId> best_ids(std::span<const float> logits, std::size_t count);

}  // namespace couplet
