#include "base/thread_pool.h"

#include <sched.h>

#include <system_error>

#include "base/check.h"
#include "base/cpu_features.h"
#include "base/float_environment.h"
#include "couplet/error.h"

namespace couplet {
namespace {

// About 60 us on a Zen 4 at 3 GHz: longer than the caller's serial work between two operations of a decode step,
// shorter than anybody would notice as load.
constexpr int kSpins = 4000;
// A caller that waits for a last item gives its CPU away after this many looks (15 us): the item's thread may need it.
constexpr int kLooksBeforeYield = 1000;
// It has also learnt that the machine has other work: a worker was put aside in the middle of an item. A worker that
// has spun is the first to be put aside, one that slept is the first to run, so for this many jobs nobody spins.
constexpr int kCalmJobs = 500;

void pause_cpu() { __asm__ volatile("pause"); }

}  // namespace

ThreadPool::ThreadPool(int num_threads) : shares_(static_cast<std::size_t>(num_threads)) {
  COUPLET_CHECK(num_threads >= 1);
  // More threads than CPUs: spinning would take the CPU from the thread that is waited for.
  most_spins_ = num_threads <= usable_cpus() ? kSpins : 0;
  spins_ = most_spins_;
  try {
    for (int thread = 1; thread < num_threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
  } catch (const std::system_error& error) {
    const std::size_t started = workers_.size();
    closing_ = true;
    wake_.fetch_add(1);
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    throw Error(ErrorKind::resource, "[threads] expected " + std::to_string(num_threads) +
                                         " threads, the system gave " + std::to_string(started + 1) + ": " +
                                         error.what());
  }
}

ThreadPool::~ThreadPool() {
  closing_.store(true);
  wake_.fetch_add(1);
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(int num_items, void* context, Function function) {
  COUPLET_CHECK(num_items <= kMostItems);
  // No share of the last job has an item left: whoever still looks at them claims nothing.
  const std::uint32_t epoch = epoch_.load(std::memory_order_relaxed) + 1;
  context_.store(context, std::memory_order_relaxed);
  function_.store(function, std::memory_order_relaxed);
  num_left_.store(num_items, std::memory_order_relaxed);
  const int threads = num_threads();
  for (int thread = 0; thread < threads; ++thread) {
    const auto begin = static_cast<std::uint64_t>(static_cast<long>(num_items) * thread / threads);
    const auto end = static_cast<std::uint64_t>(static_cast<long>(num_items) * (thread + 1) / threads);
    shares_[static_cast<std::size_t>(thread)].word.store(static_cast<std::uint64_t>(epoch) << 32 | begin << 16 | end,
                                                         std::memory_order_release);
  }
  epoch_.store(epoch, std::memory_order_seq_cst);
  if (num_asleep_.load(std::memory_order_seq_cst) > 0) {
    wake_.fetch_add(1);
    wake_.notify_all();
  }
  claim_items(epoch, 0);
  int looks = 0;
  for (; num_left_.load(std::memory_order_acquire) > 0; ++looks) {
    pause_cpu();
    if (looks >= kLooksBeforeYield || most_spins_ == 0) sched_yield();
  }
  if (looks > kLooksBeforeYield) calm_jobs_ = kCalmJobs;
  if (calm_jobs_ > 0) --calm_jobs_;
  spins_.store(calm_jobs_ > 0 ? 0 : most_spins_, std::memory_order_relaxed);
}

bool ThreadPool::claim_one(std::uint32_t epoch, int share, bool first, int thread) {
  std::atomic<std::uint64_t>& word = shares_[static_cast<std::size_t>(share)].word;
  std::uint64_t seen = word.load(std::memory_order_acquire);
  for (;;) {
    const std::uint64_t begin = seen >> 16 & 0xffff, end = seen & 0xffff;
    if (seen >> 32 != epoch || begin == end) return false;
    void* const context = context_.load(std::memory_order_relaxed);
    const Function function = function_.load(std::memory_order_relaxed);
    // Success means that the share still had this item, so the job was not done and both values are its own.
    const std::uint64_t left = first ? seen + (1U << 16) : seen - 1;
    if (!word.compare_exchange_weak(seen, left, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
    function(context, static_cast<int>(first ? begin : end - 1), thread);
    num_left_.fetch_sub(1, std::memory_order_release);
    return true;
  }
}

void ThreadPool::claim_items(std::uint32_t epoch, int thread) {
  while (claim_one(epoch, thread, true, thread)) continue;
  for (int i = 1; i < num_threads(); ++i) {
    const int other = (thread + i) % num_threads();
    while (claim_one(epoch, other, false, thread)) continue;
  }
}

bool ThreadPool::wait_for_job(std::uint32_t& seen) {
  for (;;) {
    for (int spin = 0; spin <= spins_.load(std::memory_order_relaxed); ++spin) {
      if (closing_.load(std::memory_order_relaxed)) return false;
      const std::uint32_t epoch = epoch_.load(std::memory_order_acquire);
      if (epoch != seen) {
        seen = epoch;
        return true;
      }
      pause_cpu();
    }
    const std::uint32_t ticket = wake_.load();
    num_asleep_.fetch_add(1, std::memory_order_seq_cst);
    // Looked at once more after saying "asleep": a job published in between has seen that and changed the ticket.
    if (epoch_.load(std::memory_order_seq_cst) == seen && !closing_.load()) wake_.wait(ticket);
    num_asleep_.fetch_sub(1, std::memory_order_seq_cst);
  }
}

void ThreadPool::work(int thread) {
  const StandardFloats floats;
  std::uint32_t epoch = 0;
  while (wait_for_job(epoch)) claim_items(epoch, thread);
}

}  // namespace couplet
