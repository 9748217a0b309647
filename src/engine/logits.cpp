#include "couplet/logits.h"

#include <algorithm>

#include "base/exact_math.h"

namespace couplet {

double log_sum_exp(std::span<const float> logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += exact_exp(static_cast<double>(logit) - max);
  return max + exact_log(sum);
}

std::vector<TokenId> best_ids(std::span<const float> logits, std::size_t count) {
  const auto better = [&](TokenId a, TokenId b) {
    const float left = logits[static_cast<std::size_t>(a)], right = logits[static_cast<std::size_t>(b)];
    return left != right ? left > right : a < b;
  };
  std::vector<TokenId> best;  // a heap, the worst of them in front
  count = std::min(count, logits.size());
  if (count == 0) return best;
  for (TokenId id = 0; id < static_cast<TokenId>(logits.size()); ++id) {
    if (best.size() == count) {
      if (!better(id, best.front())) continue;
      std::pop_heap(best.begin(), best.end(), better);
      best.pop_back();
    }
    best.push_back(id);
    std::push_heap(best.begin(), best.end(), better);
  }
  std::sort_heap(best.begin(), best.end(), better);
  return best;
}

}  // namespace couplet
