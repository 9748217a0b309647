#pragma once
// What byte-level BPE and SentencePiece share: the vocabulary, cutting a text at the pieces that match before
// anything else, and putting U+FFFD for characters the vocabulary can't express. What is left are stretches
// of plain text, which the two turn into ids each in its own way.

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "couplet/tokenizer.h"
#include "text/merge.h"
#include "text/piece_finder.h"
#include "text/vocabulary.h"
#include "text/word_cache.h"

namespace couplet::text {

// The memory of one call.
struct TokenizeScratch {
  explicit TokenizeScratch(std::size_t text_bytes) : cache(text_bytes) {}
  MergeScratch merge;
  WordCache cache;
  std::string unmarked, normalized, replaced;
  std::vector<std::string_view> words, cut_words;
  std::size_t characters_read = 0;  // by the pre-tokenizer; work done, for tests of growth
};

class VocabularyTokenizer : public Tokenizer {
 public:
  std::vector<TokenId> tokenize(std::string_view text, TokenizeOptions options = {}) const final;
  std::vector<TokenId> tokenize(std::string_view text, TokenizeOptions options,
                                TokenizeScratch& scratch) const;
  std::size_t inexpressible(std::string_view text) const final;

  int vocab_size() const final { return vocabulary_.size(); }
  TokenKind kind(TokenId id) const final;
  std::string_view vocabulary_text(TokenId id) const final;
  std::string bytes(TokenId id, bool special = false) const final;

  bool adds_bos() const final { return vocabulary_.adds_bos; }
  TokenId bos_id() const final { return vocabulary_.bos; }
  TokenId eos_id() const final { return vocabulary_.eos; }
  TokenId unknown_id() const final { return vocabulary_.unknown; }
  std::span<const TokenId> end_ids() const final { return vocabulary_.end_ids; }

 protected:
  explicit VocabularyTokenizer(Vocabulary vocabulary);
  // To be called when expresses() can answer: may_lack[b] is set where a character with byte b may be
  // inexpressible.
  void set_inexpressible(const std::array<bool, 256>& may_lack);

  // The stretch as the vocabulary wants it, in `buffer` where it must differ.
  virtual std::string_view normalize(std::string_view stretch, std::string& buffer) const;
  virtual bool expresses(std::string_view character) const = 0;
  // The ids of a normalized stretch that is all expressible.
  virtual void append_text(std::string_view text, TokenizeScratch& scratch,
                           std::vector<TokenId>& ids) const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  void append_cut(std::string_view text, const PieceFinder& pieces, TokenizeScratch& scratch,
                  std::vector<TokenId>& ids) const;
  void append_stretch(std::string_view stretch, TokenizeScratch& scratch, std::vector<TokenId>& ids) const;
  bool may_lack(std::string_view text) const;

  Vocabulary vocabulary_;
  PieceFinder user_defined_, user_defined_and_control_;
  PieceFinder marked_;  // user-defined ones, with U+2581 for each space
  std::array<bool, 256> may_lack_{};
  bool may_lack_any_ = false;
  bool expresses_replacement_ = true;
};

}  // namespace couplet::text
