#include "story/stage_cost.h"

#include <algorithm>

namespace couplet::story {

void StageCost::add(const StepRecord& record) {
  if (record.num_prefill_rows + record.num_decode_rows == 0) return;  // nothing ran
  ++steps;
  rows += static_cast<std::uint64_t>(record.num_prefill_rows + record.num_decode_rows);
  matmul_operations += record.matmul_operations;
  attention_operations += record.attention_operations;
  weights_bytes += record.weights_bytes;
  cache_bytes += record.cache_read_bytes + record.cache_write_bytes;
  ms += record.step_ms;
}

MachinePeaks better(const MachinePeaks& one, const MachinePeaks& other) {
  return {std::max(one.int8_operations_per_s, other.int8_operations_per_s),
          std::max(one.float_operations_per_s, other.float_operations_per_s),
          std::max(one.read_bytes_per_s, other.read_bytes_per_s)};
}

}  // namespace couplet::story
