#include "engine/weights_id.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "couplet/checkpoint.h"
#include "tests/property/tiny_model.h"

namespace couplet {
namespace {

std::string id_of(const testing::TinyModel& model, const std::string& name = "tiny", const OpenOptions& options = {}) {
  const testing::TinyModelFile file(model, name);
  return Checkpoint::open(file.path(), options)->weights_id();
}

TEST(WeightsId, NamesWeightsWhereverTheyLie) {
  testing::TinyModel model = testing::tiny_llama();
  const std::string id = id_of(model);
  EXPECT_EQ(id.size(), 16U);
  EXPECT_EQ(id_of(model, "another"), id);
  model.seed = 77;
  EXPECT_NE(id_of(model), id);
}

TEST(WeightsId, OtherMetadataOrQuantizationIsAnotherName) {
  testing::TinyModel model = testing::tiny_llama_f32();
  const std::string id = id_of(model);
  EXPECT_NE(id_of(model, "tiny", {.quantize = "q8_0"}), id);
  model.context += 1;  // weights stay the same
  EXPECT_NE(id_of(model), id);
}

TEST(DefaultSampling, WhatAModelLeavesOutIsNeutral) {
  EXPECT_FLOAT_EQ(default_sampling({}).temperature, 0.8F);
  EXPECT_FLOAT_EQ(default_sampling({}).top_p, 0.95F);
  SamplingDefaults own;
  own.top_k = 40;
  EXPECT_FLOAT_EQ(default_sampling(own).temperature, 1);
  EXPECT_FLOAT_EQ(default_sampling(own).top_p, 1);
  EXPECT_EQ(default_sampling(own).top_k, 40);
  own.temperature = 0.6F;
  EXPECT_FLOAT_EQ(default_sampling(own).temperature, 0.6F);
}

}  // namespace
}  // namespace couplet
