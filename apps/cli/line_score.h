#pragma once
// What score answers about one line, gathered position by position as the engine hands out the logits: log
// probabilities in double, and a hash over every logit's bits, by which two runs are compared.

#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "couplet/tokenizer.h"

namespace couplet::cli {

class LineScore {
 public:
  // `want`: ids of interest, a list a position, or empty; `top`: best ids kept a position.
  LineScore(std::vector<TokenId> ids, std::vector<std::vector<TokenId>> want, int top);

  // The logits [vocab_size] after ids[position]; positions come in order, each once.
  void take(int position, std::span<const float> logits);
  bool complete() const { return num_taken_ == ids_.size(); }

  std::string hash() const;  // XXH3-128 of all logits taken, hexadecimal
  const std::vector<TokenId>& ids() const { return ids_; }
  const std::vector<double>& next_logprob() const { return next_logprob_; }      // [n - 1]
  const std::vector<std::vector<TokenId>>& top_ids() const { return top_ids_; }  // [n][top], best first
  const std::vector<std::vector<double>>& top_logprobs() const { return top_logprobs_; }  // [n][top]
  const std::vector<std::vector<double>>& want_logprobs() const { return want_logprobs_; }

 private:
  std::vector<TokenId> ids_;
  std::vector<std::vector<TokenId>> want_;
  std::size_t top_;
  std::size_t num_taken_ = 0;
  std::vector<double> next_logprob_;
  std::vector<std::vector<TokenId>> top_ids_;
  std::vector<std::vector<double>> top_logprobs_, want_logprobs_;
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> hash_;
};

}  // namespace couplet::cli
