#include "text/splitter.h"

#include <utility>

namespace couplet::text {
namespace {

// Puts matches and stretches, as they come, where the behaviour wants them.
class Placer {
 public:
  Placer(std::string_view piece, SplitBehaviour behaviour, std::vector<std::string_view>& pieces)
      : piece_(piece), behaviour_(behaviour), pieces_(&pieces) {}

  void add(std::size_t begin, std::size_t end, bool is_match) {
    if (begin == end) return;
    const bool after_match = std::exchange(last_is_match_, is_match);
    switch (behaviour_) {
      case SplitBehaviour::removed:
        if (!is_match) put(begin, end);
        break;
      case SplitBehaviour::isolated:
        put(begin, end);
        break;
      case SplitBehaviour::contiguous:
        put(is_match == after_match && begin > 0 ? take_last() : begin, end);
        break;
      case SplitBehaviour::merged_with_previous:
        put(is_match && !after_match && begin > 0 ? take_last() : begin, end);
        break;
      case SplitBehaviour::merged_with_next:
        put(!is_match && after_match ? take_last() : begin, end);
        break;
    }
  }

 private:
  void put(std::size_t begin, std::size_t end) {
    last_begin_ = begin;
    pieces_->push_back(piece_.substr(begin, end - begin));
  }
  std::size_t take_last() {
    pieces_->pop_back();
    return last_begin_;
  }

  std::string_view piece_;
  SplitBehaviour behaviour_;
  std::vector<std::string_view>* pieces_;
  std::size_t last_begin_ = 0;
  bool last_is_match_ = false;
};

}  // namespace

void Splitter::split(std::string_view piece, std::vector<std::string_view>& pieces,
                     std::size_t& characters_read) const {
  Placer placer(piece, behaviour_, pieces);
  pattern_.for_each_match(piece, characters_read, [&](std::size_t at, WordPattern::Match match) {
    placer.add(at, match.begin, invert_);
    placer.add(match.begin, match.end, !invert_);
  });
}

void cut(std::string_view text, const std::vector<Splitter>& steps, std::vector<std::string_view>& pieces,
         std::vector<std::string_view>& before, std::size_t& characters_read) {
  pieces.assign(text.empty() ? 0 : 1, text);
  for (const Splitter& step : steps) {
    pieces.swap(before);
    pieces.clear();
    for (const std::string_view piece : before) step.split(piece, pieces, characters_read);
  }
}

}  // namespace couplet::text
