#pragma once
// A row's candidates in the one order that everything uses, (logit descending, id ascending), sorted only as far as
// someone looks. Part of Distribution; no logit may be NaN.

#include <span>
#include <vector>

#include "couplet/tokenizer.h"

namespace couplet::engine {

struct Candidate {
  float logit = 0;
  TokenId id = -1;
};
// The order itself: a stands before b.
constexpr bool ranks_before(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

class Ranking {
 public:
  explicit Ranking(int vocab_size);

  // `logits` [vocab_size] must outlive the look-ups; `max` is their greatest, `band` > 0 the drop below it that is
  // gathered first: about what the caller will look at.
  void reset(std::span<const float> logits, float max, float band);
  // The candidate of this rank; rank in [0, vocab_size).
  const Candidate& at(int rank) {
    if (rank >= num_sorted_) sort_through(rank);
    return candidates_[static_cast<std::size_t>(rank)];
  }
  int num_sorted() const { return num_sorted_; }  // work done so far, for tests of growth

 private:
  void sort_through(int rank);
  void gather_band();

  std::span<const float> logits_;
  std::vector<Candidate> candidates_;  // [vocab_size]: sorted, then gathered, then unused
  int num_sorted_ = 0;
  int num_gathered_ = 0;
  int num_bands_ = 0;
  float max_ = 0;
  float band_ = 0;   // how far below max_ the next band reaches
  float floor_ = 0;  // all logits >= floor_ are gathered
};

}  // namespace couplet::engine
