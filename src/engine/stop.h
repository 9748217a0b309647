#pragma once
// Cuts a reply at the first of its stop texts, wherever tokens divide them: what could still become a stop text is held
// back, so nothing of one is ever shown. What is shown depends on the text alone, never on how it came in pieces.
// The first match to be complete wins; of those that end together, the longest.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace couplet::engine {

class StopMatcher {
 public:
  // None of `texts` may be empty. Cost a byte: one comparison a text, amortized.
  explicit StopMatcher(std::span<const std::string> texts);

  // Takes the next piece of the reply, whole characters; returns the text that may now be shown. Views last until the
  // next call. After a match, pieces are dropped.
  std::string_view push(std::string_view piece);
  // The reply ended without a match (a limit, an end id): what was held back belongs to it.
  std::string_view flush();

  bool matched() const { return matched_; }
  std::string_view held() const { return std::string_view(text_).substr(shown_); }  // bytes held back
  void reset();  // for another reply with the same texts

 private:
  struct Pattern {
    std::string text;
    std::vector<std::size_t> fallback;  // [n]: longest proper prefix of text[0, n] that also ends it
    std::size_t length = 0;             // of the prefix that the reply ends with now
  };
  static void advance(Pattern& pattern, char byte);

  std::vector<Pattern> patterns_;
  std::string text_;       // shown in the last call, then held back
  std::size_t shown_ = 0;
  bool matched_ = false;
};

}  // namespace couplet::engine
