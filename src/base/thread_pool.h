#pragma once
// The threads that share one operation's work. parallel_for() publishes a job of numbered items, cut into one share of
// neighbouring items a thread. A thread takes its own share from the front, so that it streams through memory, then the
// others' from the back; the caller returns when all are done. A worker that the system has put aside has claimed at most
// one item and so delays nobody. Workers spin briefly for the next job, then sleep.

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace couplet {

class ThreadPool {
 public:
  explicit ThreadPool(int num_threads);  // >= 1; the caller of parallel_for is one of them
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(shares_.size()); }

  // Calls body(item, thread) once for every item in [0, num_items), thread in [0, num_threads). From one thread at a
  // time; `body` must not throw. What the bodies wrote is visible on return.
  template <class Body>
  void parallel_for(int num_items, Body&& body) {
    if (num_items <= 1 || workers_.empty()) {
      for (int item = 0; item < num_items; ++item) body(item, 0);
      return;
    }
    using Plain = std::remove_reference_t<Body>;
    run(num_items, const_cast<void*>(static_cast<const void*>(&body)),
        [](void* context, int item, int thread) { (*static_cast<Plain*>(context))(item, thread); });
  }

 private:
  using Function = void (*)(void*, int, int);

  void run(int num_items, void* context, Function function);
  void work(int thread);
  // Claims and runs items of job `epoch` until none is left.
  void claim_items(std::uint32_t epoch, int thread);
  // One item of a share: its first, or its last; false: it has none left for this job.
  bool claim_one(std::uint32_t epoch, int share, bool first, int thread);
  // The next epoch after `seen`; false when the pool closes.
  bool wait_for_job(std::uint32_t& seen);

  // Items [begin, end) not yet claimed, and the job they are of, in one word. A share of another job, or without items,
  // can't be claimed from, so a worker that comes late never touches the next job's values before they are all there.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> word{0};  // epoch << 32 | begin << 16 | end
  };
  static constexpr int kMostItems = 0xffff;

  std::vector<Share> shares_;                         // [num_threads]
  alignas(64) std::atomic<std::uint32_t> epoch_{0};  // published last
  alignas(64) std::atomic<int> num_left_{0};          // items not finished
  alignas(64) std::atomic<void*> context_{nullptr};
  std::atomic<Function> function_{nullptr};
  alignas(64) std::atomic<std::uint32_t> wake_{0};
  std::atomic<int> num_asleep_{0};
  std::atomic<bool> closing_{false};
  int most_spins_;          // looks for the next job before a worker sleeps, on a machine without other work
  int calm_jobs_ = 0;       // caller only: jobs until workers spin again
  std::atomic<int> spins_;  // what holds now
  std::vector<std::thread> workers_;
};

}  // namespace couplet
