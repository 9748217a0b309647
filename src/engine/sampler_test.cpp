#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "kernels/kernel_testing.h"

namespace couplet::engine {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST(Philox, KnownAnswers) {  // published with the generator
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Uniform, IsPinned) {  // a change would change every answer
  EXPECT_EQ(uniform(0, 0, 0), static_cast<double>(0xe169c58d6627e8d5ULL >> 11) * 0x1p-53);
  EXPECT_EQ(uniform(42, 1, 7), uniform(42, 1, 7));
}

TEST(Uniform, EveryPartOfTheKeyCounts) {
  const std::uint64_t high_seed = 1ULL << 32;
  std::set<double> draws;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, high_seed})
    for (const std::uint32_t choice : {0U, 1U, 2U})
      for (const std::uint32_t position : {0U, 1U, 2U}) draws.insert(uniform(seed, choice, position));
  EXPECT_EQ(draws.size(), 27U);
}

double chi_square(const std::vector<int>& observed, const std::vector<double>& expected) {
  double sum = 0;
  for (std::size_t n = 0; n < observed.size(); ++n) {
    const double difference = observed[n] - expected[n];
    sum += difference * difference / expected[n];
  }
  return sum;
}

TEST(Uniform, FillsItsRangeEvenly) {
  for (const std::uint64_t seed : {0ULL, 1ULL, 42ULL, ~0ULL}) {
    std::vector<int> by_position(100), by_choice(100), pairs(100);
    for (std::uint32_t n = 0; n < 100000; ++n) {
      const double u = uniform(seed, 0, n);
      ASSERT_GE(u, 0);
      ASSERT_LT(u, 1);
      ++by_position[static_cast<std::size_t>(u * 100)];
      ++by_choice[static_cast<std::size_t>(uniform(seed, n, 5) * 100)];
      ++pairs[static_cast<std::size_t>(u * 10) * 10 + static_cast<std::size_t>(uniform(seed, 1, n) * 10)];
    }
    const std::vector<double> even(100, 1000);
    for (const auto& counts : {by_position, by_choice, pairs}) {
      EXPECT_LT(chi_square(counts, even), 149);  // 99 degrees of freedom: 1 in 1,000
      EXPECT_GT(chi_square(counts, even), 60);   // nor too even
    }
  }
}

class SelectToken : public ::testing::Test {
 protected:
  static constexpr int kVocab = 50;

  SelectToken() : logits_(kVocab) {
    for (int id = 0; id < kVocab; ++id) logits_[static_cast<std::size_t>(id)] = std::sin(static_cast<float>(id) * 1.7F);
  }
  TokenChoice select(const Selection& selection) {
    TokenChoice choice;
    EXPECT_TRUE(select_token(distribution_, logits_, selection, choice));
    return choice;
  }
  // A reply of 20 tokens after `prompt`.
  std::vector<TokenId> reply(const SamplingOptions& options) {
    std::vector<TokenId> tokens;
    while (tokens.size() < 20) tokens.push_back(select({.options = &options, .history = {kPrompt, tokens}}).id);
    return tokens;
  }

  inline static const std::vector<TokenId> kPrompt{1, 2, 3};
  std::vector<float> logits_;
  Distribution distribution_{kernels::testing::reference_level(), kVocab};
};

TEST_F(SelectToken, SeedsRepeatAndChoicesDiffer) {
  SamplingOptions options{.temperature = 1, .top_p = 1, .seed = 42};
  const auto first = reply(options);
  EXPECT_EQ(reply(options), first);
  std::set<std::vector<TokenId>> choices;
  for (options.choice = 0; options.choice < 3; ++options.choice) choices.insert(reply(options));
  EXPECT_EQ(choices.size(), 3U);
  EXPECT_TRUE(choices.contains(first));
  std::set<std::vector<TokenId>> seeds;
  options.choice = 0;
  for (options.seed = 0; options.seed < 20; ++options.seed) seeds.insert(reply(options));
  EXPECT_EQ(seeds.size(), 20U);
}

TEST_F(SelectToken, ADrawDependsOnThePositionAlone) {
  const SamplingOptions options{.temperature = 1, .top_p = 1, .seed = 9};
  const std::vector<TokenId> four{1, 2, 3, 4}, three{1, 2, 3}, one{4};
  for (int n = 0; n < 3; ++n) {  // other rows in between move nothing
    const TokenId id = select({.options = &options, .history = {four, {}}}).id;
    EXPECT_EQ(select({.options = &options, .history = {three, one}}).id, id);
    select({.options = &options, .history = {three, {}}});
  }
}

TEST_F(SelectToken, GreedyIsTheSameWithAnyOddOptions) {
  TokenId best = 0;
  for (TokenId id = 0; id < kVocab; ++id)
    if (logits_[static_cast<std::size_t>(id)] > logits_[static_cast<std::size_t>(best)]) best = id;
  logits_[static_cast<std::size_t>(best) + 1] = logits_[static_cast<std::size_t>(best)];  // a tie
  const int top_ks[] = {0, -1, 1, 7, 1000000000};
  const float top_ps[] = {1e-6F, 0.5F, 1}, min_ps[] = {0, 0.5F, 1};
  for (int n = 0; n < 20; ++n)
    for (const float temperature : {0.0F, 1e-40F, 1e-6F}) {
      const SamplingOptions options{.temperature = temperature, .top_k = top_ks[n % 5], .top_p = top_ps[n % 3],
                                    .min_p = min_ps[(n / 3) % 3], .seed = static_cast<std::uint64_t>(n)};
      EXPECT_EQ(select({.options = &options, .history = {kPrompt, {}}}).id, best);
    }
}

TEST_F(SelectToken, DrawsFollowTheProbabilities) {
  const SamplingOptions options{.temperature = 0.7F, .top_k = 20, .top_p = 0.9F, .seed = 3};
  ASSERT_TRUE(distribution_.assign(logits_, options, {}));
  const int kept = distribution_.num_kept();
  ASSERT_GT(kept, 5);
  std::vector<int> observed;
  std::vector<double> expected;
  std::vector<std::size_t> index(kVocab);
  for (TokenId id = 0; id < kVocab; ++id)
    if (distribution_.probability(id) > 0) {
      index[static_cast<std::size_t>(id)] = expected.size();
      expected.push_back(20000 * distribution_.probability(id));
    }
  ASSERT_EQ(expected.size(), static_cast<std::size_t>(kept));
  observed.resize(expected.size());
  for (std::uint32_t n = 0; n < 20000; ++n) {
    const TokenId id = distribution_.pick(uniform(options.seed, 0, n));
    ASSERT_GT(distribution_.probability(id), 0);
    ++observed[index[static_cast<std::size_t>(id)]];
  }
  EXPECT_LT(chi_square(observed, expected), 3.0 * kept);
}

TEST_F(SelectToken, AForcedTokenIsTakenAndMeasured) {
  const SamplingOptions options{.temperature = 1, .top_k = 2};
  TokenChoice choice = select({.options = &options, .forced = 17});
  EXPECT_EQ(choice.id, 17);
  EXPECT_TRUE(choice.forced);
  EXPECT_FALSE(choice.measured);
  EXPECT_TRUE(choice.alternatives.empty());
  choice = select({.options = &options, .forced = 17, .num_alternatives = 3});
  EXPECT_TRUE(choice.forced);
  EXPECT_TRUE(choice.measured);
  EXPECT_EQ(choice.num_kept, 2U);
  EXPECT_EQ(choice.alternatives.size(), 3U);
  choice = select({.options = &options, .measure = true});
  EXPECT_FALSE(choice.forced);
  EXPECT_TRUE(choice.measured);
}

TEST_F(SelectToken, ABadLogitIsAValueAndHurtsNoOtherRow) {
  const SamplingOptions options{.temperature = 1, .repetition_penalty = 1.3F, .seed = 5};
  const TokenId before = select({.options = &options, .history = {kPrompt, {}}}).id;
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    auto broken = logits_;
    broken[49] = bad;
    for (const TokenId forced : {-1, 4}) {
      TokenChoice choice{.id = 8, .measured = true};
      EXPECT_FALSE(select_token(distribution_, broken, {.options = &options, .forced = forced}, choice));
      EXPECT_EQ(choice.id, -1);
      EXPECT_FALSE(choice.measured);
    }
    EXPECT_EQ(select({.options = &options, .history = {kPrompt, {}}}).id, before);
  }
}

}  // namespace
}  // namespace couplet::engine
