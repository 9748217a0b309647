#pragma once
// Finds the pieces that a text is cut at before anything else: user-defined ones, and control tokens where
// asked for. The leftmost match counts, and there the longest.

#include <array>
#include <bitset>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "couplet/tokenizer.h"
#include "text/lookup.h"

namespace couplet::text {

class PieceFinder {
 public:
  PieceFinder() = default;
  // Of two pieces spelled alike the lower id counts; empty ones never match.
  explicit PieceFinder(std::vector<std::pair<std::string_view, TokenId>> pieces);

  struct Match {
    std::size_t begin = 0, length = 0;  // no match: the text's end, 0
    TokenId id = -1;
  };
  Match find(std::string_view text, std::size_t from) const;

 private:
  Match longest_at(std::string_view text, std::size_t begin) const;

  StringTable pieces_;  // sorted
  std::vector<TokenId> ids_;
  std::array<std::pair<std::uint32_t, std::uint32_t>, 256>
      by_first_{};                // range of pieces with this first byte
  std::bitset<256> alone_;        // first bytes that are a whole piece
  std::bitset<65536> first_two_;  // [first byte * 256 + second]: most places are ruled out here
};

}  // namespace couplet::text
