#include "server/prompt_logprobs.h"

#include "couplet/logits.h"

namespace couplet::server {

PromptLogprobs::PromptLogprobs(std::vector<TokenId> ids, int num_alternatives)
    : num_alternatives_(static_cast<std::size_t>(num_alternatives)), choices_(ids.size()) {
  for (std::size_t i = 0; i < ids.size(); ++i) choices_[i].id = ids[i];
}

void PromptLogprobs::take(int position, std::span<const float> logits) {
  const auto next = static_cast<std::size_t>(position) + 1;
  if (next >= choices_.size()) return;  // of the reply
  TokenChoice& choice = choices_[next];
  const double log_sum = log_sum_exp(logits);
  const auto log_probability = [&](TokenId id) {
    return static_cast<float>(static_cast<double>(logits[static_cast<std::size_t>(id)]) - log_sum);
  };
  choice.measured = true;
  choice.log_probability = log_probability(choice.id);
  choice.alternatives.clear();
  for (const TokenId id : best_ids(logits, num_alternatives_)) choice.alternatives.push_back({id, log_probability(id)});
}

}  // namespace couplet::server
