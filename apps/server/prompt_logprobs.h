#pragma once
// Log probabilities of a prompt's own tokens, gathered as the engine hands out the logits: echo's. Filled by the engine's
// thread; read on the io thread once the sequence has ended.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "couplet/stats.h"

namespace couplet::server {

class PromptLogprobs {
 public:
  PromptLogprobs(std::vector<TokenId> ids, int num_alternatives);

  // As Request::on_logits.
  void take(int position, std::span<const float> logits);
  // A choice a token; the first has nothing before it and is not measured.
  const std::vector<TokenChoice>& choices() const { return choices_; }

 private:
  std::size_t num_alternatives_;
  std::vector<TokenChoice> choices_;
};

}  // namespace couplet::server
