#include "json_lines.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace couplet::cli {
namespace {

constexpr int kVocabSize = 49152;

template <typename Parse>
std::string refusal(Parse parse, ErrorKind kind = ErrorKind::format) {
  try {
    parse();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return "";
}

std::string score_refusal(std::string_view line) {
  return refusal([&] { parse_score_line(line, kVocabSize); });
}

TEST(JsonLines, ScoreTakesIdsOrTextAndWant) {
  const ScoreLine ids =
      parse_score_line(R"({"ids": [0, 49151], "want": [[1], []], "more": null})", kVocabSize);
  EXPECT_EQ(ids.ids, (std::vector<TokenId>{0, 49151}));
  EXPECT_TRUE(ids.has_want);
  EXPECT_EQ(ids.want, (std::vector<std::vector<TokenId>>{{1}, {}}));
  const ScoreLine text = parse_score_line(R"({"text": "a\u0000b\ud83d\ude0a", "want": null})", kVocabSize);
  EXPECT_EQ(text.text, std::string("a\0b\xf0\x9f\x98\x8a", 7));
  EXPECT_FALSE(text.has_want);
}

TEST(JsonLines, AWrongIdIsNamedByItsIndex) {
  for (const char* id :
       {"-1", "49152", "1.5", "1.0", "null", "2147483647", "2147483648", "4294967296", "18446744073709551615",
        "18446744073709551616", "-9223372036854775809", "true", "\"1\"", "[1]", "{}", "1e3"}) {
    const std::string message = score_refusal(std::string("{\"ids\": [5, 6, ") + id + "]}");
    EXPECT_NE(message.find("ids[2]: expected a token id from 0 to 49151, got "), std::string::npos)
        << id << ": " << message;
    const std::string wanted =
        score_refusal(std::string("{\"ids\": [5, 6], \"want\": [[], [7, ") + id + "]]}");
    EXPECT_NE(wanted.find("want[1][1]: expected a token id"), std::string::npos) << id << ": " << wanted;
  }
}

TEST(JsonLines, WhatIsNoLineIsRefusedInOneCleanLine) {
  const std::vector<std::string> lines = {"",
                                          "{",
                                          "[]",
                                          "7",
                                          "null",
                                          "\"ids\"",
                                          "{}",
                                          "{\"ids\": []}",
                                          "{\"ids\": 1}",
                                          "{\"ids\": [1], \"text\": \"a\"}",
                                          "{\"text\": 1}",
                                          "{\"text\": null}",
                                          "{\"ids\": [1], \"want\": 1}",
                                          "{\"ids\": [1], \"want\": [1]}",
                                          "{\"ids\": [1]} x",
                                          "{\"ids\": [1e999]}",
                                          "{\"text\": \"\xff\"}",
                                          "{\"text\": \"\xc0\x80\"}",
                                          "{\"text\": \"\\ud800\"}",
                                          "{\"text\": \"\x01\"}",
                                          std::string("{\"text\": \"\0\"}", 12),
                                          std::string(1'000'000, '['),
                                          std::string(1'000'000, '{'),
                                          "{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}"};
  for (const std::string& line : lines) {
    const std::string message = score_refusal(line);
    EXPECT_FALSE(message.empty()) << line.substr(0, 60);
    for (const char c : message) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << message;
    EXPECT_LT(message.size(), 200U) << message;
  }
}

TEST(JsonLines, TokenizeTakesTextOrIds) {
  EXPECT_EQ(parse_text_line(R"({"text": "", "ids": 3})"), "");
  EXPECT_NE(refusal([] { parse_text_line(R"({"ids": [1]})"); }), "");
  EXPECT_EQ(parse_ids_line(R"({"ids": []})", 10), std::vector<TokenId>{});
  EXPECT_NE(refusal([] { parse_ids_line(R"({"ids": [10]})", 10); }), "");
}

TEST(JsonLines, AConversationKeepsItsKeysInOrder) {
  EXPECT_EQ(
      parse_conversation_line(
          R"({"model": 1, "tools": [{"z": 1, "a": {"c": 2, "b": "é"}}], "messages": [{"role": "user", "content": null}], "add_generation_prompt": true})")
          .dump(),
      R"({"messages":[{"role":"user","content":null}],"tools":[{"z":1,"a":{"c":2,"b":"é"}}],"add_generation_prompt":true})");
  EXPECT_EQ(parse_conversation_line(R"({"messages": [], "tools": null})").dump(), R"({"messages":[]})");
  for (const char* line :
       {"{}", R"({"messages": {}})", R"({"messages": [1]})", R"({"messages": [], "tools": 1})",
        R"({"messages": [], "add_generation_prompt": 1})"})
    EXPECT_NE(refusal([&] { parse_conversation_line(line); }, ErrorKind::template_failed), "") << line;
  EXPECT_NE(refusal([] { parse_conversation_line("{"); }), "");
}

class Lines : public testing::Test {
 protected:
  std::vector<std::string> read(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    LineReader reader(path_);
    std::vector<std::string> lines;
    for (std::string line; reader.next(line);) lines.push_back(std::to_string(reader.number()) + ":" + line);
    return lines;
  }
  void TearDown() override { std::remove(path_.c_str()); }
  std::string path_ = testing::TempDir() + "couplet_lines_" + std::to_string(::getpid());
};

TEST_F(Lines, AreNumberedAndBlankOnesSkipped) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(read(""), Strings{});
  EXPECT_EQ(read("\n \n\t\r\n"), Strings{});
  EXPECT_EQ(read("a"), Strings{"1:a"});
  EXPECT_EQ(read("a\n"), Strings{"1:a"});
  EXPECT_EQ(read("a\n\nb\r\n c"), (Strings{"1:a", "3:b\r", "4: c"}));
}

TEST_F(Lines, MayBeLongerThanTheReadersBuffer) {
  const std::string longer(200'000, 'x');
  EXPECT_EQ(read(longer + "\ny\n" + longer), (std::vector<std::string>{"1:" + longer, "2:y", "3:" + longer}));
}

TEST_F(Lines, BeyondTheLimitAreRefused) {
  EXPECT_NE(refusal([&] { read(std::string(LineReader::kMaxLineBytes + 100'000, 'x')); }), "");
}

TEST(JsonLines, AMissingFileIsNamed) {
  try {
    LineReader reader("/nowhere/lines");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_NE(std::string(error.what()).find("/nowhere/lines"), std::string::npos);
  }
}

TEST(JsonLines, AnErrorSaysItsLine) {
  const std::string message = refusal([] { at_line("score", 7, [] { parse_text_line("{}"); }); });
  EXPECT_EQ(message, "[score] line 7: expected the key \"text\", got none");
}

}  // namespace
}  // namespace couplet::cli
