#pragma once
// Logits -> distribution: the point where prefill ends and where each decode step ends. Shapes one row's logits as
// SamplingOptions says, in the order documented there, and answers what was kept and how probable a token is.
// Sums follow docs/numerics.md, rule 9. All scratch is made at construction: a row allocates nothing.

#include <span>
#include <vector>

#include "couplet/request.h"
#include "couplet/stats.h"
#include "engine/ranking.h"
#include "kernels/kernels.h"

namespace couplet::engine {

// Temperatures below this are greedy: a smaller one could only break ties, which go to the lowest id.
inline constexpr float kGreedyBelow = 1e-5F;

// What the penalties count. The repetition penalty sees both, presence and frequency see the reply alone.
struct History {
  std::span<const TokenId> prompt = {};
  std::span<const TokenId> reply = {};
};

class Distribution {
 public:
  Distribution(const kernels::KernelTable& kernels, int vocab_size);

  // Takes a row's logits [vocab_size], which must stay until the next call, and options that passed check().
  // False: a logit is not finite, the sequence ends with numeric_error and nothing else may be asked.
  bool assign(std::span<const float> logits, const SamplingOptions& options, const History& history);

  // The token at `u` in [0, 1) of the cumulative sum over the kept candidates, best first.
  TokenId pick(double u);
  int num_kept() const { return num_kept_; }
  // Of the kept candidates' distribution, which sums to 1; 0 for a token that was cut off.
  double probability(TokenId id) const;

  // Fills all of `choice` but `forced`. Nothing is measured unless asked; num_alternatives > 0 asks too. Alternatives
  // are the model's own best. A cut-off (forced) token's shaped log probability is -infinity. Allocates only where
  // choice.alternatives has no room.
  void describe(TokenId id, bool measure, int num_alternatives, TokenChoice& choice);

 private:
  Candidate best_of(std::span<const float> logits, bool& finite) const;
  void shape(const SamplingOptions& options, const History& history);
  void truncate(const SamplingOptions& options);
  int count_with_mass(double mass, int limit);

  bool is_greedy() const { return temperature_ == 0; }
  bool is_kept(TokenId id) const;
  float scaled(float logit) const { return (logit - best_.logit) / temperature_; }
  double weight(float scaled_logit) const { return kernels_->sum_exp(&scaled_logit, 1, 0, nullptr); }
  double mass_of_best(int count);
  double mass_of_all();

  double own_sum();
  double own_entropy();

  const kernels::KernelTable* kernels_;
  int vocab_size_;
  std::span<const float> own_;         // the model's logits
  Candidate own_best_;
  double own_sum_ = 0;                 // of exp(logit - best); 0: not needed yet
  Ranking own_ranking_;                // for alternatives
  std::vector<float> shaped_;          // [vocab_size] with bias and penalties, where there are any
  std::vector<std::uint32_t> counts_;  // [vocab_size] of tokens in the history; all zero between rows
  std::span<const float> logits_;      // what the token is chosen from: own_ or shaped_
  Candidate best_;                     // of logits_
  Ranking ranking_;                    // of logits_
  float temperature_ = 1;              // 0: greedy
  std::vector<float> scaled_;          // [vocab_size] below the best, by temperature; where all of it is summed
  std::vector<double> masses_;         // [vocab_size] n: weights of ranks 0 to n, as far as num_masses_
  int num_masses_ = 0;
  int num_kept_ = 0;
  double kept_mass_ = 0;
  Candidate last_kept_;
};

}  // namespace couplet::engine
