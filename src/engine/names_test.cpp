#include <gtest/gtest.h>

#include <set>
#include <string>

#include "couplet/engine.h"

namespace couplet {
namespace {

TEST(Names, EveryReasonHasItsOwn) {
  std::set<std::string> names;
  const int last = static_cast<int>(StopReason::cache_range);
  for (int reason = 0; reason <= last; ++reason) names.insert(name(static_cast<StopReason>(reason)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(last) + 1);
  EXPECT_FALSE(names.contains("?"));
  EXPECT_STREQ(name(StopReason::max_tokens), "max_tokens");
}

TEST(Names, EveryStateOfACopyHasItsOwn) {
  std::set<std::string> names;
  const int last = static_cast<int>(PackedCopyState::failed);
  for (int state = 0; state <= last; ++state) names.insert(name(static_cast<PackedCopyState>(state)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(last) + 1);
  EXPECT_FALSE(names.contains("?"));
}

TEST(Names, StagesAndPrecisions) {
  EXPECT_STREQ(name(Stage::prefill), "prefill");
  EXPECT_STREQ(name(Stage::decode), "decode");
  EXPECT_STREQ(name(Precision::fast), "fast");
  EXPECT_STREQ(name(Precision::fine), "fine");
  EXPECT_STREQ(name(CacheFormat::q16), "q16");
  EXPECT_STREQ(name(CacheFormat::f16), "f16");
}

}  // namespace
}  // namespace couplet
