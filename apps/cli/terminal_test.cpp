#include "terminal.h"

#include <gtest/gtest.h>

namespace couplet::cli {
namespace {

TEST(Terminal, ControlCharactersAndBrokenBytesAreMadeVisible) {
  EXPECT_EQ(visible("a\nb\tc\x1b[31m\x7f"), "a\\nb\\tc\\x1b[31m\\x7f");
  EXPECT_EQ(visible("\xf0\x9f\x98"), "\\xf0\\x9f\\x98");
  EXPECT_EQ(visible("\xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80"),
            "\\xc0\\x80 \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80");
  EXPECT_EQ(visible("“日本” \xf0\x9f\x98\x8a"), "“日本” \xf0\x9f\x98\x8a");
  EXPECT_EQ(visible("\u0085\u202e\u2028"), "\\u0085\\u202e\\u2028");
  EXPECT_EQ(visible(std::string_view("\0", 1)), "\\x00");
}

TEST(Terminal, HarmlessTextKeepsNewlinesAndShowsEscapes) {
  EXPECT_EQ(harmless("a\n\tb"), "a\n\tb");
  EXPECT_EQ(harmless("\x1b]0;title\x07"), "\u241b]0;title\u2407");
  EXPECT_EQ(harmless("\x7f"), "\u2421");
  EXPECT_EQ(harmless(std::string_view("\0a", 2)), "\u2400a");
  EXPECT_EQ(harmless("\u009b31m \u202e\u2066 \x9b"), "\\u009b31m \\u202e\\u2066 \\x9b");
  EXPECT_EQ(harmless("“日本” \xf0\x9f\x98\x8a\u0301"), "“日本” \xf0\x9f\x98\x8a\u0301");
}

TEST(Terminal, WidthCountsColumns) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("日本"), 4);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("“x”"), 3);
  EXPECT_EQ(display_width(""), 0);
}

TEST(Terminal, FitGivesExactlyTheWidthAskedFor) {
  for (const char* text :
       {"", "a", "abcdefgh", "日本日本日本", "a日b本c日d", "e\u0301e\u0301e\u0301e\u0301e\u0301"}) {
    for (const int width : {1, 2, 3, 4, 5, 8, 20}) {
      EXPECT_EQ(display_width(fit(text, width)), width) << text << " " << width;
      EXPECT_EQ(display_width(fit_end(text, width)), width) << text << " " << width;
    }
  }
  EXPECT_EQ(fit("abcdef", 4), "abc…");
  EXPECT_EQ(fit_end("abcdef", 4), "…def");
  EXPECT_EQ(fit("ab", 4), "ab  ");
  EXPECT_EQ(pad_left("日", 4), "  日");
}

TEST(Terminal, NumbersReadWell) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(49152), "49,152");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(amount(999), "999 B");
  EXPECT_EQ(amount(96'300'000), "96 MB");
  EXPECT_EQ(amount(4'620'000'000), "4.6 GB");
  EXPECT_EQ(percent(0.312), "31.2 %");
  EXPECT_EQ(percent(0.0001), "<0.1 %");
  EXPECT_EQ(percent(0), "0.0 %");
  EXPECT_EQ(milliseconds(14.62), "14.6 ms");
  EXPECT_EQ(milliseconds(1234), "1234 ms");
  EXPECT_EQ(milliseconds(65'400), "65.4 s");
}

TEST(Terminal, ABarIsAsLongAsItsShare) {
  EXPECT_EQ(bar(0, 10), "");
  EXPECT_EQ(bar(0.5, 10), "#####");
  EXPECT_EQ(bar(1, 10), "##########");
  EXPECT_EQ(bar(7, 10), "##########");
}

}  // namespace
}  // namespace couplet::cli
