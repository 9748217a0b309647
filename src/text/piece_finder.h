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

  // Calls `visit(length, id)` for every piece that the text has at `begin`, the shortest first.
  template <typename Visit>
  void for_each_at(std::string_view text, std::size_t begin, const Visit& visit) const {
    auto [low, high] = by_first_[static_cast<unsigned char>(text[begin])];
    // [low, high): the pieces that begin with the `depth` bytes from `begin` on; one that is just these is the first.
    for (std::size_t depth = 1; low < high; ++depth) {
      if (pieces_[low].size() == depth) visit(depth, ids_[low]);
      if (begin + depth == text.size()) break;
      const int byte = static_cast<unsigned char>(text[begin + depth]);
      low = first_with(low, high, depth, byte);
      high = first_with(low, high, depth, byte + 1);
    }
  }

 private:
  // The first of the pieces [low, high) whose byte at `depth` is at least `least`; one without it comes first.
  std::uint32_t first_with(std::uint32_t low, std::uint32_t high, std::size_t depth, int least) const;
  Match longest_at(std::string_view text, std::size_t begin) const;

  StringTable pieces_;  // sorted
  std::vector<TokenId> ids_;
  std::array<std::pair<std::uint32_t, std::uint32_t>, 256>
      by_first_{};                // range of pieces with this first byte
  std::bitset<256> alone_;        // first bytes that are a whole piece
  std::bitset<65536> first_two_;  // [first byte * 256 + second]: most places are ruled out here
};

}  // namespace couplet::text
