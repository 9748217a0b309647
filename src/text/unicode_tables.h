#pragma once
// The general category of every Unicode code point ("Lu", "Nd", ...), which is all that the pre-tokenizers'
// classes need: \p{L} and \p{N} are categories, \s is the Z categories and six control characters. And what normalizers
// need: which code points Unicode 9 has, whose normal forms tokenizers take, and small letters.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace couplet::text {

inline constexpr char32_t kNumCodePoints = 0x110000;

// Two letters a category, in the order of the numbers used below.
inline constexpr std::string_view kCategoryNames =
    "LuLlLtLmLoMnMcMeNdNlNoPcPdPsPePiPfPoSmScSkSoZsZlZpCcCfCsCoCn";

// Where a run of code points of one category begins, ascending: first code point << 5 | category.
inline constexpr std::size_t kNumCategoryRanges = 4099;
extern const std::uint32_t kCategoryRanges[kNumCategoryRanges];

// Where Unicode 9 stops having code points, has them again, and so on, ascending.
inline constexpr std::size_t kNumUnicode9Edges = 1294;
extern const std::uint32_t kUnicode9Edges[kNumUnicode9Edges];

// Every `step`th code point of [first, last] is a capital, whose small letter is `distance` further. Ascending.
struct LowercaseRange {
  std::uint32_t first, last, step;
  std::int32_t distance;
};
inline constexpr std::size_t kNumLowercaseRanges = 185;
extern const LowercaseRange kLowercaseRanges[kNumLowercaseRanges];

// Index of the category in kCategoryNames.
inline std::uint32_t category_of(char32_t code_point) {
  const std::uint32_t* const next =
      std::upper_bound(std::begin(kCategoryRanges), std::end(kCategoryRanges), code_point << 5U | 31U);
  return *std::prev(next) & 31U;
}

inline bool is_in_unicode_9(char32_t code_point) {
  if (code_point < kUnicode9Edges[0]) return true;
  const std::uint32_t* const next = std::upper_bound(std::begin(kUnicode9Edges), std::end(kUnicode9Edges), code_point);
  return (next - std::begin(kUnicode9Edges)) % 2 == 0;
}

// The code point itself where it is no capital. The one capital whose small letter is two code points, U+0130, isn't in
// the table.
inline char32_t to_lowercase(char32_t code_point) {
  const LowercaseRange* const next =
      std::upper_bound(std::begin(kLowercaseRanges), std::end(kLowercaseRanges), code_point,
                       [](char32_t value, const LowercaseRange& range) { return value < range.first; });
  if (next == std::begin(kLowercaseRanges)) return code_point;
  const LowercaseRange& range = *std::prev(next);
  if (code_point > range.last || (code_point - range.first) % range.step != 0) return code_point;
  return static_cast<char32_t>(static_cast<std::int32_t>(code_point) + range.distance);
}

}  // namespace couplet::text
