#include "token_chooser.h"

#include <gtest/gtest.h>

#include "explain_page.h"
#include "tests/property/tiny_model.h"

namespace couplet::cli {
namespace {

class TokenChooserTest : public ::testing::Test {
 protected:
  TokenChooserTest()
      : file_(testing::tiny_llama()),
        checkpoint_(Checkpoint::open(file_.path())),
        chooser_(checkpoint_->tokenizer(), 517, nullptr) {
    choice_.id = 5;
    for (const TokenId id : {30, 5, 12}) choice_.alternatives.push_back({id, -1.0F});
  }

  TokenId good(std::string_view line) {
    TokenId id = 0;
    EXPECT_EQ(chooser_.read(line, choice_, id), "");
    return id;
  }
  std::string bad(std::string_view line) {
    TokenId id = 0;
    return chooser_.read(line, choice_, id);
  }

  testing::TinyModelFile file_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  TokenChooser chooser_;
  TokenChoice choice_;
};

TEST_F(TokenChooserTest, ReadsNumbersIdsAndNothing) {
  EXPECT_EQ(good(""), -1);
  EXPECT_EQ(good(" \r"), -1);
  EXPECT_EQ(good("1"), 30);
  EXPECT_EQ(good(" 3 \r"), 12);
  EXPECT_EQ(good("#516"), 516);
  EXPECT_EQ(good("#0"), 0);
}

TEST_F(TokenChooserTest, SaysWhatItExpected) {
  for (const char* line : {"0", "4", "-1", "1x", "#517", "#", "#-1", "hot", "1 2"})
    EXPECT_NE(bad(line).find("expected a number from 1 to 3, #ID with a token id from 0 to 516, or nothing, got"),
              std::string::npos)
        << line;
  EXPECT_EQ(bad("\x1b[2J").find('\x1b'), std::string::npos);
}

TEST(ExplainPage, NothingIsReadAsMarkup) {
  EXPECT_EQ(escaped("<b a=\"1\" c='2'>&amp;"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;");
}

}  // namespace
}  // namespace couplet::cli
