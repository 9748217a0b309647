#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "text/tokenizer_testing.h"
#include "text/utf8.h"

namespace couplet::text {
namespace {

using Ids = std::vector<TokenId>;

const std::string kFffd = "\uFFFD";

std::string repeat(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// Tokens of single bytes, whatever they are.
Ids byte_ids(std::string_view bytes) {
  Ids ids;
  for (const char byte : bytes) ids.push_back(4 + static_cast<unsigned char>(byte));
  return ids;
}

TEST(Detokenize, ImpossibleBytesBecomeMaximalSubparts) {
  const auto tokenizer = toy_spm().load();
  const auto text = [&](std::string_view bytes) { return detokenize(*tokenizer, byte_ids(bytes)); };
  // The examples of the Unicode standard, section 3.9.
  EXPECT_EQ(text("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), repeat(kFffd, 8) + "A");
  EXPECT_EQ(text("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), repeat(kFffd, 8) + "A");
  EXPECT_EQ(text("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), repeat(kFffd, 5) + "A" + repeat(kFffd, 2) + "B");
  EXPECT_EQ(text("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), repeat(kFffd, 4) + "A");
  // Text that ends inside a character: one U+FFFD for what is there of it.
  EXPECT_EQ(text("a\xF0\x9F\x98"), "a" + kFffd);
  EXPECT_EQ(text("\xE6"), kFffd);
  EXPECT_EQ(text("\xF4\x8F\xBF\xBF\xED\x9F\xBF\xEE\x80\x80\xE0\xA4\x85"), "\U0010FFFF\uD7FF\uE000\u0905");
}

TEST(Detokenize, NothingOfACharacterComesBeforeAllOfIt) {
  const auto tokenizer = toy_spm().load();
  Detokenizer detokenizer(*tokenizer);
  std::string text;
  for (const char byte : std::string("\xF0\x9F\x98")) {
    detokenizer.push(byte_ids({&byte, 1})[0], text);
    EXPECT_EQ(text, "");
  }
  EXPECT_EQ(detokenizer.pending(), "\xF0\x9F\x98");
  detokenizer.push(byte_ids("\x80")[0], text);
  EXPECT_EQ(text, "😀");
  EXPECT_EQ(detokenizer.pending(), "");
}

TEST(Detokenize, AGenuineReplacementCharacterPassesAtOnce) {
  const auto tokenizer = toy_spm().load();
  Detokenizer detokenizer(*tokenizer);
  for (int i = 0; i < 50; ++i) {
    std::string text;
    for (const TokenId id : byte_ids("\xEF\xBF\xBDx")) detokenizer.push(id, text);
    EXPECT_EQ(text, kFffd + "x");
  }
}

TEST(Detokenize, BytesThatBecomeImpossibleAreSettledAtOnce) {
  const auto tokenizer = toy_spm().load();
  Detokenizer detokenizer(*tokenizer);
  std::string text;
  detokenizer.push(byte_ids("\xE6")[0], text);
  EXPECT_EQ(text, "");
  detokenizer.push(byte_ids("a")[0], text);
  EXPECT_EQ(text, kFffd + "a");
  detokenizer.push(byte_ids("\xF0")[0], text);
  detokenizer.push(byte_ids("\xE6")[0], text);  // settles the F0, begins anew
  EXPECT_EQ(text, kFffd + "a" + kFffd);
  EXPECT_EQ(detokenizer.pending(), "\xE6");
  detokenizer.finish(text);
  EXPECT_EQ(text, kFffd + "a" + kFffd + kFffd);
  EXPECT_EQ(detokenizer.pending(), "");
}

// The definition, on all bytes at once.
std::string decode_whole(const std::string& bytes) {
  std::string text;
  for (const char *at = bytes.data(), *end = at + bytes.size(); at != end;) {
    const Utf8Char read = read_utf8(at, end);
    text += read.kind == Utf8Char::whole ? std::string(at, read.length) : kFffd;
    at += read.length;
  }
  return text;
}

TEST(Detokenize, PiecesJoinedAreTheWholeText) {
  std::mt19937 random(3);
  for (const auto& toy : {toy_bpe(), toy_spm()}) {
    const auto tokenizer = toy.load();
    for (int round = 0; round < 2000; ++round) {
      const bool special = random() % 2 == 0;
      Ids ids;
      std::string bytes;
      for (std::size_t i = random() % 40; i > 0; --i) {
        ids.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(tokenizer->vocab_size())));
        bytes += tokenizer->bytes(ids.back(), special);
      }
      Detokenizer detokenizer(*tokenizer, special);
      std::string joined;
      for (const TokenId id : ids) {
        std::string piece;
        detokenizer.push(id, piece);
        EXPECT_EQ(decode_whole(piece), piece);  // each piece is text by itself
        joined += piece;
      }
      detokenizer.finish(joined);
      ASSERT_EQ(joined, detokenize(*tokenizer, ids, special));
      ASSERT_EQ(joined, decode_whole(bytes));
    }
  }
}

TEST(Detokenize, ControlTokensCountOnlyWhenAskedFor) {
  const auto tokenizer = toy_spm().load();
  const Ids ids = {1, byte_ids("a")[0], 3, 0};
  EXPECT_EQ(detokenize(*tokenizer, ids), "a");
  EXPECT_EQ(detokenize(*tokenizer, ids, true), "<bos>a<end_of_turn><unk>");
}

}  // namespace
}  // namespace couplet::text
