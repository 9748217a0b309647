#pragma once
// SentencePiece's unigram model: of all ways to cut a word into pieces, the one with the greatest sum of scores.

#include <string_view>
#include <vector>

#include "text/bpe_model.h"
#include "text/piece_finder.h"
#include "text/vocabulary.h"

namespace couplet::text {

inline constexpr double kUnknownPenalty = 10;  // an unknown character is so much worse than the worst piece

struct UnigramScores {
  std::vector<double> pieces;  // [id]
  double unknown = 0;          // of a character that is no piece
};

class UnigramModel {
 public:
  // Of the ids below scores.pieces.size() those of `in_model` are pieces. The vocabulary must outlive the model.
  UnigramModel(const Vocabulary& vocabulary, const std::vector<bool>& in_model, UnigramScores scores, bool byte_fallback);

  void append(std::string_view word, ModelScratch& scratch, std::vector<TokenId>& ids) const;

 private:
  void append_best(std::string_view word, ModelScratch& scratch, std::vector<TokenId>& ids) const;
  void append_unknown(std::string_view bytes, ModelScratch& scratch, std::vector<TokenId>& ids) const;

  const Vocabulary* vocabulary_;
  UnigramScores scores_;
  PieceFinder pieces_;
  std::array<TokenId, 256> byte_ids_{};
  bool has_all_bytes_ = false;
};

}  // namespace couplet::text
