#include "line_score.h"

#include <gtest/gtest.h>

#include <cmath>

namespace couplet::cli {
namespace {

TEST(LineScore, LogProbabilitiesAreTheSoftmaxsInDouble) {
  LineScore score({0, 2, 1}, {{0}, {}, {2, 1}}, 2);
  const std::vector<std::vector<float>> logits = {{1, 2, 3}, {0, 0, 0}, {-100, 50, 50}};
  for (int n = 0; n < 3; ++n) {
    EXPECT_FALSE(score.complete());
    score.take(n, logits[static_cast<std::size_t>(n)]);
  }
  EXPECT_TRUE(score.complete());
  const double sum = std::exp(1) + std::exp(2) + std::exp(3);
  ASSERT_EQ(score.next_logprob().size(), 2U);
  EXPECT_NEAR(score.next_logprob()[0], 3 - std::log(sum), 1e-14);
  EXPECT_NEAR(score.next_logprob()[1], -std::log(3), 1e-14);
  EXPECT_NEAR(score.want_logprobs()[0][0], 1 - std::log(sum), 1e-14);
  EXPECT_TRUE(score.want_logprobs()[1].empty());
  EXPECT_NEAR(score.want_logprobs()[2][0], -std::log(2), 1e-14);
  EXPECT_EQ(score.top_ids()[0], (std::vector<TokenId>{2, 1}));
  EXPECT_EQ(score.top_ids()[1], (std::vector<TokenId>{0, 1}));  // ties go to the lowest id
  EXPECT_EQ(score.top_ids()[2], (std::vector<TokenId>{1, 2}));
  EXPECT_NEAR(score.top_logprobs()[0][1], 2 - std::log(sum), 1e-14);
}

TEST(LineScore, MoreThanTheVocabularyIsAllOfIt) {
  LineScore score({0}, {}, 10);
  score.take(0, std::vector<float>{1, 3, 2});
  EXPECT_EQ(score.top_ids()[0], (std::vector<TokenId>{1, 2, 0}));
  EXPECT_TRUE(score.next_logprob().empty());
}

TEST(LineScore, TheHashSeesEveryBitOfEveryPosition) {
  const auto hash = [](const std::vector<std::vector<float>>& rows) {
    LineScore score(std::vector<TokenId>(rows.size()), {}, 0);
    for (std::size_t n = 0; n < rows.size(); ++n) score.take(static_cast<int>(n), rows[n]);
    return score.hash();
  };
  const std::string base = hash({{1, 2}, {3, 4}});
  EXPECT_EQ(base.size(), 32U);
  EXPECT_EQ(base, hash({{1, 2}, {3, 4}}));
  EXPECT_NE(base, hash({{1, 2}, {3, std::nextafterf(4, 5)}}));
  EXPECT_NE(base, hash({{3, 4}, {1, 2}}));
  EXPECT_NE(hash({{0, 1}}), hash({{-0.0F, 1}}));
  // XXH3-128 of the 16 bytes of 1.0F, 2.0F, 3.0F, 4.0F, as xxh128sum prints it.
  EXPECT_EQ(base, "2babafcad3709c7ce3b3073547aa9dc3");
}

}  // namespace
}  // namespace couplet::cli
