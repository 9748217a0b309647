#include "engine/ranking.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace couplet::engine {
namespace {

// Every band drops so many times deeper than the one before; after kMaxBands the rest comes at once.
constexpr float kBandGrowth = 4;
constexpr int kMaxBands = 3;
// Sorted at once, at least; later as much again as is sorted already.
constexpr int kMinSorted = 64;

}  // namespace

Ranking::Ranking(int vocab_size) : candidates_(static_cast<std::size_t>(vocab_size)) {}

void Ranking::reset(std::span<const float> logits, float max, float band) {
  COUPLET_CHECK(logits.size() == candidates_.size());
  logits_ = logits;
  max_ = max;
  band_ = band;
  floor_ = std::numeric_limits<float>::infinity();
  num_bands_ = num_sorted_ = num_gathered_ = 0;
}

void Ranking::sort_through(int rank) {
  COUPLET_CHECK(rank >= 0 && static_cast<std::size_t>(rank) < candidates_.size());
  while (num_sorted_ <= rank) {
    while (num_gathered_ == num_sorted_) gather_band();
    const int wanted = std::max({rank + 1 - num_sorted_, num_sorted_, kMinSorted});
    const int count = std::min(wanted, num_gathered_ - num_sorted_);
    const auto begin = candidates_.begin() + num_sorted_;
    const auto end = candidates_.begin() + num_gathered_;
    if (begin + count != end) std::nth_element(begin, begin + count, end, ranks_before);
    std::sort(begin, begin + count, ranks_before);
    num_sorted_ += count;
  }
}

void Ranking::gather_band() {
  const float ceiling = floor_;
  floor_ = ++num_bands_ > kMaxBands ? -std::numeric_limits<float>::infinity() : max_ - band_;
  band_ *= kBandGrowth;
  for (std::size_t id = 0; id < logits_.size(); ++id) {
    const float logit = logits_[id];
    if (logit >= floor_ && logit < ceiling)
      candidates_[static_cast<std::size_t>(num_gathered_++)] = {logit, static_cast<TokenId>(id)};
  }
}

}  // namespace couplet::engine
