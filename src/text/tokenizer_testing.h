#pragma once
// Small tokenizers for tests and fuzzers, built like a checkpoint's: metadata in a GGUF file in memory.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint_file.h"
#include "formats/gguf_builder.h"
#include "text/load.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace couplet::text {

// GGUF's numbers for TokenKind.
enum ToyType : std::int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

struct ToyVocabulary {
  std::string model = "gpt2", pre = "gpt-2";  // "": no such key
  std::vector<std::string> texts;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  std::vector<std::string> merges;
  std::function<void(formats::GgufBuilder&)> more = [](formats::GgufBuilder&) {};  // other keys

  TokenId add(std::string_view text, ToyType type = kNormal, float score = 0) {
    texts.emplace_back(text);
    types.push_back(type);
    scores.push_back(score);
    return static_cast<TokenId>(texts.size()) - 1;
  }
  void add_byte_letters(std::string_view but = "") {
    for (int byte = 0; byte < 256; ++byte) {
      if (but.find(static_cast<char>(byte)) == std::string_view::npos) {
        add(byte_letter(static_cast<unsigned char>(byte)));
      }
    }
  }
  void add_byte_tokens() {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    for (std::size_t byte = 0; byte < 256; ++byte) {
      add(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", kByte);
    }
  }
  // `left` and `right`, spelled in byte letters, become one token.
  void add_merge(const std::string& left, const std::string& right) {
    merges.push_back(left + " " + right);
    add(left + right);
  }

  std::vector<std::byte> build() const {
    formats::GgufBuilder file;
    if (!model.empty()) file.add("tokenizer.ggml.model", model);
    if (!pre.empty()) file.add("tokenizer.ggml.pre", pre);
    file.add("tokenizer.ggml.tokens", texts).add("tokenizer.ggml.token_type", types);
    if (model == "llama") file.add("tokenizer.ggml.scores", scores);
    if (model == "gpt2") file.add("tokenizer.ggml.merges", merges);
    more(file);
    return file.build();
  }
  std::unique_ptr<VocabularyTokenizer> load() const {
    const auto bytes = build();
    auto tokenizer = load_tokenizer(*formats::CheckpointFile::parse(bytes));
    return std::unique_ptr<VocabularyTokenizer>(static_cast<VocabularyTokenizer*>(tokenizer.release()));
  }
};

// Byte-level BPE without the byte symbols U+0004, F1 and F2, as SmolLM2: 0 <|im_start|>, 1 <|im_end|>, 2
// <|endoftext|>, then 253 bytes, then pieces.
inline ToyVocabulary toy_bpe() {
  ToyVocabulary toy;
  for (const char* text : {"<|im_start|>", "<|im_end|>", "<|endoftext|>"}) toy.add(text, kControl);
  toy.add_byte_letters("\x04\xF1\xF2");
  const std::string space = byte_letter(' ');
  toy.add_merge("t", "h");
  toy.add_merge("th", "e");
  toy.add_merge(space, "the");
  toy.add_merge("A", "A");
  toy.add_merge("AA", "AA");
  toy.add_merge(space, space);
  toy.add_merge(space + space, space + space);
  toy.more = [](formats::GgufBuilder& file) {
    file.add("tokenizer.ggml.bos_token_id", std::uint32_t{0})
        .add("tokenizer.ggml.eos_token_id", std::uint32_t{1});
    file.add("tokenizer.ggml.unknown_token_id", std::uint32_t{2});
  };
  return toy;
}

// SentencePiece with byte fallback and user-defined runs, as Gemma: 0 <unk>, 1 <bos>, 2 <eos>, 3
// <end_of_turn>, then 256 bytes, then user-defined pieces, then normal ones.
inline ToyVocabulary toy_spm() {
  ToyVocabulary toy;
  toy.model = "llama";
  toy.pre = "";
  toy.add("<unk>", kUnknown);
  for (const char* text : {"<bos>", "<eos>", "<end_of_turn>"}) toy.add(text, kControl);
  toy.add_byte_tokens();
  for (const char* text : {"  ", "   ", "\t\t", "\t", "\n", "<table>", "</table>", "</s>"})
    toy.add(text, kUserDefined);
  float score = 0;
  for (const char* text :
       {"th", "the", "\u2581the", "\u2581", "AA", "AAAA", ">\u2581<", "t", "h", "e", "A", "é"}) {
    toy.add(text, kNormal, score);
    score -= 1;
  }
  toy.more = [](formats::GgufBuilder& file) {
    file.add("tokenizer.ggml.bos_token_id", std::uint32_t{1})
        .add("tokenizer.ggml.eos_token_id", std::uint32_t{2});
    file.add("tokenizer.ggml.add_space_prefix", false);
  };
  return toy;
}

}  // namespace couplet::text
