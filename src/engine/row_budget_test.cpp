#include "engine/row_budget.h"

#include <gtest/gtest.h>

namespace couplet::engine {
namespace {

constexpr int kChunk = 512;

// Prompt rows take 0.5 ms each, four decoding sequences 10 ms, both measured often enough to be believed.
RowBudget measured(double target_ms = 0) {
  RowBudget budget(kChunk, target_ms);
  budget.note(0, 512, 256);
  for (int i = 0; i < 3; ++i) budget.note(4, 0, 10);
  return budget;
}

TEST(RowBudget, NothingDecodingTakesTheWholeChunk) {
  EXPECT_EQ(RowBudget(kChunk, 0).units(0), kChunk);
  EXPECT_EQ(measured(1).units(0), kChunk);
}

TEST(RowBudget, ColdItMeasuresDecodingFirstAndThenTakesTheLeast) {
  RowBudget budget(kChunk, 0);
  EXPECT_EQ(budget.units(4), 0);
  budget.note(4, 0, 10);
  EXPECT_EQ(budget.units(4), RowBudget::kLeastRows);  // of prompt rows nothing is known
  budget.note(4, 2, 12);
  EXPECT_NEAR(budget.units(4), (RowBudget::kAim * 20 - 10) / 1, 1e-9);
}

TEST(RowBudget, ByDefaultAStepTakesTwiceWhatDecodingTakes) {
  RowBudget budget = measured();
  EXPECT_NEAR(budget.units(4), (RowBudget::kAim * 20 - 10) / 0.5, 1e-9);
  // What rows cost beside decoding sequences counts, once it is known.
  budget.note(4, 10, 10 + 10 * 0.8);
  EXPECT_NEAR(budget.units(4), (RowBudget::kAim * 20 - 10) / 0.8, 1e-9);
}

TEST(RowBudget, ATargetIsKeptWhateverDecodingTakes) {
  EXPECT_NEAR(measured(50).units(4), (RowBudget::kAim * 50 - 10) / 0.5, 1e-9);
  EXPECT_EQ(measured(5).units(4), RowBudget::kLeastRows);  // decoding alone misses it: prompts go on even so
  EXPECT_EQ(measured(1e6).units(4), kChunk);
  EXPECT_EQ(RowBudget(1, 1e6).units(0), 1);
}

TEST(RowBudget, TheOddSlowStepChangesNothing) {
  RowBudget budget = measured();
  for (int i = 0; i < 5; ++i) budget.note(4, 10, 15);
  const double before = budget.units(4);
  budget.note(4, 0, 1000);
  budget.note(4, 10, 1000);
  budget.note(4, 10, 0.001);  // rows are never free either
  EXPECT_EQ(budget.units(4), before);
}

TEST(RowBudget, FollowsWhatLastsWithinAFewSteps) {
  RowBudget budget = measured();
  for (int i = 0; i < 7; ++i) budget.note(4, 10, 15);
  for (int i = 0; i < 4; ++i) budget.note(4, 10, 30);
  EXPECT_NEAR(budget.units(4), (RowBudget::kAim * 20 - 10) / 2, 1e-9);
  for (int i = 0; i < 4; ++i) budget.note(4, 0, 40);
  EXPECT_NEAR(budget.units(4), (RowBudget::kAim * 80 - 40) / 2, 1e-9);
}

TEST(RowBudget, NowAndThenAStepGoesWithoutPromptsToMeasureDecoding) {
  RowBudget budget = measured();
  int without = 0;
  for (int i = 0; i < 10 * (RowBudget::kProbeEvery + 1); ++i) {
    const double units = budget.units(4);
    without += units == 0 ? 1 : 0;
    budget.note(4, units, 10 + units / 2);
  }
  EXPECT_EQ(without, 10);
}

TEST(RowBudget, OtherNumbersOfSequencesNeverStopPrompts) {
  RowBudget budget = measured();
  int without = 0;
  for (int i = 0; i < 900; ++i) {  // each step has another number, most of them never measured
    const int num_decoding = 1 + i * 37 % 4096;
    const double units = budget.units(num_decoding);
    without += units == 0 ? 1 : 0;
    budget.note(num_decoding, units, 10 + units / 2);
  }
  EXPECT_GT(without, 10);
  EXPECT_LE(without, 900 / RowBudget::kProbeGap);
}

TEST(RowBudget, UnknownNumbersTakeTheNearestKnown) {
  RowBudget budget = measured();
  budget.note(64, 0, 40);
  for (int i = 0; i < 2; ++i) budget.note(4, 10, 15);  // no probe is due
  EXPECT_NEAR(budget.units(16), (RowBudget::kAim * 20 - 10) / 0.5, 1e-9);
  EXPECT_NEAR(budget.units(1), (RowBudget::kAim * 20 - 10) / 0.5, 1e-9);
  EXPECT_NEAR(budget.units(1000), (RowBudget::kAim * 80 - 40) / 0.5, 1e-9);
}

TEST(PromptCost, GrowsWithTheContextAsFarAsLayersSee) {
  const PromptCost cost{1000, {{0.25, 0}, {0.75, 512}}};
  EXPECT_DOUBLE_EQ(cost.of_row(0), 1);
  EXPECT_DOUBLE_EQ(cost.of_row(400), 1.4);
  EXPECT_DOUBLE_EQ(cost.of_row(4000), 1 + 0.25 * 4 + 0.75 * 0.512);
  EXPECT_DOUBLE_EQ(cost.of_rows(4000, 0), 0);
  EXPECT_EQ(cost.rows_within(10, 0), 9);
  EXPECT_EQ(cost.rows_within(10, 4000), 4);
  for (const int position : {0, 100, 1000, 100000})
    for (const double units : {0.5, 1.0, 7.3, 512.0}) {
      const int rows = cost.rows_within(units, position);
      EXPECT_LE(cost.of_rows(position, rows), units * 1.02);
      EXPECT_GT(cost.of_rows(position, rows + 2), units * 0.98);
    }
}

}  // namespace
}  // namespace couplet::engine
