#include "text/pattern_parser.h"

#include <algorithm>
#include <string>

#include "couplet/error.h"
#include "text/unicode_tables.h"
#include "text/utf8.h"

namespace couplet::text {
namespace {

constexpr int kMaxDepth = 16;    // of groups in groups
constexpr int kMaxRepeat = 100;  // the automaton holds a copy for each

class Parser {
 public:
  explicit Parser(std::string_view pattern) : pattern_(pattern) {}

  ParsedPattern parse() {
    PatternNode root = parse_either(0);
    if (at_ != pattern_.size()) refuse("an unmatched )");
    return {std::move(root), std::move(sets_)};
  }

 private:
  [[noreturn]] void refuse(const std::string& got) const {
    throw Error(
        ErrorKind::unsupported,
        "[tokenizer] pattern: expected classes, groups, alternatives, repeats or a last (?!class), got " +
            got + " at byte " + std::to_string(at_));
  }

  bool next_is(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool skip(std::string_view text) {
    if (!next_is(text)) return false;
    at_ += text.size();
    return true;
  }
  void expect(std::string_view text) {
    if (!skip(text)) refuse("no " + std::string(text));
  }
  char32_t take_char() {
    if (at_ == pattern_.size()) refuse("the end");
    const Utf8Char read = read_char(pattern_.data() + at_, pattern_.data() + pattern_.size());
    at_ += read.length;
    return read.code_point;
  }
  int take_number() {
    int number = 0;
    const std::size_t begin = at_;
    for (; at_ < pattern_.size() && pattern_[at_] >= '0' && pattern_[at_] <= '9' && number <= kMaxRepeat;
         ++at_) {
      number = 10 * number + (pattern_[at_] - '0');
    }
    if (begin == at_ || number > kMaxRepeat)
      refuse("a count that is no number up to " + std::to_string(kMaxRepeat));
    return number;
  }

  PatternNode parse_either(int depth) {
    if (depth > kMaxDepth) refuse("too many groups in groups");
    PatternNode either{.kind = PatternNode::either};
    do {
      PatternNode sequence{.kind = PatternNode::sequence};
      while (at_ < pattern_.size() && !next_is("|") && !next_is(")"))
        sequence.children.push_back(parse_repeat(depth));
      either.children.push_back(std::move(sequence));
    } while (skip("|"));
    return either;
  }

  PatternNode parse_repeat(int depth) {
    PatternNode atom = parse_atom(depth);
    PatternNode repeat{.kind = PatternNode::repeat};
    if (skip("?")) {
      repeat.min = 0;
    } else if (skip("*")) {
      repeat.min = 0;
      repeat.max = -1;
    } else if (skip("+")) {
      repeat.max = -1;
    } else if (skip("{")) {
      repeat.min = repeat.max = take_number();
      if (skip(",")) repeat.max = next_is("}") ? -1 : take_number();
      expect("}");
      if (repeat.max >= 0 && repeat.max < repeat.min) refuse("counts in the wrong order");
    } else {
      return atom;
    }
    if (next_is("?") || next_is("+") || next_is("*")) refuse("a repeat that is not greedy");
    repeat.children.push_back(std::move(atom));
    return repeat;
  }

  PatternNode parse_atom(int depth) {
    if (skip("(?:")) return parse_group(depth, any_case_);
    if (skip("(?i:")) return parse_group(depth, true);
    if (skip("(?!")) {
      PatternNode node{.kind = PatternNode::not_next, .set = add(parse_set())};
      expect(")");
      return node;
    }
    return {.kind = PatternNode::one_of, .set = add(parse_set())};
  }

  PatternNode parse_group(int depth, bool any_case) {
    const bool outer = std::exchange(any_case_, any_case);
    PatternNode group = parse_either(depth + 1);
    any_case_ = outer;
    expect(")");
    return group;
  }

  // One character, escape or [class].
  CharSet parse_set() {
    if (at_ == pattern_.size()) refuse("the end");
    CharSet set;
    if (!skip("[")) {
      if (std::string_view("(){}?*+.^$]").find(pattern_[at_]) != std::string_view::npos)
        refuse(std::string(1, pattern_[at_]));
      add_item(set, false);
      return set;
    }
    set.negated = skip("^");
    do {
      if (next_is("[") || next_is("&&")) refuse("a class in a class");
      add_item(set, true);
    } while (!skip("]"));
    return set;
  }

  // What stands for one or more characters of a class, or alone.
  void add_item(CharSet& set, bool in_class) {
    if (skip("\\p{")) return add_category(set);
    if (skip("\\s")) return add_space(set);
    if (!in_class && skip("\\S")) {
      add_space(set);
      set.negated = true;
      return;
    }
    const char32_t first = take_literal();
    char32_t last = first;
    if (in_class && next_is("-") && pattern_.substr(at_ + 1, 1) != "]") {
      skip("-");
      last = take_literal();
      if (last < first) refuse("a range in the wrong order");
    }
    set.ranges.emplace_back(first, last);
    if (any_case_) add_other_case(set, first);
  }

  char32_t take_literal() {
    if (!skip("\\")) return take_char();
    if (skip("r")) return '\r';
    if (skip("n")) return '\n';
    if (skip("t")) return '\t';
    const char32_t escaped = take_char();
    const bool means_itself =
        escaped < 0x80 && std::string_view("\\/[](){}.*+?^$|-'\"#&~").find(static_cast<char>(escaped)) !=
                              std::string_view::npos;
    if (!means_itself) refuse("an escape that is not known");
    return escaped;
  }

  void add_category(CharSet& set) {
    const std::string_view name = pattern_.substr(at_, pattern_.find('}', at_) - at_);
    if (name.size() != 1 && name.size() != 2) refuse("a class that is no general category");
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < kCategoryNames.size() / 2; ++i) {
      if (kCategoryNames.substr(2UL * i, 2).starts_with(name)) found |= 1U << i;
    }
    if (found == 0) refuse("a class that is no general category");
    set.categories |= found;
    at_ += name.size() + 1;
  }

  static void add_space(CharSet& set) {
    for (const std::string_view name : {"Zs", "Zl", "Zp"})
      set.categories |= 1U << (kCategoryNames.find(name) / 2);
    set.ranges.emplace_back('\t', '\r');
    set.ranges.emplace_back(0x85, 0x85);
  }

  static void add_other_case(CharSet& set, char32_t letter) {
    const char32_t lower = letter | 0x20U;
    if (lower < 'a' || lower > 'z') return;
    set.ranges.emplace_back(letter ^ 0x20U, letter ^ 0x20U);
    if (lower == 's') set.ranges.emplace_back(0x17F, 0x17F);    // the long s folds to s,
    if (lower == 'k') set.ranges.emplace_back(0x212A, 0x212A);  // the sign for kelvin to k
  }

  std::uint32_t add(CharSet set) {
    const auto found = std::find(sets_.begin(), sets_.end(), set);
    const auto index = static_cast<std::uint32_t>(found - sets_.begin());
    if (found == sets_.end()) sets_.push_back(std::move(set));
    if (sets_.size() > 64)
      refuse("more than 64 different classes");  // WordPattern keeps a bit for each in 64
    return index;
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  bool any_case_ = false;
  std::vector<CharSet> sets_;
};

}  // namespace

bool CharSet::contains(char32_t code_point, std::uint32_t category) const {
  const bool within =
      (categories >> category & 1U) != 0 || std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
        return code_point >= range.first && code_point <= range.second;
      });
  return within != negated;
}

ParsedPattern parse_pattern(std::string_view pattern) { return Parser(pattern).parse(); }

}  // namespace couplet::text
