// Prefill and decode are one function: however a sequence's rows are cut into steps, whoever shares a step with it,
// on however many threads and at whatever level, logits and cached bytes are the same bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <random>

#include "tests/property/runner.h"

namespace couplet {
namespace {

using kernels::PageFormat;
using testing::kMaxSequences;
using testing::kPageFormats;
using testing::Loaded;
using testing::ones;
using testing::random_tokens;
using testing::Runner;
using testing::TinyModel;
using testing::Trace;

struct NamedModel {
  const char* name;
  TinyModel model;
  friend std::ostream& operator<<(std::ostream& out, const NamedModel& m) { return out << m.name; }
};

class ForwardProperty : public ::testing::TestWithParam<NamedModel> {
 protected:
  ForwardProperty() : loaded_(GetParam().model) {}
  Loaded loaded_;
};

TEST_P(ForwardProperty, LogitsDependOnTokensAtAll) {
  Runner runner(loaded_, {});
  const Trace a = runner.run_alone(random_tokens(20, 1)), b = runner.run_alone(random_tokens(20, 2));
  EXPECT_FALSE(a == b);
  EXPECT_TRUE(std::all_of(a.logits.begin(), a.logits.end(), [](float x) { return std::isfinite(x); }));
  EXPECT_NE(a.logits[0], a.logits[1]);
}

TEST_P(ForwardProperty, AnyCutOfThePromptGivesTheSameBits) {
  for (const PageFormat pages : kPageFormats) {
    const int planes = static_cast<int>(pages);
    Runner runner(loaded_, {.pages = pages});
    const auto tokens = random_tokens(600, 3);
    const Trace whole = runner.run_alone(tokens);
    EXPECT_TRUE(whole == runner.run_alone(tokens, {1})) << planes;
    EXPECT_TRUE(whole == runner.run_alone(tokens, {7, 64, 3, 1, 1, 250})) << planes;
    EXPECT_TRUE(whole == runner.run_alone(tokens, {255, 1, 1, 1})) << planes;
    EXPECT_TRUE(whole == runner.run_alone(tokens, {599, 1})) << planes;
  }
}

TEST_P(ForwardProperty, DecodeRowByRowEqualsPrefill) {
  for (const PageFormat pages : kPageFormats) {
    Runner runner(loaded_, {.pages = pages});
    const auto tokens = random_tokens(300, 4);
    const Trace whole = runner.run_alone(tokens);
    EXPECT_TRUE(whole == runner.run_alone(tokens, ones(300)));
    std::vector<int> half = ones(151);
    half[0] = 150;
    EXPECT_TRUE(whole == runner.run_alone(tokens, half));
  }
}

TEST_P(ForwardProperty, StrangersInTheBatchChangeNothing) {
  Runner runner(loaded_, {});
  std::vector<std::vector<TokenId>> sequences;
  for (const int length : {280, 1, 33, 90, 16, 17}) sequences.push_back(random_tokens(length, static_cast<std::uint64_t>(length)));
  const auto together = runner.run(sequences, {{40, 1, 1, 200}, {}, {2, 2, 2}, ones(90), {0, 0, 5}, {17}});
  for (std::size_t i = 0; i < sequences.size(); ++i)
    EXPECT_TRUE(together[i] == runner.run_alone(sequences[i])) << i;
}

TEST_P(ForwardProperty, ThreadsAndLevelsChangeNothing) {
  const auto tokens = random_tokens(70, 5);
  const kernels::KernelTable* levels[8];
  const int num_levels = kernels::runnable_levels(levels);
  ASSERT_GE(num_levels, 1);
  for (const PageFormat pages : kPageFormats) {
    const Trace expected = Runner(loaded_, {"reference", 1, pages}).run_alone(tokens);
    for (int level = 0; level < num_levels; ++level)
      for (const int threads : {1, 2, 5}) {
        Runner runner(loaded_, {levels[level]->name, threads, pages});
        EXPECT_TRUE(expected == runner.run_alone(tokens)) << levels[level]->name << " " << threads;
        EXPECT_TRUE(expected == runner.run_alone(tokens, {30, 1, 1, 1, 7})) << levels[level]->name << " " << threads;
      }
  }
}

TEST_P(ForwardProperty, RandomSchedulesOfRandomBatches) {
  Runner runner(loaded_, {.num_threads = 2});
  std::mt19937_64 random(6);
  for (int round = 0; round < 4; ++round) {
    std::vector<std::vector<TokenId>> sequences;
    std::vector<std::vector<int>> cuts;
    const int num = 1 + static_cast<int>(random() % kMaxSequences);
    for (int i = 0; i < num; ++i) {
      sequences.push_back(random_tokens(1 + static_cast<int>(random() % 100), random()));
      std::vector<int> cut;
      for (int step = 0; step < 40; ++step) cut.push_back(static_cast<int>(random() % (random() % 2 == 0 ? 2 : 20)));
      cuts.push_back(cut);
    }
    const auto together = runner.run(sequences, cuts);
    for (std::size_t i = 0; i < sequences.size(); ++i)
      EXPECT_TRUE(together[i] == runner.run_alone(sequences[i])) << round << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(TinyModels, ForwardProperty,
                         ::testing::Values(NamedModel{"llama", testing::tiny_llama()},
                                           NamedModel{"llama_k", testing::tiny_llama_k()},
                                           NamedModel{"llama_f32", testing::tiny_llama_f32()},
                                           NamedModel{"gemma3", testing::tiny_gemma()}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace couplet
