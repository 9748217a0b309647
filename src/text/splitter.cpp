#include "text/splitter.h"

#include <string>
#include <utility>

#include "couplet/error.h"

namespace couplet::text {
namespace {

// The patterns in use read a character at most three times.
constexpr std::size_t kMaxReadings = 64;

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
  const std::size_t most = characters_read + kMaxReadings * (piece.size() + 1);
  Placer placer(piece, behaviour_, pieces);
  for (std::size_t at = 0; at < piece.size();) {
    const WordPattern::Match match = pattern_.find(piece, at, characters_read);
    placer.add(at, match.begin, invert_);
    placer.add(match.begin, match.end, !invert_);
    at = match.end;
    if (characters_read > most)
      throw Error(ErrorKind::resource, "[tokenizer] pattern: expected one that reads a text a few times, got one that "
                                       "reads it more than " +
                                           std::to_string(kMaxReadings) + " times");
  }
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
