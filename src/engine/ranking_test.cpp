#include "engine/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/check.h"

namespace couplet::engine {
namespace {

std::vector<Candidate> sorted(std::span<const float> logits) {
  std::vector<Candidate> all;
  for (std::size_t id = 0; id < logits.size(); ++id) all.push_back({logits[id], static_cast<TokenId>(id)});
  std::sort(all.begin(), all.end(), ranks_before);
  return all;
}

TEST(Ranking, EqualsAFullSortHoweverFarOneLooks) {
  std::mt19937 random(1);
  Ranking ranking(3000);
  for (const float step : {0.0F, 0.001F, 1.0F, 20.0F, 1e36F}) {  // few to many ties, narrow to the whole of float
    std::vector<float> logits(3000);
    for (float& logit : logits) logit = step * static_cast<float>(static_cast<int>(random() % 101) - 50);
    const auto expected = sorted(logits);
    ranking.reset(logits, expected[0].logit, 8);
    for (const int rank : {0, 1, 63, 64, 65, 1000, 500, 2999, 0})
      for (int n = 0; n <= rank; n += 7) {
        ASSERT_EQ(ranking.at(n).id, expected[static_cast<std::size_t>(n)].id) << "step " << step << " rank " << n;
        ASSERT_EQ(ranking.at(n).logit, expected[static_cast<std::size_t>(n)].logit);
      }
  }
}

TEST(Ranking, SortsOnlyWhatIsLookedAt) {
  constexpr int kVocab = 262144;
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(kVocab);
  for (float& logit : logits) logit = normal(random);
  const float max = *std::ranges::max_element(logits);
  Ranking ranking(kVocab);
  for (const float band : {8.0F, 1e9F}) {  // a band for a few, one that holds all
    ranking.reset(logits, max, band);
    EXPECT_EQ(ranking.at(0).logit, max);
    EXPECT_EQ(ranking.num_sorted(), 64);
    ranking.at(999);
    EXPECT_EQ(ranking.num_sorted(), 1000);
    ranking.at(1000);
    EXPECT_EQ(ranking.num_sorted(), 2000);
  }
}

TEST(Ranking, EqualLogitsStandByIdWithoutAFullSort) {
  const std::vector<float> logits(100000, -0.0F);
  Ranking ranking(100000);
  ranking.reset(logits, 0, 8);
  for (int n = 0; n < 50; ++n) EXPECT_EQ(ranking.at(n).id, n);
  EXPECT_EQ(ranking.num_sorted(), 64);
}

TEST(Ranking, AnInfiniteBandAndOneTokenWork) {
  const std::vector<float> logits{-3e38F};
  Ranking ranking(1);
  ranking.reset(logits, -3e38F, std::numeric_limits<float>::infinity());
  EXPECT_EQ(ranking.at(0).id, 0);
  EXPECT_THROW(ranking.at(1), Fault);
}

}  // namespace
}  // namespace couplet::engine
