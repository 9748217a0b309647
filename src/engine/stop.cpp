#include "engine/stop.h"

#include <algorithm>

#include "base/check.h"

namespace couplet::engine {

StopMatcher::StopMatcher(std::span<const std::string> texts) {
  patterns_.reserve(texts.size());
  for (const std::string& text : texts) {
    COUPLET_CHECK(!text.empty());
    Pattern& pattern = patterns_.emplace_back(text);
    pattern.fallback.assign(text.size() + 1, 0);
    for (std::size_t n = 1; n < text.size(); ++n) {  // the text run over itself
      advance(pattern, text[n]);
      pattern.fallback[n + 1] = pattern.length;
    }
    pattern.length = 0;
  }
}

void StopMatcher::advance(Pattern& pattern, char byte) {
  while (pattern.length > 0 && (pattern.length == pattern.text.size() || pattern.text[pattern.length] != byte))
    pattern.length = pattern.fallback[pattern.length];
  if (pattern.text[pattern.length] == byte) ++pattern.length;
}

std::string_view StopMatcher::push(std::string_view piece) {
  text_.erase(0, shown_);
  shown_ = 0;
  if (matched_) return {};
  std::size_t held = text_.size();
  for (const char byte : piece) {
    text_.push_back(byte);
    held = 0;
    std::size_t match = 0;
    for (Pattern& pattern : patterns_) {
      advance(pattern, byte);
      held = std::max(held, pattern.length);
      if (pattern.length == pattern.text.size()) match = std::max(match, pattern.length);
    }
    if (match > 0) {
      matched_ = true;
      text_.resize(text_.size() - match);
      held = 0;
      break;
    }
  }
  shown_ = text_.size() - held;
  return std::string_view(text_).substr(0, shown_);
}

std::string_view StopMatcher::flush() {
  text_.erase(0, shown_);
  shown_ = text_.size();
  return text_;
}

void StopMatcher::reset() {
  for (Pattern& pattern : patterns_) pattern.length = 0;
  text_.clear();
  shown_ = 0;
  matched_ = false;
}

}  // namespace couplet::engine
