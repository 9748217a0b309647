#include "text/tokenizer_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "couplet/error.h"
#include "text/normalizer.h"

namespace couplet::text {
namespace {

using Ids = std::vector<TokenId>;

// A file with the parts given; `more` follows the model.
std::string file(const std::string& vocab, const std::string& merges, const std::string& more,
                 const std::string& options = "") {
  return R"({"model": {"type": "BPE", "vocab": {)" + vocab + R"(}, "merges": [)" + merges + "]" + options + "}" + more +
         "}";
}

const std::string kVocab = R"("a": 0, "b": 1, "c": 2, "ab": 3, "\u2581": 4, "\u2581ab": 5, "<unk>": 6, "<0xC3>": 7, "<0xA9>": 8)";
const std::string kMerges = R"("a b", ["\u2581", "ab"])";

Ids ids_of(const std::string& json, std::string_view text, TokenizeOptions options = {}) {
  return load_tokenizer_json(json)->tokenize(text, options);
}

TEST(TokenizerJson, MergesAsStringsAndPairs) {
  EXPECT_EQ(ids_of(file(kVocab, kMerges, ""), "abcab"), (Ids{3, 2, 3}));
  EXPECT_EQ(ids_of(file(kVocab, kMerges, R"(, "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"})"),
                   "ab ab"),
            (Ids{3, 5}));
}

TEST(TokenizerJson, WholeWordsCountBeforeMerges) {
  const std::string vocab = kVocab + R"(, "abc": 9)";
  EXPECT_EQ(ids_of(file(vocab, kMerges, ""), "abc"), (Ids{3, 2}));
  EXPECT_EQ(ids_of(file(vocab, kMerges, "", R"(, "ignore_merges": true)"), "abc"), (Ids{9}));
}

TEST(TokenizerJson, UnknownCharacters) {
  const std::string unknown = R"(, "unk_token": "<unk>")";
  EXPECT_EQ(ids_of(file(kVocab, kMerges, "", unknown), "a??b"), (Ids{0, 6, 6, 1}));
  EXPECT_EQ(ids_of(file(kVocab, kMerges, "", unknown + R"(, "fuse_unk": true)"), "a??b"), (Ids{0, 6, 1}));
  EXPECT_EQ(ids_of(file(kVocab, kMerges, "", unknown + R"(, "byte_fallback": true)"), "é?"), (Ids{7, 8, 6}));
  // The unknown one waits for the next that is known, as it does where such files are made.
  EXPECT_EQ(ids_of(file(kVocab, kMerges, "", unknown + R"(, "byte_fallback": true)"), "?éa"), (Ids{7, 8, 6, 0}));
  const auto tokenizer = load_tokenizer_json(file(kVocab, kMerges, "", unknown));
  EXPECT_EQ(tokenizer->inexpressible("a??b"), 2U);
  EXPECT_EQ(tokenizer->inexpressible("ab"), 0U);
}

TEST(TokenizerJson, Metaspace) {
  const auto with = [](const std::string& options) {
    return file(kVocab, kMerges, R"(, "pre_tokenizer": {"type": "Metaspace")" + options + "}");
  };
  EXPECT_EQ(ids_of(with(""), "ab ab"), (Ids{5, 5}));
  EXPECT_EQ(ids_of(with(R"(, "prepend_scheme": "never")"), "ab ab"), (Ids{3, 5}));
  EXPECT_EQ(ids_of(with(R"(, "add_prefix_space": false)"), "ab ab"), (Ids{3, 5}));
}

std::string added(const std::string& options) {
  return R"(, "added_tokens": [{"id": 20, "content": "<x>", "special": true},
                               {"id": 21, "content": "cab", "special": false, "normalized": false)" +
         options + "}]";
}

TEST(TokenizerJson, AddedTokens) {
  const std::string vocab = kVocab + R"(, " ": 9, "<": 10, "x": 11, ">": 12)";
  const std::string json = file(vocab, kMerges, added(""));
  EXPECT_EQ(ids_of(json, "a<x>cab"), (Ids{0, 10, 11, 12, 14}));
  EXPECT_EQ(ids_of(json, "a<x>cab", {.special = true}), (Ids{0, 13, 14}));
  EXPECT_EQ(ids_of(file(vocab, kMerges, added(R"(, "single_word": true)")), "cab acab cabb"),
            (Ids{14, 9, 0, 2, 3, 9, 2, 3, 1}));
  EXPECT_EQ(ids_of(file(vocab, kMerges, added(R"(, "lstrip": true)")), "a  cab b"), (Ids{0, 14, 9, 1}));
  EXPECT_EQ(ids_of(file(vocab, kMerges, added(R"(, "rstrip": true)")), "a cab  b"), (Ids{0, 9, 14, 1}));
  const auto tokenizer = load_tokenizer_json(json);
  EXPECT_EQ(tokenizer->vocab_size(), 15);  // the next free ids, whatever the file says
  EXPECT_EQ(tokenizer->kind(13), TokenKind::control);
  EXPECT_EQ(tokenizer->kind(14), TokenKind::user_defined);
  EXPECT_EQ(tokenizer->kind(15), TokenKind::unused);
  EXPECT_EQ(tokenizer->bytes(13), "");
  EXPECT_EQ(tokenizer->bytes(13, true), "<x>");
}

TEST(TokenizerJson, ByteLevel) {
  // Without a letter for "?"; U+FFFD has its three.
  const std::string vocab = R"("a": 0, "\u0120": 1, "\u0120a": 2, "\u00ef": 3, "\u00bf": 4, "\u00bd": 5)";
  const std::string json = file(vocab, R"("\u0120 a")", R"(, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false})");
  EXPECT_EQ(ids_of(json, "a a"), (Ids{0, 2}));
  EXPECT_EQ(ids_of(json, "a?"), (Ids{0, 3, 4, 5}));
  const auto tokenizer = load_tokenizer_json(json);
  EXPECT_EQ(tokenizer->inexpressible("a?"), 1U);
  EXPECT_EQ(detokenize(*tokenizer, tokenizer->tokenize(" a")), " a");
}

TEST(TokenizerJson, UnigramTakesTheBestScore) {
  const std::string json = R"({"model": {"type": "Unigram", "unk_id": 0, "vocab":
      [["<unk>", 0], ["a", -1], ["b", -1], ["ab", -1.5], ["bc", -0.1], ["c", -3]]}})";
  EXPECT_EQ(ids_of(json, "abc"), (Ids{1, 4}));
  EXPECT_EQ(ids_of(json, "ab"), (Ids{3}));
  EXPECT_EQ(ids_of(json, "a??b"), (Ids{1, 0, 2}));
}

// Expected values: Hugging Face tokenizers 0.23.3.
TEST(TokenizerJson, UnigramReadsTheUnknownTokensOwnSpelling) {
  std::string vocab = R"(["<unk>", 0])";
  const char* const digits = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte)
    vocab += std::string(", [\"<0x") + digits[byte / 16] + digits[byte % 16] + ">\", -5]";
  const std::string json = R"({"model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true, "vocab": [)" + vocab + R"(, ["a", -1]]}})";
  const Ids unk = {61, 118, 111, 108, 63};
  const auto joined = [](Ids first, const Ids& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  EXPECT_EQ(ids_of(json, "<unk>"), Ids{0});
  EXPECT_EQ(ids_of(json, "a<unk>a"), (Ids{257, 0, 257}));
  EXPECT_EQ(ids_of(json, "<unk><0xCA>"), (Ids{0, 203}));
  EXPECT_EQ(ids_of(json, "<unk><unk>"), joined(unk, unk));
  EXPECT_EQ(ids_of(json, "?<unk>"), joined({64}, unk));
  EXPECT_EQ(ids_of(json, "<unk>?"), joined(unk, {64}));
}

TEST(TokenizerJson, BeginningsAndEnds) {
  const std::string more = R"(, "added_tokens": [{"id": 9, "content": "<s>", "special": true},
      {"id": 10, "content": "<|im_end|>", "special": true}], "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<|im_end|>"}}],
      "special_tokens": {"<s>": {"ids": [9]}, "<|im_end|>": {"ids": [10]}}})";
  const std::string json = file(kVocab, kMerges, more);
  EXPECT_EQ(ids_of(json, "ab", {.bos = true}), (Ids{9, 3}));
  const auto plain = load_tokenizer_json(json, {.adds_bos = false});
  EXPECT_EQ(plain->tokenize("ab", {.bos = true}), Ids{3});
  const auto named = load_tokenizer_json(file(kVocab, kMerges, more), {.bos = "<s>", .eos = "<|im_end|>"});
  EXPECT_EQ(named->eos_id(), 10);
  EXPECT_EQ(named->bos_id(), 9);
  EXPECT_EQ(Ids(named->end_ids().begin(), named->end_ids().end()), Ids{10});
  const std::int64_t ends[] = {9, 2}, outside[] = {11};
  const auto more_ends = load_tokenizer_json(json, {.end_ids = ends});
  EXPECT_EQ(Ids(more_ends->end_ids().begin(), more_ends->end_ids().end()), (Ids{2, 9, 10}));
  EXPECT_THROW(load_tokenizer_json(json, {.end_ids = outside}), Error);
}

TEST(TokenizerJson, RefusesLies) {
  const auto refuses = [](const std::string& json, ErrorKind kind, const std::string& what) {
    try {
      load_tokenizer_json(json);
      ADD_FAILURE() << json;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  };
  refuses("", ErrorKind::format, "JSON");
  refuses("[]", ErrorKind::format, "a JSON object");
  refuses(std::string(100000, '['), ErrorKind::format, "JSON");
  refuses("{}", ErrorKind::format, "\"model\"");
  refuses(file(R"("a": -1)", "", ""), ErrorKind::format, "at least 0");
  refuses(file(R"("a": 2000000000)", "", ""), ErrorKind::format, "close together");
  refuses(file(R"("a": 0, "b": 0)", "", ""), ErrorKind::format, "two tokens with id 0");
  refuses(file(kVocab, R"("a c")", ""), ErrorKind::format, "not in the vocabulary");
  refuses(file(kVocab, R"("ac")", ""), ErrorKind::format, "two pieces");
  refuses(file(kVocab, "", "", R"(, "unk_token": "no")"), ErrorKind::format, "\"no\"");
  refuses(R"({"model": {"type": "WordPiece"}})", ErrorKind::unsupported, "WordPiece");
  refuses(file(kVocab, "", R"(, "normalizer": {"type": "BertNormalizer"})"), ErrorKind::unsupported, "BertNormalizer");
  refuses(file(kVocab, "", R"(, "pre_tokenizer": {"type": "UnicodeScripts"})"), ErrorKind::unsupported, "UnicodeScripts");
  refuses(file(kVocab, "", R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(?<=a)b"}, "behavior": "Isolated"})"),
          ErrorKind::unsupported, "(?<");
  refuses(file(kVocab, "", R"(, "decoder": {"type": "CTC"})"), ErrorKind::unsupported, "CTC");
  refuses(file(kVocab, "", R"(, "post_processor": {"type": "BertProcessing"})"), ErrorKind::format, "cls");
  refuses(file(kVocab, "", R"(, "post_processor": {"type": "BertProcessing", "cls": ["a", 99]})"), ErrorKind::format, "99");
  refuses(file(kVocab, "", R"(, "post_processor": {"type": "No"})"), ErrorKind::unsupported, "No");
  refuses(file(kVocab, "", R"(, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAA!"})"), ErrorKind::format, "base64");
  refuses(file(kVocab, "", R"(, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "/wAAAA=="})"), ErrorKind::format, "trie");
  refuses(file(kVocab, "", "", R"(, "dropout": 0.1)"), ErrorKind::unsupported, "dropout");
}

TEST(Normalizer, NormalForms) {
  const auto to = [](NormalForm form, std::string_view text) { return normalize({{.form = form}}, text); };
  EXPECT_EQ(to(NormalForm::nfc, "e\u0301\xFF\u1100\u1161 \u212B"), "\u00E9\xFF\uAC00 \u00C5");
  EXPECT_EQ(to(NormalForm::nfd, "\u00E9\uAC00"), "e\u0301\u1100\u1161");
  EXPECT_EQ(to(NormalForm::nfkc, "\uFB01\u2460"), "fi1");
  EXPECT_EQ(to(NormalForm::nfc, "a\u0301\u0323"), "\u1EA1\u0301");  // marks are sorted
  EXPECT_EQ(to(NormalForm::nfc, "\u1103\u1164\u11A7"), "\uB338\u11A7");  // which is no last consonant
  // To Unicode 9 these are no marks, and one doesn't come apart: 13, 14 and 16 brought them.
  EXPECT_EQ(to(NormalForm::nfc, "a\u1AC4\u0301\u0323"), "a\u1AC4\u0323\u0301");
  EXPECT_EQ(to(NormalForm::nfc, "i\u0307\u1AC4"), "i\u0307\u1AC4");
  EXPECT_EQ(to(NormalForm::nfd, "\U00011938\u0301\u0323"), "\U00011938\u0323\u0301");
  EXPECT_EQ(to(NormalForm::nfkc, "\u32FF\uA7F2\U0001CCD6"), "\u32FF\uA7F2\U0001CCD6");
  std::string marks = "a";
  for (int i = 0; i < 50000; ++i) marks += "\u0301";
  for (int i = 0; i < 50000; ++i) marks += "\u0323";  // a library that swaps neighbours would take hours
  EXPECT_EQ(to(NormalForm::nfc, marks).substr(0, 5), "\u1EA1\u0323");
}

TEST(Normalizer, OtherSteps) {
  EXPECT_EQ(normalize({{.kind = NormalizerStep::lowercase}}, "ÀB\u0130"), "àbi\u0307");
  EXPECT_EQ(normalize({{.kind = NormalizerStep::strip, .left = true, .right = true}}, "\u3000 a b\u00A0\n"), "a b");
  EXPECT_EQ(normalize({{.kind = NormalizerStep::strip, .right = true}}, " a "), " a");
  EXPECT_EQ(normalize({{.kind = NormalizerStep::strip_accents}}, "e\u0301"), "e");
  EXPECT_EQ(normalize({{.kind = NormalizerStep::prepend, .text = "_"}}, "a"), "_a");
  EXPECT_EQ(normalize({{.kind = NormalizerStep::prepend, .text = "_"}}, ""), "");
  EXPECT_EQ(normalize({{.kind = NormalizerStep::replace, .text = "-", .pattern = WordPattern(R"(\s+)")}}, " a \n b"), "-a-b");
}

}  // namespace
}  // namespace couplet::text
