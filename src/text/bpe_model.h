#pragma once
// BPE over characters, as a tokenizer.json describes it: a word's characters become tokens, and listed pairs of tokens
// are merged. Byte-level BPE is the same on words spelled in byte letters.

#include <array>
#include <bitset>
#include <string_view>
#include <utility>
#include <vector>

#include "text/merge.h"
#include "text/vocabulary.h"
#include "text/word_cache.h"

namespace couplet::text {

struct BpeOptions {
  bool byte_fallback = false;  // a character without a token becomes the tokens of its bytes
  bool fuse_unknown = false;   // neighbouring unknown characters are one unknown token
  bool whole_words = false;    // a word that is in the vocabulary is its token, whatever the merges make of it
};

// What a call of tokenize() needs to remember.
struct ModelScratch {
  explicit ModelScratch(std::size_t text_bytes) : cache(text_bytes) {}
  MergeScratch merge;
  WordCache cache;
  std::size_t offers = 0;         // pieces that unigram weighed; work done, for tests of growth
  std::size_t inexpressible = 0;  // characters that got no tokens of their own; counted where `counts`
  bool counts = false;            // then the cache is not asked
};

class BpeModel {
 public:
  using Merges = std::vector<std::pair<std::string_view, std::string_view>>;
  // `in_model[id]`: the model's own tokens, not those added to them. The vocabulary must outlive the model.
  BpeModel(const Vocabulary& vocabulary, const std::vector<bool>& in_model, const Merges& merges, BpeOptions options);

  void append(std::string_view word, ModelScratch& scratch, std::vector<TokenId>& ids) const;

 private:
  static constexpr std::size_t kQuickChars = 512;  // code points with a table; the byte letters are among them

  TokenId find(std::string_view piece) const { return pieces_.find(vocabulary_->texts, piece); }
  TokenId id_of_char(std::string_view character, char32_t code_point) const {
    return code_point < kQuickChars && character.size() <= 2 ? quick_[code_point] : find(character);
  }
  void add_merges(const Merges& merges);
  std::size_t end_of_stretch(std::string_view word, std::size_t begin) const;
  void append_stretch(std::string_view stretch, ModelScratch& scratch, std::vector<TokenId>& ids) const;
  // Bytes of the symbol where they have tokens; else it waits as an unknown one, unless `waiting` takes it in.
  void add_unknown(Symbol symbol, std::string_view stretch, Symbol& waiting, ModelScratch& scratch) const;

  const Vocabulary* vocabulary_;
  BpeOptions options_;
  PieceMap pieces_;
  PairMap merges_;
  std::array<TokenId, kQuickChars> quick_{};
  std::array<TokenId, 256> byte_ids_{};
  std::bitset<65536> joined_;  // [last byte * 256 + first byte]: some merge joins pieces that meet so
  bool may_cut_ = false;       // words may be cut where nothing can join
};

}  // namespace couplet::text
