#pragma once
// Text from a file, made safe for an error message: a bad file never sends its raw bytes to a terminal or a
// log.

#include <cstddef>
#include <string>
#include <string_view>

namespace couplet::formats {

// Whether `text` is valid UTF-8 without control characters.
bool is_printable(std::string_view text);

// `text` in double quotes, about `most_bytes` of it; control characters, quotes, backslashes and bytes that
// aren't UTF-8 appear as \xNN, a cut as "...".
std::string in_quotes(std::string_view text, std::size_t most_bytes = 80);

}  // namespace couplet::formats
