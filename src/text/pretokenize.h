#pragma once
// The named ways to cut a text into words before byte-level BPE merges, as `tokenizer.ggml.pre` names them.
// No merge crosses a word's border.

#include <array>
#include <string>
#include <string_view>

namespace couplet::text {

struct PreTokenizer {
  std::string_view name;
  // See WordPattern. Each cuts what the one before it left: its matches, and what lies between them, are pieces.
  std::array<std::string_view, 6> patterns;
  bool whole_words = false;  // a word that is in the vocabulary is its token, whatever the merges make of it
  bool adds_bos = false;     // where the file doesn't say
};

// Throws Error{unsupported} with the names that are known.
const PreTokenizer& find_pre_tokenizer(std::string_view name);

}  // namespace couplet::text
