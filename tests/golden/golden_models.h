#pragma once
// The real models' files for the tests of this folder, from $COUPLET_MODELS; a missing one fails with how to get it.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "couplet/tokenizer.h"
#include "formats/checkpoint_file.h"
#include "text/load.h"

namespace couplet {

inline std::filesystem::path models_folder() {
  const char* folder = std::getenv("COUPLET_MODELS");
  const char* home = std::getenv("HOME");
  return folder != nullptr ? folder : std::filesystem::path(home != nullptr ? home : "") / ".cache/couplet";
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error("no file " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

// One tokenizer a model for the whole program.
inline const Tokenizer& tokenizer_of(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Tokenizer>> loaded;
  std::unique_ptr<Tokenizer>& tokenizer = loaded[name];
  if (!tokenizer) {
    const auto path = models_folder() / (name + ".gguf");
    if (!std::filesystem::exists(path)) {
      throw std::runtime_error("no model " + path.string() + ": get it with `couplet pull " + name +
                               "` or set COUPLET_MODELS");
    }
    tokenizer = text::load_tokenizer(*formats::CheckpointFile::open(path));
  }
  return *tokenizer;
}

// The same from the tokenizer.json of a Hugging Face folder.
inline const Tokenizer& folder_tokenizer_of(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Tokenizer>> loaded;
  std::unique_ptr<Tokenizer>& tokenizer = loaded[name];
  if (!tokenizer) {
    tokenizer = text::load_tokenizer(*formats::CheckpointFile::open(models_folder() / "tokenizers" / name));
  }
  return *tokenizer;
}

}  // namespace couplet
