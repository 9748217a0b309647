#include "text/pattern_parser.h"

#include <algorithm>
#include <string>

#include "couplet/error.h"
#include "text/unicode_tables.h"
#include "text/utf8.h"

namespace couplet::text {
namespace {

constexpr std::size_t kMaxPatternBytes = 8192;  // the longest in use has 700
constexpr int kMaxDepth = 16;                   // of groups in groups, or classes in classes
constexpr int kMaxRepeat = 100;                 // the automaton holds a copy for each

constexpr std::uint32_t categories(std::string_view names) {
  std::uint32_t bits = 0;
  for (std::uint32_t i = 0; i < kCategoryNames.size() / 2; ++i) {
    for (std::size_t at = 0; at < names.size(); at += 3) {
      if (names.substr(at, 2) == kCategoryNames.substr(2UL * i, 2)) bits |= 1U << i;
    }
  }
  return bits;
}

// The code points that are in both sets or, where `both` is null, all that are not in `set`; as ranges alone.
CharSet combine(const CharSet& set, const CharSet* both) {
  std::vector<char32_t> starts;
  for (const std::uint32_t range : kCategoryRanges) starts.push_back(range >> 5U);
  for (const CharSet* one : {&set, both}) {
    if (one == nullptr) continue;
    for (const auto& [first, last] : one->ranges) starts.insert(starts.end(), {first, last + 1});
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  starts.push_back(kNumCodePoints);
  CharSet combined;
  std::size_t range = 0;
  for (std::size_t i = 0; i + 1 < starts.size() && starts[i] < kNumCodePoints; ++i) {
    while (range + 1 < kNumCategoryRanges && kCategoryRanges[range + 1] >> 5U <= starts[i]) ++range;
    const std::uint32_t category = kCategoryRanges[range] & 31U;
    const bool in_set = set.contains(starts[i], category);
    if (both != nullptr ? in_set && both->contains(starts[i], category) : !in_set)
      combined.ranges.emplace_back(starts[i], starts[i + 1] - 1);
  }
  combined.sort();
  return combined;
}

void unite(CharSet& set, CharSet other) {
  other.sort();
  if (other.negated) {
    other.negated = false;
    other = combine(other, nullptr);
  }
  set.ranges.insert(set.ranges.end(), other.ranges.begin(), other.ranges.end());
  set.categories |= other.categories;
  set.sort();
}

CharSet space_set() { return {{{'\t', '\r'}, {0x85, 0x85}}, categories("Zs Zl Zp")}; }

// Letters, marks, digits and what joins words; also Latin-1's other numbers, and the circled and squared letters.
CharSet word_set() {
  return {{{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}},
          categories("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl Pc")};
}

class Parser {
 public:
  explicit Parser(std::string_view pattern) : pattern_(pattern) {}

  ParsedPattern parse() {
    if (pattern_.size() > kMaxPatternBytes) refuse("more than " + std::to_string(kMaxPatternBytes) + " bytes");
    PatternNode root = parse_either(0);
    if (at_ != pattern_.size()) refuse("an unmatched )");
    return {std::move(root), std::move(sets_)};
  }

 private:
  [[noreturn]] void refuse(const std::string& got) const {
    throw Error(
        ErrorKind::unsupported,
        "[tokenizer] pattern: expected classes, groups, alternatives, greedy repeats or a last (?!class), got " +
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
    if (skip("(?i)")) {
      any_case_ = true;
      return {};
    }
    if (skip("(?:")) return parse_group(depth, any_case_);
    if (skip("(?i:")) return parse_group(depth, true);
    if (skip("(?!")) {
      PatternNode node{.kind = PatternNode::not_next, .set = add(parse_set())};
      expect(")");
      return node;
    }
    if (next_is("(?")) refuse("a group of the kind " + std::string(pattern_.substr(at_, 3)));
    if (skip("(")) return parse_group(depth, any_case_);
    // The end of a line: of the text, or before a newline.
    if (skip("$")) return {.kind = PatternNode::not_next, .set = add({{{'\n', '\n'}}, 0, true})};
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
    if (skip("[")) return parse_class(0);
    if (skip(".")) return {{{'\n', '\n'}}, 0, true};
    if (std::string_view("(){}?*+^$]|").find(pattern_[at_]) != std::string_view::npos)
      refuse(std::string(1, pattern_[at_]));
    CharSet set;
    add_item(set, false);
    return set;
  }

  // What follows "[".
  CharSet parse_class(int depth) {
    if (depth > kMaxDepth) refuse("too many classes in classes");
    const bool negated = skip("^");
    CharSet set, all_before;
    bool is_intersection = false;
    do {
      if (next_is("[:")) refuse("a class of the kind [:name:]");
      if (skip("[")) {
        unite(set, parse_class(depth + 1));
      } else if (skip("&&")) {
        set.sort();
        all_before = is_intersection ? combine(all_before, &set) : std::move(set);
        set = {};
        is_intersection = true;
      } else {
        add_item(set, true);
      }
    } while (!skip("]"));
    set.sort();
    if (is_intersection) set = combine(all_before, &set);
    set.negated = negated;
    return set;
  }

  // What stands for one or more characters of a class, or alone.
  void add_item(CharSet& set, bool in_class) {
    if (skip("\\p{")) return unite(set, take_category(false));
    if (skip("\\P{")) return unite(set, take_category(true));
    for (const auto& [letter, known] : {std::pair{'s', space_set()}, {'d', {{}, categories("Nd")}}, {'w', word_set()}}) {
      const char lower_name[] = {'\\', letter}, upper_name[] = {'\\', static_cast<char>(letter - 'a' + 'A')};
      const bool is_negated = next_is({upper_name, 2});
      if (!is_negated && !next_is({lower_name, 2})) continue;
      at_ += 2;
      CharSet item = known;
      item.negated = is_negated;
      return unite(set, std::move(item));
    }
    const char32_t first = take_literal();
    char32_t last = first;
    if (in_class && next_is("-") && pattern_.substr(at_ + 1, 1) != "]") {
      skip("-");
      last = take_literal();
      if (last < first) refuse("a range in the wrong order");
    }
    set.ranges.emplace_back(first, last);
    if (!any_case_) return;
    if (last >= 0x80) refuse("a character beyond ASCII in (?i)");
    for (char32_t letter = first; letter <= last; ++letter) add_other_case(set, letter);
  }

  char32_t take_literal() {
    if (!skip("\\")) return take_char();
    if (skip("r")) return '\r';
    if (skip("n")) return '\n';
    if (skip("t")) return '\t';
    if (skip("x{")) {
      const char32_t value = take_hex(1, 6);
      expect("}");
      return value;
    }
    if (skip("x")) return take_hex(2, 2);
    if (skip("u")) return take_hex(4, 4);
    const char32_t escaped = take_char();
    const bool is_letter_or_digit = (escaped >= '0' && escaped <= '9') || (escaped >= 'A' && escaped <= 'Z') ||
                                    (escaped >= 'a' && escaped <= 'z');
    if (escaped >= 0x80 || is_letter_or_digit) refuse("an escape that is not known");
    return escaped;
  }

  char32_t take_hex(int least, int most) {
    char32_t value = 0;
    int count = 0;
    for (; count < most && at_ < pattern_.size(); ++count, ++at_) {
      const std::size_t digit = std::string_view("0123456789abcdefABCDEF").find(pattern_[at_]);
      if (digit == std::string_view::npos) break;
      value = 16 * value + static_cast<char32_t>(digit < 16 ? digit : digit - 6);
    }
    if (count < least || value >= kNumCodePoints) refuse("no hexadecimal code point");
    return value;
  }

  CharSet take_category(bool negated) {
    if (skip("^")) negated = !negated;
    const std::string_view name = pattern_.substr(at_, pattern_.find('}', at_) - at_);
    CharSet set;
    set.negated = negated;
    if (name.size() == 1 || name.size() == 2) {
      for (std::uint32_t i = 0; i < kCategoryNames.size() / 2; ++i) {
        if (kCategoryNames.substr(2UL * i, 2).starts_with(name)) set.categories |= 1U << i;
      }
    }
    if (set.categories == 0) refuse("\\p{...} that is no general category");
    at_ += name.size() + 1;
    return set;
  }

  static void add_other_case(CharSet& set, char32_t letter) {
    const char32_t lower = letter | 0x20U;
    if (lower < 'a' || lower > 'z') return;
    set.ranges.emplace_back(letter ^ 0x20U, letter ^ 0x20U);
    if (lower == 's') set.ranges.emplace_back(0x17F, 0x17F);    // the long s folds to s,
    if (lower == 'k') set.ranges.emplace_back(0x212A, 0x212A);  // the sign for kelvin to k
  }

  std::uint32_t add(CharSet set) {
    set.sort();
    const auto found = std::find(sets_.begin(), sets_.end(), set);
    const auto index = static_cast<std::uint32_t>(found - sets_.begin());
    if (found == sets_.end()) sets_.push_back(std::move(set));
    if (sets_.size() > 63)
      refuse("more than 63 different classes");  // WordPattern keeps a bit for each in 64
    return index;
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  bool any_case_ = false;
  std::vector<CharSet> sets_;
};

}  // namespace

void CharSet::sort() {
  std::sort(ranges.begin(), ranges.end());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (kept > 0 && ranges[i].first <= ranges[kept - 1].second + 1) {
      ranges[kept - 1].second = std::max(ranges[kept - 1].second, ranges[i].second);
    } else {
      ranges[kept++] = ranges[i];
    }
  }
  ranges.resize(kept);
}

bool CharSet::contains(char32_t code_point, std::uint32_t category) const {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), code_point,
                                      [](char32_t value, const auto& range) { return value < range.first; });
  const bool within = (categories >> category & 1U) != 0 ||
                      (after != ranges.begin() && code_point <= std::prev(after)->second);
  return within != negated;
}

ParsedPattern parse_pattern(std::string_view pattern) { return Parser(pattern).parse(); }

}  // namespace couplet::text
