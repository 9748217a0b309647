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
  for_each_at(text, begin, [&](std::size_t length, TokenId id) { match = {begin, length, id}; });
  return match;
}

std::uint32_t PieceFinder::first_with(std::uint32_t low, std::uint32_t high, std::size_t depth, int least) const {
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    const std::string_view piece = pieces_[middle];
    const int here = piece.size() > depth ? static_cast<unsigned char>(piece[depth]) : -1;
    if (here < least) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace couplet::text
