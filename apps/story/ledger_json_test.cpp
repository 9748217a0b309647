#include "story/ledger_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "couplet/engine.h"
#include "story/token_json.h"
#include "tests/property/tiny_model.h"

namespace couplet::story {
namespace {

class LedgerJson : public ::testing::Test {
 protected:
  LedgerJson() : file_(testing::tiny_llama()), checkpoint_(Checkpoint::open(file_.path())) {
    record_.index = 7;
    record_.num_decode_rows = 2;
    record_.matmul_operations = 400;
    record_.weights_bytes = 1000;
    record_.step_ms = 1000;
    part_.stage = Stage::decode;
    part_.num_rows = 1;
    part_.matmul_operations = 150;
    part_.attention_operations = 50;
    part_.float_operations = 30;
    part_.choice.id = 97;  // a byte: "a" or another character
    record_.sequences = {part_, part_};
  }

  nlohmann::ordered_json entry(const MachinePeaks& peaks = {}) const {
    return ledger_entry(record_, part_, peaks, checkpoint_->tokenizer());
  }

  testing::TinyModelFile file_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  StepRecord record_;
  SequenceStep part_;
};

TEST_F(LedgerJson, ASequencesPartStandsBesideTheWholeStep) {
  const auto json = entry({1000, 1000, 2000});
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["stage"], "decode");
  EXPECT_EQ(json["integer_operations"], 170);
  EXPECT_EQ(json["float_operations"], 30);
  EXPECT_EQ(json["whole_step"]["sequences"], 2);
  EXPECT_DOUBLE_EQ(json["whole_step"]["of_compute_peak"], 0.4);
  EXPECT_DOUBLE_EQ(json["whole_step"]["of_memory_peak"], 0.5);
}

TEST_F(LedgerJson, WithoutPeaksThereAreNoShares) {
  EXPECT_FALSE(entry()["whole_step"].contains("of_compute_peak"));
  EXPECT_FALSE(entry()["whole_step"].contains("of_memory_peak"));
}

TEST_F(LedgerJson, HowAChoiceCameAbout) {
  EXPECT_EQ(entry()["choice"]["how"], "greedy");
  EXPECT_FALSE(entry()["choice"].contains("draw"));
  EXPECT_FALSE(entry()["choice"].contains("entropy_bits"));  // it was not measured
  part_.choice.drawn = true;
  part_.choice.draw = 0.25;
  EXPECT_EQ(entry()["choice"]["how"], "drawn");
  EXPECT_EQ(entry()["choice"]["draw"], 0.25);
  part_.choice.forced = true;
  EXPECT_EQ(entry()["choice"]["how"], "forced");
  part_.choice.id = -1;
  EXPECT_FALSE(entry().contains("choice"));
}

TEST_F(LedgerJson, WhatCanNotBeANumberIsNull) {
  part_.choice.measured = true;
  part_.choice.shaped_log_probability = -std::numeric_limits<float>::infinity();
  EXPECT_NE(dump(entry()).find("\"shaped_logprob\":null"), std::string::npos);
}

TEST(TokenJson, NumbersAndBytesAreReadable) {
  EXPECT_EQ(dump({{"p", shortest(0.8F)}, {"zero", -0.0}}), R"({"p":0.8,"zero":0.0})");
  EXPECT_EQ(dump("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
}

}  // namespace
}  // namespace couplet::story
