#pragma once
// The machine's two limits, measured here and now: what prefill (arithmetic) and decode (reading memory) are held
// against. Used by bench and explain.

#include <cstdint>
#include <string>

namespace couplet {

struct MachinePeaks {
  double int8_operations_per_s = 0;  // dot products of the kernel level in use, two a multiply-add, all threads
  double float_operations_per_s = 0;  // fused multiply-adds of that level, two each
  double read_bytes_per_s = 0;       // reading `bytes` from memory again and again
};

// Best of a few short rounds on `num_threads` threads, under half a second in all; `bytes`: as many as the weights have.
MachinePeaks measure_peaks(const std::string& kernels, int num_threads, std::uint64_t bytes);

}  // namespace couplet
