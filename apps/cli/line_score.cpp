#include "line_score.h"

#include <fmt/format.h>

#include <new>

#include "base/check.h"
#include "couplet/logits.h"

namespace couplet::cli {

LineScore::LineScore(std::vector<TokenId> ids, std::vector<std::vector<TokenId>> want, int top)
    : ids_(std::move(ids)),
      want_(std::move(want)),
      top_(static_cast<std::size_t>(top)),
      hash_(XXH3_createState(), XXH3_freeState) {
  if (!hash_) throw std::bad_alloc();
  XXH3_128bits_reset(hash_.get());
}

void LineScore::take(int position, std::span<const float> logits) {
  const auto n = static_cast<std::size_t>(position);
  COUPLET_CHECK(n == num_taken_ && n < ids_.size());
  ++num_taken_;
  XXH3_128bits_update(hash_.get(), logits.data(), logits.size_bytes());
  const double log_sum = log_sum_exp(logits);
  const auto logprobs = [&](const std::vector<TokenId>& ids) {
    std::vector<double> values;
    for (const TokenId id : ids)
      values.push_back(static_cast<double>(logits[static_cast<std::size_t>(id)]) - log_sum);
    return values;
  };
  if (n + 1 < ids_.size()) next_logprob_.push_back(logprobs({ids_[n + 1]})[0]);
  if (n < want_.size()) want_logprobs_.push_back(logprobs(want_[n]));
  if (top_ == 0) return;
  top_ids_.push_back(best_ids(logits, top_));
  top_logprobs_.push_back(logprobs(top_ids_.back()));
}

std::string LineScore::hash() const {
  const XXH128_hash_t value = XXH3_128bits_digest(hash_.get());
  return fmt::format("{:016x}{:016x}", value.high64, value.low64);
}

}  // namespace couplet::cli
