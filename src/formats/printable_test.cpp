#include "formats/printable.h"

#include <gtest/gtest.h>

namespace couplet::formats {
namespace {

TEST(Printable, TextIsKeptAndTheRestIsEscaped) {
  EXPECT_EQ(in_quotes("blk.3.attn_q.weight"), "\"blk.3.attn_q.weight\"");
  EXPECT_EQ(in_quotes(""), "\"\"");
  EXPECT_EQ(in_quotes("größe 日本 \U0001F60A"), "\"größe 日本 \U0001F60A\"");
  EXPECT_EQ(in_quotes("a\"b\\c"), "\"a\\x22b\\x5cc\"");
  EXPECT_EQ(in_quotes(std::string_view("a\0\n\x1b\x7f", 5)), "\"a\\x00\\x0a\\x1b\\x7f\"");
  EXPECT_EQ(in_quotes("\xc2\x9b"), "\"\\xc2\\x9b\"");           // a control character of two bytes
  EXPECT_EQ(in_quotes("\u202egnp"), "\"\\xe2\\x80\\xaegnp\"");  // turns the text around
}

TEST(Printable, BytesThatAreNotUtf8AreEscapedOneByOne) {
  for (const char* bad :
       {"\xff", "\x80", "\xc0\x80", "\xc3", "\xc3(", "\xe0\x80\x80", "\xed\xa0\x80", "\xe2\x82",
        "\xf4\x90\x80\x80", "\xf0\x80\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80"}) {
    EXPECT_FALSE(is_printable(bad)) << in_quotes(bad);
    EXPECT_TRUE(is_printable(in_quotes(bad))) << in_quotes(bad);
  }
  EXPECT_EQ(in_quotes("\xe2\x82z"), "\"\\xe2\\x82z\"");
  for (const char* good :
       {"\xc2\xa0", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_printable(good)) << in_quotes(good);
  }
}

TEST(Printable, LongTextIsCutBetweenCharacters) {
  const std::string cut = in_quotes(std::string(1'000'000, 'x'));
  EXPECT_EQ(cut, "\"" + std::string(80, 'x') + "...\"");
  EXPECT_EQ(in_quotes(std::string(80, 'x')), "\"" + std::string(80, 'x') + "\"");
  std::string euros;
  for (int i = 0; i < 100; ++i) euros += "€";
  EXPECT_TRUE(is_printable(in_quotes(euros)));
  EXPECT_EQ(in_quotes("abcdef", 3), "\"abc...\"");
}

}  // namespace
}  // namespace couplet::formats
