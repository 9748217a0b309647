#include "stage_cost.h"

namespace couplet::cli {

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

}  // namespace couplet::cli
