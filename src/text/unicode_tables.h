#pragma once
// The general category of every Unicode code point ("Lu", "Nd", ...), which is all that the pre-tokenizers'
// classes need: \p{L} and \p{N} are categories, \s is the Z categories and six control characters.

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

}  // namespace couplet::text
