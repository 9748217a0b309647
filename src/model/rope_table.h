#pragma once
// Cosines and sines of rotary positions, computed in double from the position and load-time options alone
// (docs/numerics.md, rule 1). Filled as far as some sequence has come, so that a long context costs nothing at start.

#include <vector>

#include "base/memory.h"
#include "base/thread_pool.h"
#include "model/rope_config.h"

namespace couplet::model {

class RopeTable {
 public:
  RopeTable(const RopeConfig& rope, int dims, int max_positions);

  // Makes positions below `end` ready.
  void extend(int end, ThreadPool& threads);
  const float* cosines(int position) const { return row(position); }
  const float* sines(int position) const { return row(position) + half_; }  // [half] each
  int half() const { return half_; }

 private:
  float* row(int position) const {
    return values_.data() + static_cast<std::size_t>(position) * 2 * static_cast<std::size_t>(half_);
  }

  int half_;
  int ready_ = 0;
  double magnitude_;
  std::vector<double> frequencies_;  // [half]
  Array<float> values_;              // [max_positions][cosines, sines]
};

}  // namespace couplet::model
