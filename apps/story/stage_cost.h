#pragma once
// What the steps of one stage cost together, summed from their records, and how near that comes to the
// machine's limits.

#include <cstdint>

#include "couplet/machine.h"
#include "couplet/stats.h"

namespace couplet::story {

struct StageCost {
  int steps = 0;
  std::uint64_t rows = 0;
  std::uint64_t matmul_operations = 0, attention_operations = 0;
  std::uint64_t weights_bytes = 0, cache_bytes = 0;
  double ms = 0;

  void add(const StepRecord& record);

  std::uint64_t operations() const { return matmul_operations + attention_operations; }
  std::uint64_t bytes() const { return weights_bytes + cache_bytes; }
  double tokens_per_s() const { return per_second(static_cast<double>(rows)); }
  double operations_per_s() const { return per_second(static_cast<double>(operations())); }
  double bytes_per_s() const { return per_second(static_cast<double>(bytes())); }
  double operations_per_byte() const {
    return bytes() > 0 ? static_cast<double>(operations()) / static_cast<double>(bytes()) : 0;
  }

  // Shares of the two limits: int8 dot products, which is what weights are multiplied with, and reading.
  double of_compute_peak(const MachinePeaks& peaks) const {
    return operations_per_s() / peaks.int8_operations_per_s;
  }
  double of_memory_peak(const MachinePeaks& peaks) const { return bytes_per_s() / peaks.read_bytes_per_s; }
  // More than was measured to be possible, beyond what measurements scatter.
  bool above_peaks(const MachinePeaks& peaks) const {
    constexpr double kScatter = 1.02;
    return of_compute_peak(peaks) > kScatter || of_memory_peak(peaks) > kScatter;
  }
  bool bound_by_arithmetic(const MachinePeaks& peaks) const {
    return of_compute_peak(peaks) >= of_memory_peak(peaks);
  }

 private:
  double per_second(double amount) const { return ms > 0 ? amount * 1e3 / ms : 0; }
};

// The greater of each.
MachinePeaks better(const MachinePeaks& one, const MachinePeaks& other);

}  // namespace couplet::story
