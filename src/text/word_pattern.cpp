#include "text/word_pattern.h"

#include <algorithm>
#include <map>
#include <string>

#include "couplet/error.h"
#include "text/pattern_parser.h"
#include "text/unicode_tables.h"
#include "text/utf8.h"

namespace couplet::text {
namespace {

// The patterns in use need at most a few hundred steps and fifty states.
constexpr std::size_t kMaxSteps = 20000;
constexpr std::size_t kMaxStates = 2000;

[[noreturn]] void refuse_size(std::size_t limit, const char* what) {
  throw Error(ErrorKind::unsupported,
              "[tokenizer] pattern: expected at most " + std::to_string(limit) + " " + what + ", got more");
}

// The pattern as a nondeterministic automaton. Of the ways through it the one counts that prefers `next` to
// `other`.
struct Step {
  enum Kind : std::uint8_t { take, split, accept };
  static constexpr std::uint32_t kAnySet = 64;
  Kind kind = accept;
  std::uint32_t set = kAnySet;  // take: what it takes; accept: what must not come next
  std::uint32_t next = 0, other = 0;
};

class Steps {
 public:
  explicit Steps(const PatternNode& root) : steps_(1) { start_ = compile(root, kAccept); }

  std::uint32_t start() const { return start_; }
  const Step& operator[](std::uint32_t i) const { return steps_[i]; }
  std::size_t size() const { return steps_.size(); }

 private:
  static constexpr std::uint32_t kAccept = 0;

  std::uint32_t add(Step step) {
    if (steps_.size() == kMaxSteps) refuse_size(kMaxSteps, "steps");
    steps_.push_back(step);
    return static_cast<std::uint32_t>(steps_.size() - 1);
  }

  // The step that begins `node` and goes on with `next`.
  std::uint32_t compile(const PatternNode& node, std::uint32_t next) {
    switch (node.kind) {
      case PatternNode::one_of:
        return add({Step::take, node.set, next, 0});
      case PatternNode::not_next:
        if (next != kAccept)
          throw Error(
              ErrorKind::unsupported,
              "[tokenizer] pattern: expected (?!...) at the end of an alternative, got more after it");
        return add({Step::accept, node.set, 0, 0});
      case PatternNode::sequence:
        for (auto child = node.children.rbegin(); child != node.children.rend(); ++child)
          next = compile(*child, next);
        return next;
      case PatternNode::either: {
        std::uint32_t first = compile(node.children.back(), next);
        for (auto child = node.children.rbegin() + 1; child != node.children.rend(); ++child) {
          first = add({Step::split, 0, compile(*child, next), first});
        }
        return first;
      }
      case PatternNode::repeat:
        return compile_repeat(node, next);
    }
    return next;
  }

  std::uint32_t compile_repeat(const PatternNode& node, std::uint32_t next) {
    const PatternNode& child = node.children.front();
    std::uint32_t first = next;
    if (node.max < 0) {
      first = add({Step::split, 0, 0, next});
      const std::uint32_t body = compile(child, first);
      steps_[first].next = body;
    }
    for (int i = node.min; i < node.max; ++i) first = add({Step::split, 0, compile(child, first), next});
    for (int i = 0; i < node.min; ++i) first = compile(child, first);
    return first;
  }

  std::vector<Step> steps_;
  std::uint32_t start_;
};

// The ways that are open at a place in the text, best first; none after one that is certain to end the word.
class OpenWays {
 public:
  explicit OpenWays(const Steps& steps) : steps_(&steps), seen_(steps.size(), false) {}

  void add(std::uint32_t step) {
    stack_.push_back(step);
    while (!stack_.empty() && !complete_) {
      const std::uint32_t top = stack_.back();
      stack_.pop_back();
      if (seen_[top]) continue;
      seen_[top] = true;
      const Step& way = (*steps_)[top];
      if (way.kind == Step::split) {
        stack_.push_back(way.other);
        stack_.push_back(way.next);
        continue;
      }
      ways_.push_back(top);
      complete_ = way.kind == Step::accept && way.set == Step::kAnySet;
    }
  }
  const std::vector<std::uint32_t>& ways() const { return ways_; }

 private:
  const Steps* steps_;
  std::vector<bool> seen_;
  std::vector<std::uint32_t> stack_, ways_;
  bool complete_ = false;
};

// Code points that no set tells apart form a class. Fills class_of; returns for each class the bits of its
// sets.
std::vector<std::uint64_t> classify(const std::vector<CharSet>& sets, std::vector<std::uint8_t>& class_of) {
  std::vector<char32_t> starts;
  for (const std::uint32_t range : kCategoryRanges) starts.push_back(range >> 5U);
  for (const CharSet& set : sets) {
    for (const auto& [first, last] : set.ranges) starts.insert(starts.end(), {first, last + 1});
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  while (starts.back() >= kNumCodePoints) starts.pop_back();
  starts.push_back(kNumCodePoints);

  class_of.resize(kNumCodePoints);
  std::vector<std::uint64_t> classes;
  std::size_t range = 0;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    while (range + 1 < kNumCategoryRanges && kCategoryRanges[range + 1] >> 5U <= starts[i]) ++range;
    std::uint64_t bits = 0;
    for (std::size_t set = 0; set < sets.size(); ++set) {
      if (sets[set].contains(starts[i], kCategoryRanges[range] & 31U)) bits |= std::uint64_t{1} << set;
    }
    const auto found = std::find(classes.begin(), classes.end(), bits);
    if (found == classes.end() && classes.size() == 255) refuse_size(255, "kinds of character");
    const auto index = static_cast<std::uint8_t>(found - classes.begin());
    if (found == classes.end()) classes.push_back(bits);
    std::fill(class_of.begin() + starts[i], class_of.begin() + starts[i + 1], index);
  }
  return classes;
}

}  // namespace

WordPattern::WordPattern(std::string_view pattern) {
  const ParsedPattern parsed = parse_pattern(pattern);
  const Steps steps(parsed.root);
  std::vector<std::uint64_t> classes = classify(parsed.sets, class_of_);
  classes.push_back(0);  // the end of the text: in no set
  stride_ = classes.size();

  // Subset construction. State 0 has no way left, state 1 begins a word.
  std::map<std::vector<std::uint32_t>, std::uint32_t> numbers;
  std::vector<std::vector<std::uint32_t>> states;
  const auto number_of = [&](const std::vector<std::uint32_t>& ways) {
    const auto [found, is_new] = numbers.emplace(ways, static_cast<std::uint32_t>(states.size()));
    if (is_new) states.push_back(ways);
    if (states.size() > kMaxStates) refuse_size(kMaxStates, "states");
    return found->second;
  };
  number_of({});
  OpenWays start(steps);
  start.add(steps.start());
  number_of(start.ways());
  for (std::size_t state = 0; state < states.size(); ++state) {
    const std::vector<std::uint32_t> ways = states[state];
    for (const std::uint64_t bits : classes) {
      OpenWays after(steps);
      bool ends = false;
      for (const std::uint32_t way : ways) {
        const Step& step = steps[way];
        const bool next_in_set = step.set != Step::kAnySet && (bits >> step.set & 1U) != 0;
        ends = step.kind == Step::accept && !next_in_set;
        if (ends) break;  // what is less preferred than a whole word no longer counts
        if (step.kind == Step::take && next_in_set) after.add(step.next);
      }
      table_.push_back(number_of(after.ways()) * static_cast<std::uint32_t>(stride_) << 1U |
                       (ends ? kEndsBefore : 0));
    }
  }
}

std::size_t WordPattern::end_of_word(std::string_view text, std::size_t begin,
                                     std::size_t& characters_read) const {
  const char* const end = text.data() + text.size();
  const char* at = text.data() + begin;
  const char* word_end = at;
  std::size_t row = stride_;
  std::size_t read = 0;
  while (row != 0) {
    ++read;
    std::size_t kind = stride_ - 1;
    std::size_t length = 1;
    if (at != end) {
      const auto byte = static_cast<unsigned char>(*at);
      char32_t code_point = byte;
      if (byte >= 0x80) {
        const Utf8Char character = read_char(at, end);
        code_point = character.code_point;
        length = character.length;
      }
      kind = class_of_[code_point];
    }
    const std::uint32_t entry = table_[row + kind];
    if ((entry & kEndsBefore) != 0) word_end = at;
    row = entry >> 1U;
    at += length;
  }
  characters_read += read;
  const char* const first = text.data() + begin;
  if (word_end == first) word_end += read_char(first, end).length;
  return static_cast<std::size_t>(word_end - text.data());
}

}  // namespace couplet::text
