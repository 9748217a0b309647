#pragma once
// The general category of every Unicode code point ("Lu", "Nd", ...), which is all that the pre-tokenizers'
// classes need: \p{L} and \p{N} are categories, \s is the Z categories and six control characters. And which code points
// Unicode 9 has, whose normal forms tokenizers take.

#include <cstddef>
#include <cstdint>
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

}  // namespace couplet::text
