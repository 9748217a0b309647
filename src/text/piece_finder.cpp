#include "text/piece_finder.h"

#include <algorithm>

namespace couplet::text {

PieceFinder::PieceFinder(std::vector<std::pair<std::string_view, TokenId>> pieces) {
  std::sort(pieces.begin(), pieces.end());  // of two alike the lower id comes first
  for (const auto& [piece, id] : pieces) {
    if (piece.empty() || (!ids_.empty() && pieces_[ids_.size() - 1] == piece)) continue;
    const auto index = static_cast<std::uint32_t>(ids_.size());
    pieces_.add(piece);
    ids_.push_back(id);
    const std::size_t first = static_cast<unsigned char>(piece[0]);
    auto& range = by_first_[first];
    if (range.second == 0) range.first = index;
    range.second = index + 1;
    if (piece.size() == 1) {
      alone_.set(first);
    } else {
      first_two_.set(first << 8U | static_cast<unsigned char>(piece[1]));
    }
  }
}

PieceFinder::Match PieceFinder::find(std::string_view text, std::size_t from) const {
  if (!ids_.empty()) {
    for (std::size_t at = from; at < text.size(); ++at) {
      const std::size_t first = static_cast<unsigned char>(text[at]);
      if (by_first_[first].second == 0) continue;
      const bool may_go_on =
          at + 1 < text.size() && first_two_[first << 8U | static_cast<unsigned char>(text[at + 1])];
      if (!may_go_on && !alone_[first]) continue;
      const Match match = longest_at(text, at);
      if (match.id >= 0) return match;
    }
  }
  return {text.size(), 0, -1};
}

PieceFinder::Match PieceFinder::longest_at(std::string_view text, std::size_t begin) const {
  Match match;
  auto [low, high] = by_first_[static_cast<unsigned char>(text[begin])];
  // [low, high): the pieces that begin with the `depth` bytes from `begin` on; one that is just these is the
  // first.
  for (std::size_t depth = 1; low < high; ++depth) {
    if (pieces_[low].size() == depth) match = {begin, depth, ids_[low]};
    if (begin + depth == text.size()) break;
    const int byte = static_cast<unsigned char>(text[begin + depth]);
    const auto bound = [&](std::uint32_t from, int least) {
      std::uint32_t to = high;
      while (from < to) {
        const std::uint32_t middle = from + (to - from) / 2;
        const std::string_view piece = pieces_[middle];
        const int here = piece.size() > depth ? static_cast<unsigned char>(piece[depth]) : -1;
        if (here < least) {
          from = middle + 1;
        } else {
          to = middle;
        }
      }
      return from;
    };
    low = bound(low, byte);
    high = bound(low, byte + 1);
  }
  return match;
}

}  // namespace couplet::text
