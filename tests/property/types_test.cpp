// Every quantized tensor type through a whole model: the logits are those of the same weights written as F32, and the same
// bits at every level, in every schedule.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/property/runner.h"

namespace couplet {
namespace {

using formats::TensorType;
using kernels::PageFormat;
using testing::Loaded;
using testing::ones;
using testing::random_tokens;
using testing::Runner;
using testing::Trace;

testing::TinyModel tiny_model_of(TensorType type, bool as_floats = false) {
  testing::TinyModel model = testing::tiny_llama_k();  // rows of whole blocks
  model.num_layers = 2;
  model.types = {type};
  model.as_floats = as_floats;
  return model;
}

std::vector<TensorType> quantized_types() {
  std::vector<TensorType> types;
  for (int i = 0; i < formats::kNumTensorTypes; ++i)
    if (formats::info(static_cast<TensorType>(i)).block_values > 1) types.push_back(static_cast<TensorType>(i));
  return types;
}

class Types : public ::testing::TestWithParam<TensorType> {};

// In precision fine, two planes leave 15 bits of activations, and weights as large as these amplify what is lost. The greatest
// difference seen, in parts of the greatest logit: 2.4e-3 for Q5_K, of these types' own 7e-4. A code or a scale at the wrong
// place shows as tens of percent.
TEST_P(Types, LogitsAreThoseOfTheSameWeightsInF32) {
  const auto tokens = random_tokens(40, 8);
  const Trace expected = Runner(Loaded(tiny_model_of(GetParam(), true)), {.pages = PageFormat::q16_fine}).run_alone(tokens);
  const Trace got = Runner(Loaded(tiny_model_of(GetParam())), {.pages = PageFormat::q16_fine}).run_alone(tokens);
  ASSERT_EQ(got.logits.size(), expected.logits.size());
  double difference = 0, greatest = 0;
  for (std::size_t i = 0; i < got.logits.size(); ++i) {
    ASSERT_TRUE(std::isfinite(got.logits[i]));
    difference = std::max(difference, std::abs(static_cast<double>(got.logits[i]) - static_cast<double>(expected.logits[i])));
    greatest = std::max(greatest, std::abs(static_cast<double>(expected.logits[i])));
  }
  EXPECT_LT(difference, 5e-3 * greatest);
}

TEST_P(Types, LevelsThreadsAndSchedulesChangeNothing) {
  const Loaded loaded(tiny_model_of(GetParam()));
  const auto tokens = random_tokens(40, 9);
  const kernels::KernelTable* levels[8];
  const int num_levels = kernels::runnable_levels(levels);
  for (const PageFormat pages : {PageFormat::q16, PageFormat::q16_fine}) {
    const Trace expected = Runner(loaded, {"reference", 1, pages}).run_alone(tokens);
    for (int level = 0; level < num_levels; ++level) {
      Runner runner(loaded, {levels[level]->name, 2, pages});
      EXPECT_TRUE(expected == runner.run_alone(tokens)) << levels[level]->name;
      EXPECT_TRUE(expected == runner.run_alone(tokens, {13, 1, 1, 20})) << levels[level]->name;
      EXPECT_TRUE(expected == runner.run_alone(tokens, ones(40))) << levels[level]->name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, Types, ::testing::ValuesIn(quantized_types()),
                         [](const auto& info) { return std::string(formats::info(info.param).name); });

}  // namespace
}  // namespace couplet
