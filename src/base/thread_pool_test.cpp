#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <vector>

namespace couplet {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, RunsEveryItemOnceOnAThreadOfThePool) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.num_threads(), GetParam());
  for (int num_items : {0, 1, 2, 3, 17, 1000}) {
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(num_items));
    std::atomic<bool> in_range{true};
    pool.parallel_for(num_items, [&](int item, int thread) {
      seen[static_cast<std::size_t>(item)]++;
      if (thread < 0 || thread >= pool.num_threads()) in_range = false;
    });
    EXPECT_TRUE(in_range);
    for (const auto& count : seen) EXPECT_EQ(count.load(), 1) << num_items;
  }
}

TEST_P(ThreadPoolTest, ManySmallJobsInARowSeeEachOthersWrites) {
  ThreadPool pool(GetParam());
  std::vector<long> values(64, 0);
  for (int round = 0; round < 3000; ++round)
    pool.parallel_for(64, [&](int item, int) { values[static_cast<std::size_t>(item)] += item; });
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(values[i], 3000L * static_cast<long>(i));
}

// A worker that comes late to a small job must not take its number for an item of the next, larger one.
TEST_P(ThreadPoolTest, JobsOfChangingSizesRunEachItemOnce) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 4000; ++round) {
    const int num_items = round % 2 == 0 ? 2 : 2 + round % 37;
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(num_items));
    pool.parallel_for(num_items, [&seen](int item, int) { seen[static_cast<std::size_t>(item)]++; });
    for (const auto& count : seen) ASSERT_EQ(count.load(), 1) << round;
  }
}

TEST_P(ThreadPoolTest, WakesWorkersThatFellAsleep) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<long> sum{0};
    pool.parallel_for(100, [&](int item, int) { sum += item; });
    EXPECT_EQ(sum.load(), 4950);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 8, 64));

TEST(ThreadPoolFloats, WorkersKeepSubnormals) {
  ThreadPool pool(2);
  std::atomic<int> kept{0};
  pool.parallel_for(50, [&](int, int) {
    volatile float small = 1e-39F;
    const volatile float half = small * 0.5F;
    if (half > 0) kept++;
  });
  EXPECT_EQ(kept.load(), 50);
}

}  // namespace
}  // namespace couplet
