#include "kernels/peaks.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "kernels/kernels.h"

namespace couplet::kernels {
namespace {

std::vector<std::string_view> levels() {
  const KernelTable* tables[8];
  const int count = runnable_levels(tables);
  std::vector<std::string_view> names;
  for (int i = 0; i < count; ++i) names.emplace_back(tables[i]->name);
  return names;
}

TEST(Peaks, EveryRunnableLevelHasLoops) {
  for (const std::string_view level : levels()) EXPECT_NE(peak_loops(level), nullptr) << level;
  EXPECT_EQ(peak_loops("sse9"), nullptr);
  EXPECT_EQ(peak_loops(""), nullptr);
}

TEST(Peaks, OperationsGrowWithTheRoundsAndAreDone) {
  for (const std::string_view level : levels()) {
    const PeakLoops& loops = *peak_loops(level);
    std::uint64_t few = 0, many = 0;
    const std::uint64_t one = loops.int8_dots(1, &few);
    EXPECT_GT(one, 0U) << level;
    EXPECT_EQ(loops.int8_dots(1000, &many), 1000 * one) << level;
    EXPECT_NE(few, 0U) << level;
    EXPECT_NE(few, many) << level;  // the sums are as long as the rounds
    few = many = 0;
    const std::uint64_t fmas = loops.float_fmas(1, &few);
    EXPECT_EQ(loops.float_fmas(1000, &many), 1000 * fmas) << level;
    EXPECT_NE(few, many) << level;
  }
}

TEST(Peaks, ReadingReadsToTheLastLine) {
  alignas(64) std::byte bytes[1024] = {};
  for (const std::string_view level : levels()) {
    const PeakLoops& loops = *peak_loops(level);
    for (const std::size_t line : {0U, 256U, 960U}) {
      bytes[line] = std::byte{1};
      std::uint64_t sum = 0;
      loops.read(bytes, sizeof bytes, &sum);
      EXPECT_EQ(sum, 1U) << level << " " << line;
      bytes[line] = std::byte{0};
    }
  }
}

}  // namespace
}  // namespace couplet::kernels
