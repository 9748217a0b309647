#include "story/stage_cost.h"

#include <gtest/gtest.h>

namespace couplet::story {
namespace {

TEST(StageCost, BetterPeaksAreTheGreaterOfEach) {
  const MachinePeaks best = better({3, 1, 5}, {2, 4, 6});
  EXPECT_EQ(best.int8_operations_per_s, 3);
  EXPECT_EQ(best.float_operations_per_s, 4);
  EXPECT_EQ(best.read_bytes_per_s, 6);
}

TEST(StageCost, KnowsWhatLiesAboveThePeaks) {
  StepRecord record;
  record.num_decode_rows = 1;
  record.matmul_operations = 100;
  record.weights_bytes = 1000;
  record.step_ms = 1000;
  StageCost cost;
  cost.add(record);
  EXPECT_FALSE(cost.above_peaks({100, 100, 1000}));
  EXPECT_TRUE(cost.above_peaks({90, 100, 1000}));
  EXPECT_TRUE(cost.above_peaks({100, 100, 900}));
}

TEST(StageCost, AStepInWhichNothingRanCostsNothing) {
  StepRecord record;
  record.step_ms = 5;
  StageCost cost;
  cost.add(record);
  EXPECT_EQ(cost.steps, 0);
  EXPECT_EQ(cost.ms, 0);
}

}  // namespace
}  // namespace couplet::story
