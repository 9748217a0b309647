// What a tokenizer.json may ask for, a construct at a time, and SentencePiece's unigram models as GGUF files hold them,
// against ids made with Hugging Face `tokenizers` and with SentencePiece by tools/make_tokenizer_golden.py.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "couplet/tokenizer.h"
#include "formats/checkpoint_file.h"
#include "formats/gguf_builder.h"
#include "text/load.h"
#include "text/tokenizer_json.h"

namespace couplet {
namespace {

TEST(TokenizerConstructs, MatchEveryCase) {
  std::ifstream lines(COUPLET_SOURCE_DIR "/tests/data/tokenizer_constructs.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const auto models = nlohmann::json::parse(line);
  std::size_t num_constructs = 0, num_cases = 0;
  for (; std::getline(lines, line); ++num_constructs) {
    auto construct = nlohmann::json::parse(line);
    nlohmann::json& model = construct["file"]["model"];
    if (model.is_string()) model = models.at(model.get<std::string>());
    const auto tokenizer = text::load_tokenizer_json(construct["file"].dump());
    for (const auto& expected : construct["cases"]) {
      const auto text = expected[0].get<std::string>();
      SCOPED_TRACE(construct["name"].get<std::string>() + ": " + expected[0].dump(-1, ' ', true));
      EXPECT_EQ(tokenizer->tokenize(text), expected[1].get<std::vector<TokenId>>());
      EXPECT_EQ(tokenizer->tokenize(text, {.bos = true, .special = true}), expected[2].get<std::vector<TokenId>>());
      ++num_cases;
    }
  }
  EXPECT_GE(num_constructs, 100U);
  EXPECT_GE(num_cases, 20 * num_constructs);
}

TEST(SentencePiece, MatchEveryCase) {
  std::ifstream lines(COUPLET_SOURCE_DIR "/tests/data/sentencepiece.jsonl");
  std::size_t num_models = 0;
  for (std::string line; std::getline(lines, line); ++num_models) {
    const auto model = nlohmann::json::parse(line);
    const auto& keys = model["keys"];
    formats::GgufBuilder file;
    file.add("tokenizer.ggml.model", "t5")
        .add("tokenizer.ggml.tokens", keys["tokens"].get<std::vector<std::string>>())
        .add("tokenizer.ggml.scores", keys["scores"].get<std::vector<float>>())
        .add("tokenizer.ggml.token_type", keys["token_type"].get<std::vector<std::int32_t>>())
        .add("tokenizer.ggml.precompiled_charsmap", keys["precompiled_charsmap"].get<std::vector<std::uint8_t>>())
        .add("tokenizer.ggml.add_space_prefix", keys["add_space_prefix"].get<bool>())
        .add("tokenizer.ggml.remove_extra_whitespaces", keys["remove_extra_whitespaces"].get<bool>());
    const auto bytes = file.build();
    const auto tokenizer = text::load_tokenizer(*formats::CheckpointFile::parse(bytes));
    EXPECT_EQ(tokenizer->family(), "unigram");
    for (const auto& expected : model["cases"]) {
      SCOPED_TRACE(std::to_string(num_models) + ": " + expected[0].dump(-1, ' ', true));
      EXPECT_EQ(tokenizer->tokenize(expected[0].get<std::string>()), expected[1].get<std::vector<TokenId>>());
    }
  }
  EXPECT_EQ(num_models, 3U);
}

}  // namespace
}  // namespace couplet
