#pragma once
// One step of cutting a text into words: a pattern's matches, the stretches between them, and what becomes of both.
// Steps follow each other: each cuts the pieces that the one before it left, and sees nothing beyond a piece's end.

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/word_pattern.h"

namespace couplet::text {

// What happens to a match. "Merged" ones go to the stretch before or after them, unless that is a match too.
enum class SplitBehaviour : std::uint8_t {
  removed,
  isolated,
  contiguous,  // neighbouring matches are one piece, and, inverted, neighbouring stretches
  merged_with_previous,
  merged_with_next
};

class Splitter {
 public:
  // `invert`: the stretches between matches count as the matches.
  explicit Splitter(std::string_view pattern, SplitBehaviour behaviour = SplitBehaviour::isolated, bool invert = false)
      : pattern_(pattern), behaviour_(behaviour), invert_(invert) {}

  const WordPattern& pattern() const { return pattern_; }

  // Appends what `piece` is cut into; never an empty piece. Throws as WordPattern::for_each_match() does.
  void split(std::string_view piece, std::vector<std::string_view>& pieces, std::size_t& characters_read) const;

 private:
  WordPattern pattern_;
  SplitBehaviour behaviour_;
  bool invert_;
};

// The pieces of `text` after all steps, in `pieces`; `before` is scratch.
void cut(std::string_view text, const std::vector<Splitter>& steps, std::vector<std::string_view>& pieces,
         std::vector<std::string_view>& before, std::size_t& characters_read);

}  // namespace couplet::text
