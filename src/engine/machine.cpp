#include "couplet/machine.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "kernels/peaks.h"

namespace couplet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 4;                // the best one counts: the others met a neighbour
constexpr double kComputeSeconds = 0.02;  // a round of arithmetic; shorter ones scatter by more than 2 %
constexpr double kReadSeconds = 0.03;     // a round of reading, at least two passes
constexpr std::size_t kReadLimit = 512U << 20;  // beyond every cache: more bytes are read no slower
constexpr std::size_t kReadStep = 256;          // what PeakLoops::read takes in one go

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs `work(thread)` on all threads at once, kRounds times; the most work a second over all threads. Each
// thread's own rate counts from the common start, so that one that the system delays does not hide in the
// others' time. A thread that waits at the barrier can't claim a second item, so each of them has one.
template <class Work>
double best_rate(ThreadPool& pool, const Work& work) {
  const int num_threads = pool.num_threads();
  std::vector<double> rates(static_cast<std::size_t>(num_threads));
  double best = 0;
  std::barrier start(num_threads);
  std::barrier end(num_threads, [&]() noexcept {
    double sum = 0;
    for (const double rate : rates) sum += rate;
    best = std::max(best, sum);
  });
  pool.parallel_for(num_threads, [&](int item, int) {
    for (int round = 0; round < kRounds; ++round) {
      start.arrive_and_wait();
      const Clock::time_point began = Clock::now();
      const double done = work(item);
      rates[static_cast<std::size_t>(item)] = done / seconds_since(began);
      end.arrive_and_wait();
    }
  });
  return best;
}

// Runs until `seconds` have passed.
double run_loop(std::uint64_t (*loop)(std::uint64_t, std::uint64_t*), double seconds) {
  constexpr std::uint64_t kRoundsACall = 20'000;  // some tens of microseconds
  std::uint64_t sink = 0;
  double done = 0;
  const Clock::time_point began = Clock::now();
  while (seconds_since(began) < seconds) done += static_cast<double>(loop(kRoundsACall, &sink));
  return done;
}

double read_rate(const kernels::PeakLoops& loops, ThreadPool& pool, std::uint64_t bytes) {
  const std::size_t threads = static_cast<std::size_t>(pool.num_threads());
  const std::size_t wanted = static_cast<std::size_t>(std::clamp<std::uint64_t>(bytes, 1U << 20, kReadLimit));
  const std::size_t share = std::max(wanted / threads / kReadStep, std::size_t{1}) * kReadStep;
  constexpr std::size_t kAlignment = 2U << 20;
  const std::size_t total = (share * threads + kAlignment - 1) / kAlignment * kAlignment;
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(kAlignment, total)), std::free);
  if (!memory) throw std::bad_alloc();
  std::memset(memory.get(), 1, total);
  return best_rate(pool, [&](int thread) {
    std::uint64_t sink = 0;
    double done = 0;
    const std::byte* mine = memory.get() + share * static_cast<std::size_t>(thread);
    const Clock::time_point began = Clock::now();
    do {
      loops.read(mine, share, &sink);
      done += static_cast<double>(share);
    } while (seconds_since(began) < kReadSeconds);
    return done;
  });
}

}  // namespace

std::vector<KernelLevel> kernel_levels() {
  kernels::LevelInfo known[8];
  const int count = kernels::known_levels(known);
  std::vector<KernelLevel> levels;
  for (int i = 0; i < count; ++i) levels.push_back({known[i].name, known[i].needs, known[i].runs});
  return levels;
}

std::string chosen_level(const std::string& kernels) { return kernels::select_kernels(kernels).name; }

MachinePeaks measure_peaks(const std::string& kernels, int num_threads, std::uint64_t bytes) {
  const kernels::PeakLoops* loops = kernels::peak_loops(kernels::select_kernels(kernels).name);
  COUPLET_CHECK(loops != nullptr && num_threads >= 1);
  ThreadPool pool(num_threads);
  MachinePeaks peaks;
  peaks.int8_operations_per_s =
      best_rate(pool, [&](int) { return run_loop(loops->int8_dots, kComputeSeconds); });
  peaks.float_operations_per_s =
      best_rate(pool, [&](int) { return run_loop(loops->float_fmas, kComputeSeconds); });
  peaks.read_bytes_per_s = read_rate(*loops, pool, bytes);
  return peaks;
}

}  // namespace couplet
