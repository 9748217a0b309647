#pragma once
// What the machine is to the engine: the levels of kernels that it can run, and its two limits, measured here and now,
// which prefill (arithmetic) and decode (reading memory) are held against. Used by bench, explain and inspect --machine.

#include <cstdint>
#include <string>
#include <vector>

namespace couplet {

struct KernelLevel {
  std::string name;
  std::string needs;  // of the processor and the system; "" for reference, which runs everywhere
  bool runs = false;
};
// Best first.
std::vector<KernelLevel> kernel_levels();
// The level that an engine loaded with EngineOptions::kernels = `kernels` uses; throws as Engine::load does.
std::string chosen_level(const std::string& kernels = "");

struct MachinePeaks {
  double int8_operations_per_s = 0;  // dot products of the kernel level in use, two a multiply-add, all threads
  double float_operations_per_s = 0;  // fused multiply-adds of that level, two each
  double read_bytes_per_s = 0;       // reading `bytes` from memory again and again
};

// Best of a few short rounds on `num_threads` threads, under half a second in all; `bytes`: as many as the weights have.
MachinePeaks measure_peaks(const std::string& kernels, int num_threads, std::uint64_t bytes);

}  // namespace couplet
