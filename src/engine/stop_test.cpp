#include "engine/stop.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "base/check.h"

namespace couplet::engine {
namespace {

using Texts = std::vector<std::string>;

struct Reply {
  std::string shown;
  bool matched = false;
  bool operator==(const Reply&) const = default;
};
void showValue(const Reply& reply, std::ostream& out) { out << '"' << reply.shown << "\" " << reply.matched; }

Reply stream(const Texts& stops, const Texts& pieces) {
  StopMatcher matcher(stops);
  Reply reply;
  for (const std::string& piece : pieces) reply.shown += matcher.push(piece);
  reply.shown += matcher.flush();
  reply.matched = matcher.matched();
  return reply;
}

// By its meaning: the shortest beginning of the text that ends with a stop text, less the longest of those.
Reply naive(const Texts& stops, const std::string& text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& stop : stops)
      if (std::string_view(text).substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

TEST(StopMatcher, PassesEverythingWithoutStops) {
  EXPECT_EQ(stream({}, {"ab", "", "c"}), (Reply{"abc", false}));
}

TEST(StopMatcher, HoldsBackWhatMayBecomeAStop) {
  StopMatcher matcher(Texts{"END"});
  EXPECT_EQ(matcher.push("aE"), "a");
  EXPECT_EQ(matcher.held(), "E");
  EXPECT_EQ(matcher.push("N"), "");
  EXPECT_EQ(matcher.held(), "EN");
  EXPECT_EQ(matcher.push(""), "");
  EXPECT_EQ(matcher.push("x"), "ENx");  // it was none
  EXPECT_EQ(matcher.push("yEND"), "y");
  EXPECT_TRUE(matcher.matched());
  EXPECT_EQ(matcher.held(), "");
}

TEST(StopMatcher, DropsWhatComesAfterAMatch) {
  StopMatcher matcher(Texts{"x"});
  EXPECT_EQ(matcher.push("axb"), "a");
  EXPECT_EQ(matcher.push("c"), "");
  EXPECT_EQ(matcher.flush(), "");
}

TEST(StopMatcher, CutsInsideAToken) {
  EXPECT_EQ(stream({"b c"}, {"a", "ab cd", "e"}), (Reply{"aa", true}));
}

TEST(StopMatcher, TheEarliestMatchWins) {
  EXPECT_EQ(stream({"ab", "abc"}, {"xabc"}), (Reply{"x", true}));
  EXPECT_EQ(stream({"abc", "ab"}, {"xab", "c"}), (Reply{"x", true}));
  EXPECT_EQ(stream({"abcde", "bcd"}, {"abcde"}), (Reply{"a", true}));  // complete first
  EXPECT_EQ(stream({"bc", "abc"}, {"xabc"}), (Reply{"x", true}));      // complete together: the longest
  EXPECT_EQ(stream({"c", "a"}, {"xyabc"}), (Reply{"xy", true}));
}

TEST(StopMatcher, ALimitInsideAPartialMatchLosesNothing) {
  EXPECT_EQ(stream({"\n"}, {"a", " b"}), (Reply{"a b", false}));
  EXPECT_EQ(stream({"  x"}, {"a ", " "}), (Reply{"a  ", false}));
  StopMatcher matcher(Texts{"  x"});
  EXPECT_EQ(matcher.push("a  "), "a");
  EXPECT_EQ(matcher.flush(), "  ");
  EXPECT_EQ(matcher.flush(), "");  // nothing twice
}

TEST(StopMatcher, FallsBackWithinAStop) {
  EXPECT_EQ(stream({"aab"}, {"a", "a", "a", "b"}), (Reply{"a", true}));
  EXPECT_EQ(stream({"abab", "bb"}, {"aba", "abb"}), (Reply{"abaa", true}));
}

TEST(StopMatcher, AnEmojiIsHeldWhole) {
  StopMatcher matcher(Texts{"\U0001F60A!"});
  EXPECT_EQ(matcher.push("a\U0001F60A"), "a");
  EXPECT_EQ(matcher.push("?"), "\U0001F60A?");
  EXPECT_EQ(matcher.push("\U0001F60B"), "\U0001F60B");  // shares three bytes with it
  EXPECT_EQ(matcher.push("\U0001F60A!"), "");
  EXPECT_TRUE(matcher.matched());
}

TEST(StopMatcher, AHundredStops) {
  Texts stops;
  for (int n = 0; n < 100; ++n) stops.push_back("<" + std::to_string(n) + ">");
  EXPECT_EQ(stream(stops, {"a<100", ">b<", "9", "9", ">c"}), (Reply{"a<100>b", true}));
}

TEST(StopMatcher, IsUsedAgainAfterReset) {
  StopMatcher matcher(Texts{"ab"});
  matcher.push("ab");
  matcher.reset();
  EXPECT_FALSE(matcher.matched());
  EXPECT_EQ(matcher.push("ca"), "c");
  matcher.reset();
  EXPECT_EQ(matcher.push("b"), "b");  // the "a" before is forgotten
}

TEST(StopMatcher, AnEmptyStopIsAFault) { EXPECT_THROW(StopMatcher(Texts{"a", ""}), Fault); }

// Few letters, so that stops overlap each other and themselves.
rc::Gen<std::string> text_of(int max_letters) {
  return rc::gen::mapcat(rc::gen::inRange(0, max_letters + 1), [](int n) {
    return rc::gen::container<std::string>(static_cast<std::size_t>(n), rc::gen::element('a', 'b', 'c'));
  });
}

RC_GTEST_PROP(StopMatcherProperty, AnySplitEqualsANaiveSearchOfTheWhole, ()) {
  const auto stops = *rc::gen::container<Texts>(
      rc::gen::suchThat(text_of(5), [](const std::string& stop) { return !stop.empty(); }));
  const auto pieces = *rc::gen::container<Texts>(text_of(6));
  std::string whole;
  for (const std::string& piece : pieces) whole += piece;
  const Reply expected = naive(stops, whole);
  RC_ASSERT(stream(stops, pieces) == expected);
  RC_ASSERT(stream(stops, {whole}) == expected);
}

RC_GTEST_PROP(StopMatcherProperty, NothingOfAStopIsShownBeforeItsEnd, ()) {
  const auto stops = *rc::gen::container<Texts>(
      rc::gen::suchThat(text_of(4), [](const std::string& stop) { return !stop.empty(); }));
  const auto text = *text_of(30);
  const Reply expected = naive(stops, text);
  StopMatcher matcher(stops);
  std::string shown;
  for (const char letter : text) {
    shown += matcher.push({&letter, 1});
    RC_ASSERT(expected.shown.starts_with(shown));
    // Held back is exactly the longest end that begins a stop text.
    if (!matcher.matched())
      for (const std::string& stop : stops)
        for (std::size_t n = 1; n < stop.size(); ++n)
          if ((shown + std::string(matcher.held())).ends_with(stop.substr(0, n))) RC_ASSERT(matcher.held().size() >= n);
  }
}

}  // namespace
}  // namespace couplet::engine
