#pragma once
// Bytes of a body <-> JSON. What comes in is hostile: size, nesting and the number of values are bounded, cost is linear, and no
// byte of what can't be read is repeated in an error.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace couplet::server {

using Json = nlohmann::ordered_json;  // a reply's keys in the order of the documentation

inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonValues = std::size_t{1} << 20;
inline constexpr std::size_t kMaxJsonKeys = 1024;  // of one object

// Throws ApiError that says where: no JSON, no UTF-8, half a surrogate pair, a key twice, or beyond the bounds above.
Json parse_json(std::string_view body);

// On one line, valid UTF-8; what some clients take for the end of a line (U+0085, U+2028, U+2029) is escaped.
std::string dump(const Json& json);

// A value in short, in ASCII, for a message.
std::string shown(const Json& value);

// The double with the fewest digits that reads as `value`; never a negative zero.
double shortest(float value);

}  // namespace couplet::server
