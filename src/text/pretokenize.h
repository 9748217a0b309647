#pragma once
// The named ways to cut a text into words before byte-level BPE merges, as `tokenizer.ggml.pre` names them.
// No merge crosses a word's border.

#include <array>
#include <span>
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

std::span<const PreTokenizer> all_pre_tokenizers();
// By the name that a file has, or by the one that was asked for `instead`, where that isn't empty. Throws
// Error{unsupported}, or Error{usage}, with the names that are known.
const PreTokenizer& find_pre_tokenizer(std::string_view in_file, std::string_view instead = {});

}  // namespace couplet::text
