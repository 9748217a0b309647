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
  static constexpr std::uint32_t kAnySet = 63;  // every character is in it
  Kind kind = accept;
  std::uint32_t set = kAnySet;  // take: what it takes; accept: what must not come next, kAnySet: anything may
  std::uint32_t next = 0, other = 0;
};

class Steps {
 public:
  explicit Steps(const PatternNode& root) : steps_(1) { start_ = compile(root, kAccept); }

  std::uint32_t start() const { return start_; }
  // The start of a match there or, less preferred, at a later character. For the last use: start() is as it was.
  std::uint32_t add_search() {
    const std::uint32_t split = add({Step::split, 0, start_, 0});
    const std::uint32_t skip = add({Step::take, Step::kAnySet, split, 0});
    steps_[split].other = skip;
    return split;
  }
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
    std::uint64_t bits = std::uint64_t{1} << Step::kAnySet;
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

// A class of characters is the bits of the sets that it is in; the end of the text is in none.
constexpr std::uint64_t kEndOfText = 0;

bool in_set(std::uint64_t bits, std::uint32_t set) { return (bits >> set & 1U) != 0; }

// Whether a match may end before a character of the class.
bool accepts(const Step& step, std::uint64_t bits) {
  return step.kind == Step::accept && (step.set == Step::kAnySet || !in_set(bits, step.set));
}

// Numbers the states of a table as they are met. State 0 has no way left.
class States {
 public:
  States() { number_of({}); }
  std::uint32_t number_of(const std::vector<std::uint32_t>& ways) {
    const auto [found, is_new] = numbers_.emplace(ways, static_cast<std::uint32_t>(states_.size()));
    if (is_new) states_.push_back(ways);
    if (states_.size() > kMaxStates) refuse_size(kMaxStates, "states");
    return found->second;
  }
  std::size_t size() const { return states_.size(); }
  std::vector<std::uint32_t> operator[](std::size_t i) const { return states_[i]; }

 private:
  std::map<std::vector<std::uint32_t>, std::uint32_t> numbers_;
  std::vector<std::vector<std::uint32_t>> states_;
};

std::uint32_t entry(std::uint32_t state, std::size_t stride, bool flag) {
  return state * static_cast<std::uint32_t>(stride) << 1U | (flag ? 1U : 0U);
}

// Subset construction; state 1 is the beginning.
std::vector<std::uint32_t> build_forward(const Steps& steps, std::uint32_t first,
                                         const std::vector<std::uint64_t>& classes) {
  std::vector<std::uint32_t> table;
  States states;
  OpenWays start(steps);
  start.add(first);
  states.number_of(start.ways());
  for (std::size_t state = 0; state < states.size(); ++state) {
    const std::vector<std::uint32_t> ways = states[state];
    for (const std::uint64_t bits : classes) {
      OpenWays after(steps);
      bool ends = false;
      for (const std::uint32_t way : ways) {
        const Step& step = steps[way];
        ends = accepts(step, bits);
        if (ends) break;  // what is less preferred than a whole word no longer counts
        if (step.kind == Step::take && in_set(bits, step.set)) after.add(step.next);
      }
      table.push_back(entry(states.number_of(after.ways()), classes.size(), ends));
    }
  }
  return table;
}

// The same ways from the end: a state is the steps from which the rest of the match is known to follow. State 1 waits
// for the character after the match, which an accept may forbid.
class Backwards {
 public:
  explicit Backwards(const Steps& steps) : steps_(&steps), before_(steps.size()), known_(steps.size(), false) {
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind == Step::accept) continue;
      before_[steps[i].next].push_back(i);
      if (steps[i].kind == Step::split) before_[steps[i].other].push_back(i);
    }
  }

  std::vector<std::uint32_t> build(const std::vector<std::uint64_t>& classes) {
    constexpr std::uint32_t kWaiting = 0xFFFFFFFF;
    std::vector<std::uint32_t> table;
    States states;
    states.number_of({kWaiting});
    for (std::size_t state = 0; state < states.size(); ++state) {
      const std::vector<std::uint32_t> rest = states[state];
      for (const std::uint64_t bits : classes) {
        std::vector<std::uint32_t> after;
        if (state == 1) {
          for (std::uint32_t i = 0; i < steps_->size(); ++i) {
            if (accepts((*steps_)[i], bits)) add(i, after);
          }
        } else {
          for (const std::uint32_t step : rest) {
            for (const std::uint32_t i : before_[step]) {
              if ((*steps_)[i].kind == Step::take && in_set(bits, (*steps_)[i].set)) add(i, after);
            }
          }
        }
        const bool begins = known_[steps_->start()];
        for (const std::uint32_t step : after) known_[step] = false;
        std::sort(after.begin(), after.end());
        table.push_back(entry(states.number_of(after), classes.size(), begins));
      }
    }
    return table;
  }

 private:
  // `step` and what leads to it without taking a character.
  void add(std::uint32_t step, std::vector<std::uint32_t>& after) {
    std::vector<std::uint32_t> stack = {step};
    while (!stack.empty()) {
      const std::uint32_t top = stack.back();
      stack.pop_back();
      if (known_[top]) continue;
      known_[top] = true;
      after.push_back(top);
      for (const std::uint32_t i : before_[top]) {
        if ((*steps_)[i].kind == Step::split) stack.push_back(i);
      }
    }
  }

  const Steps* steps_;
  std::vector<std::vector<std::uint32_t>> before_;  // [step]: those that go on with it
  std::vector<bool> known_;
};

// Whether every character begins a match, which is certain where one character alone is one.
bool matches_every_character(const std::vector<std::uint32_t>& table, std::size_t stride) {
  for (std::size_t first = 0; first + 1 < stride; ++first) {
    const std::size_t row = table[stride + first] >> 1U;
    for (std::size_t next = 0; next < stride; ++next) {
      if ((table[row + next] & 1U) == 0) return false;
    }
  }
  return true;
}

}  // namespace

WordPattern::WordPattern(std::string_view pattern) {
  const ParsedPattern parsed = parse_pattern(pattern);
  Steps steps(parsed.root);
  std::vector<std::uint64_t> classes = classify(parsed.sets, class_of_);
  classes.push_back(kEndOfText);
  stride_ = classes.size();
  words_ = build_forward(steps, steps.start(), classes);
  if (matches_every_character(words_, stride_)) return;
  for (std::size_t kind = 0; kind < stride_; ++kind) {
    if ((words_[stride_ + kind] & 1U) != 0)
      throw Error(ErrorKind::unsupported,
                  "[tokenizer] pattern: expected one that takes at least a character, got one that can match nothing");
  }
  back_ = Backwards(steps).build(classes);
  search_ = build_forward(steps, steps.add_search(), classes);
}

void WordPattern::refuse_slow() {
  throw Error(ErrorKind::resource,
              "[tokenizer] pattern: expected one that reads a text a few times, got one that reads it more than " +
                  std::to_string(kMaxReadings) + " times");
}

std::size_t WordPattern::class_at(const char* at, const char* end, std::size_t& length) const {
  length = 1;
  if (at == end) return stride_ - 1;
  const auto byte = static_cast<unsigned char>(*at);
  if (byte < 0x80) return class_of_[byte];
  const Utf8Char character = read_char(at, end);
  length = character.length;
  return class_of_[character.code_point];
}

// The end of the match, or null.
const char* WordPattern::run(const Table& table, const char* at, const char* end,
                             std::size_t& characters_read) const {
  const char* word_end = nullptr;
  std::size_t row = stride_;
  std::size_t read = 0;
  while (row != 0) {
    ++read;
    std::size_t length = 1;
    const std::uint32_t next = table[row + class_at(at, end, length)];
    if ((next & 1U) != 0) word_end = at;
    row = next >> 1U;
    at += length;
  }
  characters_read += read;
  return word_end;
}

// The beginning, at `begin` or later, of the longest match that ends at `at`.
const char* WordPattern::run_back(const char* begin, const char* at, const char* end,
                                  std::size_t& characters_read) const {
  std::size_t length = 1;
  std::size_t row = back_[stride_ + class_at(at, end, length)] >> 1U;
  const char* word_begin = at;
  while (row != 0 && at > begin) {
    ++characters_read;
    const char* before = at - 1;
    for (int i = 0; i < 3 && before > begin && is_continuation(*before); ++i) --before;
    if (read_char(before, end).length != static_cast<std::size_t>(at - before)) before = at - 1;
    at = before;
    const std::uint32_t next = back_[row + class_at(at, end, length)];
    if ((next & 1U) != 0) word_begin = at;
    row = next >> 1U;
  }
  return word_begin;
}

std::size_t WordPattern::end_of_word(std::string_view text, std::size_t begin,
                                     std::size_t& characters_read) const {
  const char* const first = text.data() + begin;
  const char* const end = text.data() + text.size();
  const char* word_end = run(words_, first, end, characters_read);
  if (word_end == nullptr || word_end == first) word_end = first + read_char(first, end).length;
  return static_cast<std::size_t>(word_end - text.data());
}

WordPattern::Match WordPattern::find(std::string_view text, std::size_t from, std::size_t& characters_read) const {
  if (from >= text.size()) return {text.size(), text.size()};
  const char* const first = text.data() + from;
  const char* const end = text.data() + text.size();
  const auto place = [&](const char* at) { return static_cast<std::size_t>(at - text.data()); };
  const bool searches = !search_.empty();
  const char* const match_end = run(searches ? search_ : words_, first, end, characters_read);
  if (match_end == nullptr) return {text.size(), text.size()};
  return {searches ? place(run_back(first, match_end, end, characters_read)) : from, place(match_end)};
}

}  // namespace couplet::text
