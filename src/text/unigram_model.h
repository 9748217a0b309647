#pragma once
// SentencePiece's unigram model: of all ways to cut a word into pieces, the one with the greatest sum of scores.

#include <string_view>
#include <vector>

#include "text/bpe_model.h"
#include "text/piece_finder.h"
#include "text/vocabulary.h"

namespace couplet::text {

class UnigramModel {
 public:
  // A score for each id below scores.size(), the model's own tokens. The vocabulary must outlive the model.
  UnigramModel(const Vocabulary& vocabulary, std::vector<double> scores, bool byte_fallback);

  void append(std::string_view word, ModelScratch& scratch, std::vector<TokenId>& ids) const;

 private:
  void append_best(std::string_view word, ModelScratch& scratch, std::vector<TokenId>& ids) const;
  void append_unknown(std::string_view bytes, ModelScratch& scratch, std::vector<TokenId>& ids) const;

  const Vocabulary* vocabulary_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  PieceFinder pieces_;
  std::array<TokenId, 256> byte_ids_{};
  bool has_all_bytes_ = false;
};

}  // namespace couplet::text
