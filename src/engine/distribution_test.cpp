#include "engine/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/kernel_testing.h"

namespace couplet::engine {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const kernels::KernelTable& table() { return kernels::testing::reference_level(); }

// No truncation and T 1, unless said otherwise.
SamplingOptions plain() { return {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0}; }

// All probabilities of the kept distribution.
std::vector<double> probabilities(const std::vector<float>& logits, const SamplingOptions& options,
                                  const History& history = {}) {
  Distribution distribution(table(), static_cast<int>(logits.size()));
  EXPECT_TRUE(distribution.assign(logits, options, history));
  std::vector<double> result;
  for (std::size_t id = 0; id < logits.size(); ++id) result.push_back(distribution.probability(static_cast<TokenId>(id)));
  return result;
}
int num_kept(const std::vector<float>& logits, const SamplingOptions& options) {
  Distribution distribution(table(), static_cast<int>(logits.size()));
  EXPECT_TRUE(distribution.assign(logits, options, {}));
  return distribution.num_kept();
}
TokenChoice describe(const std::vector<float>& logits, const SamplingOptions& options, TokenId id,
                     int num_alternatives = 0) {
  Distribution distribution(table(), static_cast<int>(logits.size()));
  EXPECT_TRUE(distribution.assign(logits, options, {}));
  TokenChoice choice;
  distribution.describe(id, true, num_alternatives, choice);
  return choice;
}

TEST(Distribution, IsTheSoftmaxByTemperature) {
  const std::vector<float> logits{1, 3, -2, 0.5F};
  for (const float temperature : {0.25F, 1.0F, 3.0F}) {
    auto options = plain();
    options.temperature = temperature;
    const auto got = probabilities(logits, options);
    double sum = 0, total = 0;
    for (const float logit : logits) sum += std::exp(logit / temperature);
    for (std::size_t id = 0; id < logits.size(); ++id) {
      EXPECT_NEAR(got[id], std::exp(logits[id] / temperature) / sum, 1e-6);
      total += got[id];
    }
    EXPECT_NEAR(total, 1, 1e-12);
  }
}

TEST(Distribution, TopPTruncatesAfterTemperature) {
  SamplingOptions options{.temperature = 0.5F, .top_p = 0.8F};
  EXPECT_EQ(num_kept({4, 3, 1}, options), 1);
  options.temperature = 1;
  EXPECT_EQ(num_kept({4, 3, 1}, options), 2);
}

TEST(Distribution, TopKClampsOrIsOff) {
  auto options = plain();
  const std::vector<float> logits{1, 5, 3, 5};
  for (const int off : {0, -1, 4, 5, 1000000000}) {
    options.top_k = off;
    EXPECT_EQ(num_kept(logits, options), 4) << off;
  }
  options.top_k = 1;
  EXPECT_EQ(probabilities(logits, options), (std::vector<double>{0, 1, 0, 0}));  // ties by id
  options.top_k = 2;
  EXPECT_EQ(probabilities(logits, options), (std::vector<double>{0, 0.5, 0, 0.5}));
}

TEST(Distribution, TopPCountsWhatTopKLeft) {
  // Of all, the best has 0.64; of the best two, 0.73.
  auto options = plain();
  options.top_p = 0.7F;
  EXPECT_EQ(num_kept({3, 2, 1, 0}, options), 2);
  options.top_k = 2;
  EXPECT_EQ(num_kept({3, 2, 1, 0}, options), 1);
}

TEST(Distribution, MinPKeepsAPartOfTheBest) {
  auto options = plain();
  options.min_p = 0.5F;
  EXPECT_EQ(num_kept({1, 0.31F, 0.3F, -5}, options), 2);  // exp(-0.69) = 0.5016, exp(-0.7) = 0.4966
  options.min_p = 1;
  EXPECT_EQ(num_kept({1, 1, 0.999F}, options), 2);
  options.temperature = 1e30F;
  EXPECT_EQ(num_kept({1, 1, 0.999F}, options), 3);  // after temperature
}

TEST(Distribution, TinyTemperaturesAreGreedyAndFinite) {
  for (const float temperature : {0.0F, 1e-40F, 1e-10F}) {
    const SamplingOptions options{.temperature = temperature, .top_k = 0, .top_p = 1};
    EXPECT_EQ(probabilities({1, 7, 7, -1e30F}, options), (std::vector<double>{0, 1, 0, 0}));
  }
  const SamplingOptions options{.temperature = kGreedyBelow, .top_k = 0, .top_p = 1};
  EXPECT_EQ(probabilities({1, 7, 7, -3e38F}, options), (std::vector<double>{0, 0.5, 0.5, 0}));
  EXPECT_EQ(probabilities({-3e38F, 3e38F}, plain()), (std::vector<double>{0, 1}));
}

TEST(Distribution, HugeTemperaturesAreFlat) {
  const SamplingOptions options{.temperature = 3e38F, .top_k = 0, .top_p = 1};
  EXPECT_EQ(probabilities({1, 7, -9, 3}, options), (std::vector<double>(4, 0.25)));
}

// Bits equal those of logits that were shaped by hand.
void expect_shaped(const std::vector<float>& logits, const SamplingOptions& options, const History& history,
                   const std::vector<float>& by_hand) {
  auto unshaped = plain();
  unshaped.temperature = options.temperature;
  EXPECT_EQ(probabilities(logits, options, history), probabilities(by_hand, unshaped));
}

TEST(Distribution, LogitBiasIsAdded) {
  auto options = plain();
  options.logit_bias = {{0, 2}, {2, -100}, {0, 0.5F}};
  expect_shaped({1, 2, 3}, options, {}, {3.5F, 2, -97});
  options.logit_bias = {{1, 1e30F}};
  EXPECT_EQ(probabilities({1, 2, 3}, options), (std::vector<double>{0, 1, 0}));
}

TEST(Distribution, RepetitionCountsPromptAndReplyOnceEach) {
  auto options = plain();
  options.repetition_penalty = 2;
  const std::vector<TokenId> prompt{0, 1, 1}, reply{1, 2, 2};
  expect_shaped({3, -3, 1, 5}, options, {prompt, reply}, {1.5F, -6, 0.5F, 5});
  options.repetition_penalty = 0.5F;
  expect_shaped({3, -3, 1, 5}, options, {prompt, reply}, {6, -1.5F, 2, 5});
}

TEST(Distribution, PresenceAndFrequencyCountTheReplyAlone) {
  auto options = plain();
  options.presence_penalty = 1;
  const std::vector<TokenId> prompt{0, 0, 1}, reply{1, 2, 2, 2};
  expect_shaped({3, 3, 3, 3}, options, {prompt, reply}, {3, 2, 2, 3});
  options.presence_penalty = 0;
  options.frequency_penalty = 0.5F;
  expect_shaped({3, 3, 3, 3}, options, {prompt, reply}, {3, 2.5F, 1.5F, 3});
  options.presence_penalty = -1;
  expect_shaped({3, 3, 3, 3}, options, {prompt, reply}, {3, 3.5F, 2.5F, 3});
}

TEST(Distribution, ShapesInTheDocumentedOrder) {
  SamplingOptions options = plain();
  options.temperature = 0.5F;
  options.logit_bias = {{0, 2}};
  options.repetition_penalty = 2;
  options.presence_penalty = 1;
  const std::vector<TokenId> reply{0};
  expect_shaped({1, 0}, options, {{}, reply}, {0.5F, 0});  // (1 + 2) / 2 - 1; other orders give 1.5, 2 or 0.75
}

TEST(Distribution, ExtremePenaltiesStayFinite) {
  auto options = plain();
  options.logit_bias = {{0, 1e30F}, {1, -1e30F}};
  options.repetition_penalty = 1e-38F;
  const std::vector<TokenId> prompt{0, 1};
  EXPECT_EQ(probabilities({1, 1, 1}, options, {prompt, {}}), (std::vector<double>{1, 0, 0}));
  options.repetition_penalty = 3e38F;
  const auto got = probabilities({1, 1, 1}, options, {prompt, {}});  // as of 3e-9, -1e37, 1
  EXPECT_NEAR(got[0], 1 / (1 + std::exp(1.0)), 1e-6);
  EXPECT_EQ(got[1], 0);
}

TEST(Distribution, GreedyFollowsThePenalties) {
  SamplingOptions options{.temperature = 0, .logit_bias = {{2, 5}}};
  EXPECT_EQ(probabilities({3, 1, 0}, options), (std::vector<double>{0, 0, 1}));
}

TEST(Distribution, ALogitThatIsNotFiniteIsReported) {
  Distribution distribution(table(), 20);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInf, -kInf})
    for (const std::size_t place : {0U, 1U, 15U, 19U}) {
      std::vector<float> logits(20, 1);
      logits[place] = bad;
      EXPECT_FALSE(distribution.assign(logits, plain(), {}));
      EXPECT_FALSE(distribution.assign(logits, {.temperature = 0}, {}));
    }
}

TEST(Distribution, MeasuresTheModelsOwnAndTheShaped) {
  const std::vector<float> logits{2, 1, 0, -1};
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit);
  auto options = plain();
  options.temperature = 0.5F;
  options.top_k = 2;
  options.logit_bias = {{3, 10}};
  const TokenChoice best = describe(logits, options, 3, 10);  // alternatives: clamped to the vocabulary
  EXPECT_TRUE(best.measured);
  EXPECT_EQ(best.num_kept, 2U);
  EXPECT_NEAR(best.log_probability, -1 - std::log(sum), 1e-6);
  EXPECT_NEAR(best.shaped_log_probability, -std::log1p(std::exp(-14.0)), 1e-6);
  ASSERT_EQ(best.alternatives.size(), 4U);
  for (std::size_t n = 0; n < 4; ++n) {
    EXPECT_EQ(best.alternatives[n].id, static_cast<TokenId>(n));
    EXPECT_NEAR(best.alternatives[n].log_probability, logits[n] - std::log(sum), 1e-6);
  }
  EXPECT_NEAR(describe(logits, options, 0).shaped_log_probability, -14 - std::log1p(std::exp(-14.0)), 1e-5);
  EXPECT_EQ(describe(logits, options, 1).shaped_log_probability, -kInf);  // cut off: a forced token
  EXPECT_NEAR(describe(logits, options, 1).log_probability, 1 - std::log(sum), 1e-6);
}

TEST(Distribution, GreedyMeasuresAsCertain) {
  const TokenChoice choice = describe({1, 4, 4}, {.temperature = 0}, 1);
  EXPECT_EQ(choice.shaped_log_probability, 0);
  EXPECT_EQ(choice.num_kept, 1U);
  EXPECT_NEAR(choice.log_probability, -std::log(2 + std::exp(-3.0)), 1e-6);
  EXPECT_EQ(describe({1, 4, 4}, {.temperature = 0}, 2).shaped_log_probability, -kInf);
}

TEST(Distribution, EntropyInNats) {
  EXPECT_NEAR(describe(std::vector<float>(1000, -5), plain(), 0).entropy, std::log(1000), 1e-5);
  EXPECT_NEAR(describe({0, 100, 0}, plain(), 1).entropy, 0, 1e-12);
  const double p = 1 / (1 + std::exp(-1.0));
  EXPECT_NEAR(describe({1, 0}, plain(), 0).entropy, -p * std::log(p) - (1 - p) * std::log(1 - p), 1e-6);
}

TEST(Distribution, AlternativesAreTheBestByIdAmongEquals) {
  const TokenChoice choice = describe({1, 2, 2, 0, 2}, plain(), 0, 4);
  std::vector<TokenId> ids;
  for (const Alternative& alternative : choice.alternatives) ids.push_back(alternative.id);
  EXPECT_EQ(ids, (std::vector<TokenId>{1, 2, 4, 0}));
}

TEST(Distribution, NothingIsMeasuredUnasked) {
  Distribution distribution(table(), 3);
  const std::vector<float> logits{1, 2, 3};
  ASSERT_TRUE(distribution.assign(logits, plain(), {}));
  TokenChoice choice{.measured = true, .log_probability = 5, .alternatives = {{1, 2.0F}}};
  distribution.describe(2, false, 0, choice);
  EXPECT_EQ(choice.id, 2);
  EXPECT_FALSE(choice.measured);
  EXPECT_EQ(choice.log_probability, 0);
  EXPECT_TRUE(choice.alternatives.empty());
}

// What the header promises, naively: everything sorted, every weight kept.
struct Naive {
  std::vector<Candidate> kept;
  std::vector<double> masses;
  double kept_mass = 0;

  Naive(const std::vector<float>& logits, const SamplingOptions& options) {
    const auto weight = [&](float scaled) { return table().sum_exp(&scaled, 1, 0, nullptr); };
    for (std::size_t id = 0; id < logits.size(); ++id) kept.push_back({logits[id], static_cast<TokenId>(id)});
    const float best = std::ranges::max(logits);
    const auto scaled = [&](const Candidate& c) { return (c.logit - best) / options.temperature; };
    double all = 0;
    for (const Candidate& candidate : kept) all += weight(scaled(candidate));
    std::sort(kept.begin(), kept.end(), ranks_before);
    for (const Candidate& candidate : kept)
      masses.push_back((masses.empty() ? 0 : masses.back()) + weight(scaled(candidate)));
    std::size_t count = kept.size();
    if (options.top_k > 0) count = std::min(count, static_cast<std::size_t>(options.top_k));
    if (options.top_p < 1) {
      const double mass = static_cast<double>(options.top_p) * (count < kept.size() ? masses[count - 1] : all);
      std::size_t n = 1;
      while (n < count && masses[n - 1] < mass) ++n;
      count = n;
    }
    while (count > 1 && weight(scaled(kept[count - 1])) < static_cast<double>(options.min_p)) --count;
    kept_mass = count < kept.size() ? masses[count - 1] : all;
    kept.resize(count);
  }
  TokenId pick(double u) const {
    for (std::size_t n = 0; n < kept.size(); ++n)
      if (masses[n] > u * kept_mass) return kept[n].id;
    return -1;
  }
};

TEST(Distribution, EqualsANaiveSort) {
  std::mt19937 random(7);
  const auto any = [&](auto... values) {
    const float all[] = {static_cast<float>(values)...};
    return all[random() % sizeof...(values)];
  };
  Distribution distribution(table(), 2000);
  for (int round = 0; round < 300; ++round) {
    const float spread = any(0, 0.1, 1, 3, 10, 1000);
    const int levels = static_cast<int>(any(2, 20, 100000));
    std::vector<float> logits(2000);
    for (float& logit : logits)
      logit = spread * static_cast<float>(static_cast<int>(random() % static_cast<unsigned>(levels)) * 2 - levels) /
              static_cast<float>(levels);
    SamplingOptions options = plain();
    options.temperature = any(0.01, 0.5, 1, 1.7, 50);
    options.top_k = static_cast<int>(any(0, 0, 1, 40, 1999));
    options.top_p = any(1, 0.1, 0.95, 0.999999);
    options.min_p = any(0, 0, 0.05, 1);
    const Naive expected(logits, options);
    ASSERT_TRUE(distribution.assign(logits, options, {}));
    ASSERT_EQ(distribution.num_kept(), static_cast<int>(expected.kept.size())) << "round " << round;
    for (const double u : {0.0, 0.3, 0.9, 0.999, static_cast<double>(random()) * 0x1p-32})
      ASSERT_EQ(distribution.pick(u), expected.pick(u)) << "round " << round << " u " << u;
    const Candidate last = expected.kept.back();
    ASSERT_GE(distribution.probability(last.id), 0);
    if (expected.kept.size() < 2000) {
      double sum = 0;
      for (TokenId id = 0; id < 2000; ++id) sum += distribution.probability(id);
      ASSERT_NEAR(sum, 1, 1e-9);
    }
  }
}

TEST(Distribution, TheLastDrawIsATokenThatCanBeDrawn) {
  // The tail's weights are 0: even the greatest u must not reach it.
  std::vector<float> logits(100, -500);
  logits[40] = 0;
  logits[41] = -1;
  Distribution distribution(table(), 100);
  ASSERT_TRUE(distribution.assign(logits, plain(), {}));
  EXPECT_EQ(distribution.num_kept(), 100);
  EXPECT_EQ(distribution.pick(1 - 0x1p-53), 41);
  EXPECT_EQ(distribution.pick(1), 41);
}

TEST(Distribution, ARowLeavesNothingBehind) {
  std::vector<float> logits(300);
  for (std::size_t id = 0; id < logits.size(); ++id) logits[id] = std::sin(static_cast<float>(id));
  SamplingOptions shaping = plain();
  shaping.repetition_penalty = 1.5F;
  shaping.frequency_penalty = 0.5F;
  const std::vector<TokenId> prompt{1, 2, 3}, reply{3, 4, 4};
  Distribution used(table(), 300);
  ASSERT_TRUE(used.assign(logits, shaping, {prompt, reply}));
  used.pick(0.99999);
  for (const auto& options : {plain(), shaping}) {
    Distribution fresh(table(), 300);
    ASSERT_TRUE(fresh.assign(logits, options, {prompt, reply}));
    ASSERT_TRUE(used.assign(logits, options, {prompt, reply}));
    for (TokenId id = 0; id < 300; ++id) ASSERT_EQ(used.probability(id), fresh.probability(id));
  }
}

TEST(Distribution, EveryLevelGivesTheSameBits) {
  constexpr int kVocab = 5003;
  kernels::testing::Random random(3);
  const auto logits = random.floats(kVocab, -20, 5);
  SamplingOptions options{.temperature = 0.7F, .top_p = 0.9F, .repetition_penalty = 1.1F};
  const std::vector<TokenId> prompt{1, 2, 3, 5000};
  std::vector<TokenChoice> choices;
  for (const kernels::KernelTable* level : kernels::testing::all_levels()) {
    Distribution distribution(*level, kVocab);
    ASSERT_TRUE(distribution.assign(logits, options, {prompt, {}}));
    distribution.describe(distribution.pick(0.6), true, 20, choices.emplace_back());
  }
  for (const TokenChoice& choice : choices) {
    EXPECT_EQ(choice.id, choices[0].id);
    EXPECT_EQ(choice.log_probability, choices[0].log_probability);
    EXPECT_EQ(choice.shaped_log_probability, choices[0].shaped_log_probability);
    EXPECT_EQ(choice.entropy, choices[0].entropy);
    EXPECT_EQ(choice.num_kept, choices[0].num_kept);
    for (std::size_t n = 0; n < 20; ++n) {
      EXPECT_EQ(choice.alternatives[n].id, choices[0].alternatives[n].id);
      EXPECT_EQ(choice.alternatives[n].log_probability, choices[0].alternatives[n].log_probability);
    }
  }
}

}  // namespace
}  // namespace couplet::engine
