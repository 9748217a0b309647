#include "text/unigram_model.h"

#include <algorithm>

#include "text/utf8.h"

namespace couplet::text {

UnigramModel::UnigramModel(const Vocabulary& vocabulary, const std::vector<bool>& in_model, UnigramScores scores,
                           bool byte_fallback)
    : vocabulary_(&vocabulary), scores_(std::move(scores)) {
  byte_ids_.fill(-1);
  std::vector<std::pair<std::string_view, TokenId>> pieces;
  for (std::size_t i = 0; i < scores_.pieces.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string_view text = vocabulary.texts[i];
    if (in_model[i]) pieces.emplace_back(text, id);
    if (const int byte = spelled_byte(text); byte_fallback && byte >= 0) byte_ids_[static_cast<std::size_t>(byte)] = id;
  }
  pieces_ = PieceFinder(std::move(pieces));
  has_all_bytes_ = std::find(byte_ids_.begin(), byte_ids_.end(), -1) == byte_ids_.end();
}

void UnigramModel::append(std::string_view word, ModelScratch& scratch, std::vector<TokenId>& ids) const {
  if (scratch.counts) return append_best(word, scratch, ids);
  scratch.cache.append(word, ids, [&] { append_best(word, scratch, ids); });
}

void UnigramModel::append_best(std::string_view word, ModelScratch& scratch, std::vector<TokenId>& ids) const {
  struct Best {  // way to a place in the word
    double score = 0;
    std::size_t begin = std::string_view::npos;  // of its last piece
    TokenId id = -1;                             // -1: unknown
  };
  std::vector<Best> best(word.size() + 1);
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = read_char(word.data() + at, word.data() + word.size()).length;
    const double score = best[at].score;
    const auto offer = [&](std::size_t bytes, double piece_score, TokenId id) {
      ++scratch.offers;
      Best& place = best[at + bytes];
      if (place.begin == std::string_view::npos || score + piece_score > place.score)
        place = {score + piece_score, at, id};
    };
    bool has_single = false;
    pieces_.for_each_at(word, at, [&](std::size_t bytes, TokenId id) {
      offer(bytes, scores_.pieces[static_cast<std::size_t>(id)], id);
      has_single = has_single || bytes == length;
    });
    if (!has_single) offer(length, scores_.unknown, -1);
    at += length;
  }
  std::vector<std::pair<std::size_t, std::size_t>> pieces;  // from the end; neighbouring unknown ones are one
  for (std::size_t end = word.size(); end > 0; end = best[end].begin) {
    const bool is_unknown = best[end].id < 0 || best[end].id == vocabulary_->unknown;
    if (is_unknown && !pieces.empty() && best[pieces.back().second].id < 0) {
      pieces.back().first = best[end].begin;
    } else {
      pieces.emplace_back(best[end].begin, end);
    }
    if (is_unknown) best[end].id = -1;
  }
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    const std::size_t length = piece->second - piece->first;
    TokenId id = best[piece->second].id;
    // What was unknown may be spelled as a piece is after all: "<unk>" alone is itself.
    if (id < 0) pieces_.for_each_at(word, piece->first, [&](std::size_t bytes, TokenId same) {
      if (bytes == length) id = same;
    });
    if (id >= 0) {
      ids.push_back(id);
    } else {
      append_unknown(word.substr(piece->first, length), scratch, ids);
    }
  }
}

void UnigramModel::append_unknown(std::string_view bytes, ModelScratch& scratch, std::vector<TokenId>& ids) const {
  if (has_all_bytes_) {
    for (const char byte : bytes) ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    return;
  }
  for (std::size_t at = 0; at < bytes.size(); ++scratch.inexpressible)
    at += read_char(bytes.data() + at, bytes.data() + bytes.size()).length;
  if (vocabulary_->unknown >= 0) ids.push_back(vocabulary_->unknown);
}

}  // namespace couplet::text
