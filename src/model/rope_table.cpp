#include "model/rope_table.h"

#include <algorithm>

#include "base/check.h"
#include "base/exact_math.h"

namespace couplet::model {

RopeTable::RopeTable(const RopeConfig& rope, int dims, int max_positions)
    : half_(dims / 2),
      magnitude_(rope.magnitude),
      frequencies_(rope_frequencies(rope, dims, max_positions)),
      values_(static_cast<std::size_t>(max_positions) * static_cast<std::size_t>(dims), "rope table") {}

void RopeTable::extend(int end, ThreadPool& threads) {
  if (end <= ready_) return;
  COUPLET_CHECK(static_cast<std::size_t>(end) * 2 * static_cast<std::size_t>(half_) <= values_.size());
  constexpr int kPositionsAnItem = 16;
  const int first = ready_;
  const int num_items = (end - first + kPositionsAnItem - 1) / kPositionsAnItem;
  threads.parallel_for(num_items, [&](int item, int) {
    const int from = first + item * kPositionsAnItem;
    for (int position = from; position < std::min(from + kPositionsAnItem, end); ++position) {
      for (int i = 0; i < half_; ++i) {
        const double angle = position * frequencies_[static_cast<std::size_t>(i)];
        row(position)[i] = static_cast<float>(exact_cos(angle) * magnitude_);
        row(position)[half_ + i] = static_cast<float>(exact_sin(angle) * magnitude_);
      }
    }
  });
  ready_ = end;
}

}  // namespace couplet::model
