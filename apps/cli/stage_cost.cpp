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

double StageCost::of_compute_peak(const MachinePeaks& peaks) const {
  const double seconds = static_cast<double>(matmul_operations) / peaks.int8_operations_per_s +
                         static_cast<double>(attention_operations) / peaks.float_operations_per_s;
  return per_second(seconds);
}

double StageCost::of_memory_peak(const MachinePeaks& peaks) const {
  return per_second(static_cast<double>(bytes()) / peaks.read_bytes_per_s);
}

}  // namespace couplet::cli
