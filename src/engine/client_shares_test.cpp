#include "engine/client_shares.h"

#include <gtest/gtest.h>

namespace couplet::engine {
namespace {

TEST(ClientShares, WhoComesStartsLevelWithTheLeastServed) {
  ClientShares shares;
  ClientShares::Client& first = shares.join(1);
  ClientShares::Client& second = shares.join(2);
  EXPECT_EQ(first.served, 0);
  first.served = 1000;
  second.served = 400;
  shares.settle();
  EXPECT_EQ(shares.join(3).served, 400);
  EXPECT_EQ(&shares.join(2), &second);
  EXPECT_EQ(second.served, 400);
}

TEST(ClientShares, LeavingAndComingBackForgivesNothing) {
  ClientShares shares;
  shares.join(1).served = 100;
  ClientShares::Client& debtor = shares.join(2);
  debtor.served = 900;
  shares.settle();
  shares.leave(debtor);
  shares.settle();
  EXPECT_EQ(shares.join(2).served, 900);
}

TEST(ClientShares, NobodySavesUp) {
  ClientShares shares;
  ClientShares::Client& busy = shares.join(1);
  ClientShares::Client& idle = shares.join(2);
  shares.leave(idle);
  busy.served = 1500;
  shares.settle();
  EXPECT_EQ(shares.join(2).served, 1500);
}

TEST(ClientShares, WhatNobodyElseWantedCountsUpToABound) {
  ClientShares shares;
  ClientShares::Client& alone = shares.join(1);
  ClientShares::Client& trickle = shares.join(2);
  alone.served = 1e6;
  trickle.served = 10;
  shares.settle();
  EXPECT_EQ(alone.served, 10 + ClientShares::kMostAhead);
}

TEST(ClientShares, ClientsWithoutWorkOrDebtAreForgotten) {
  ClientShares shares;
  for (std::uint64_t id = 0; id < 1000; ++id) shares.leave(shares.join(id));
  ClientShares::Client& last = shares.join(5000);
  shares.settle();
  EXPECT_EQ(shares.num_clients(), 1U);
  shares.leave(last);
  last.served = 300;
  shares.settle();  // nobody is at work: there is nobody to owe
  EXPECT_EQ(shares.num_clients(), 0U);
  EXPECT_EQ(shares.join(5000).served, 0);
}

}  // namespace
}  // namespace couplet::engine
