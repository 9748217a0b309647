// Token ids of the two real models, against data made with Hugging Face `tokenizers`, and the texts that
// other engines got wrong. The models come from $COUPLET_MODELS; a missing one fails.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "couplet/tokenizer.h"
#include "formats/checkpoint_file.h"
#include "text/load.h"

namespace couplet {
namespace {

using Ids = std::vector<TokenId>;

std::filesystem::path model_path(const std::string& name) {
  const char* folder = std::getenv("COUPLET_MODELS");
  const char* home = std::getenv("HOME");
  const std::filesystem::path root =
      folder != nullptr ? folder : std::filesystem::path(home != nullptr ? home : "") / ".cache/couplet";
  return root / (name + ".gguf");
}

// One tokenizer a model for the whole program.
const Tokenizer& tokenizer_of(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Tokenizer>> loaded;
  std::unique_ptr<Tokenizer>& tokenizer = loaded[name];
  if (!tokenizer) {
    const auto path = model_path(name);
    if (!std::filesystem::exists(path)) {
      throw std::runtime_error("no model " + path.string() + ": get it with `couplet pull " + name +
                               "` or set COUPLET_MODELS");
    }
    tokenizer = text::load_tokenizer(*formats::CheckpointFile::open(path));
  }
  return *tokenizer;
}

struct Model {
  const char* name;
  bool keeps_every_byte;  // whether all golden texts come back from their ids
};

class GoldenTokens : public testing::TestWithParam<Model> {};

TEST_P(GoldenTokens, MatchEveryLine) {
  const Tokenizer& tokenizer = tokenizer_of(GetParam().name);
  std::ifstream file(std::string(COUPLET_SOURCE_DIR "/tests/data/tokens.") + GetParam().name + ".jsonl");
  int num_lines = 0;
  for (std::string line; std::getline(file, line); ++num_lines) {
    const auto row = nlohmann::json::parse(line);
    const auto text = row["text"].get<std::string>();
    const Ids ids = tokenizer.tokenize(text);
    EXPECT_EQ(ids, row["ids"].get<Ids>()) << line;
    if (tokenizer.inexpressible(text) == 0) EXPECT_EQ(detokenize(tokenizer, ids), text) << line;
  }
  EXPECT_EQ(num_lines, 60);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTokens,
                         testing::Values(Model{"smollm2", false}, Model{"gemma3", true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace couplet
