#pragma once
// The tokens that a tokenizer.json lists beside its model: they are cut out of a text before anything else, some out
// of the text as it came, the others out of what normalizing made of it.

#include <string>
#include <string_view>
#include <vector>

#include "text/normalizer.h"
#include "text/piece_finder.h"

namespace couplet::text {

struct AddedToken {
  TokenId id = -1;
  std::string content;
  bool special = false;
  bool lstrip = false, rstrip = false;  // takes the white space beside it too
  bool single_word = false;             // not where it is part of a word
  bool normalized = false;
};

class AddedTokens {
 public:
  AddedTokens(std::vector<AddedToken> tokens, const std::vector<NormalizerStep>& normalizer);

  const std::vector<AddedToken>& tokens() const { return tokens_; }

  // Calls `stretch(begin, end)` and `token(id)` in the order of the text. `normalized` chooses which tokens; special ones
  // count only with `special`.
  template <typename Stretch, typename Token>
  void cut(std::string_view text, bool normalized, bool special, const Stretch& stretch, const Token& token) const {
    const PieceFinder& finder = normalized ? normalized_ : raw_;
    std::size_t taken = 0;
    for (std::size_t at = 0; at < text.size();) {
      const PieceFinder::Match match = finder.find(text, at);
      if (match.id < 0) break;
      at = match.begin + match.length;
      const AddedToken& found = tokens_[static_cast<std::size_t>(match.id)];
      if ((found.special && !special) || (found.single_word && touches_word(text, match.begin, at))) continue;
      const auto [begin, end] = with_white_space(found, text, match.begin, at, taken);
      if (taken < begin) stretch(taken, begin);
      token(found.id);
      taken = end;
    }
    if (taken < text.size()) stretch(taken, text.size());
  }

 private:
  static bool touches_word(std::string_view text, std::size_t begin, std::size_t end);
  static std::pair<std::size_t, std::size_t> with_white_space(const AddedToken& token, std::string_view text,
                                                              std::size_t begin, std::size_t end, std::size_t taken);

  std::vector<AddedToken> tokens_;
  PieceFinder raw_, normalized_;  // their ids are indices of tokens_
};

}  // namespace couplet::text
