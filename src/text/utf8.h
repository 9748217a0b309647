#pragma once
// One UTF-8 character at a time. What is no character is cut as Unicode and the WHATWG advise (maximal
// subparts), so that every decoder of the same bytes puts its U+FFFD at the same places.

#include <cstdint>
#include <string_view>

namespace couplet::text {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct Utf8Char {
  enum Kind : std::uint8_t {
    whole,       // a character
    impossible,  // `length` bytes that no continuation can make one
    cut,         // the bytes end inside what may become one
  };
  char32_t code_point;  // U+FFFD unless whole
  std::uint32_t length;
  Kind kind;
};

inline bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// The character at `at`, which is before `end`.
inline Utf8Char read_utf8(const char* at, const char* end) {
  const std::uint32_t lead = static_cast<unsigned char>(*at);
  if (lead < 0x80) return {lead, 1, Utf8Char::whole};
  const std::uint32_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0) return {0xFFFD, 1, Utf8Char::impossible};
  // The second byte's range shuts out overlong forms, surrogates and what is beyond U+10FFFF.
  std::uint32_t low = lead == 0xE0 ? 0xA0U : lead == 0xF0 ? 0x90U : 0x80U;
  std::uint32_t high = lead == 0xED ? 0x9FU : lead == 0xF4 ? 0x8FU : 0xBFU;
  std::uint32_t code_point = lead & (0x7FU >> length);
  for (std::uint32_t i = 1; i < length; ++i) {
    if (at + i == end) return {0xFFFD, i, Utf8Char::cut};
    const std::uint32_t byte = static_cast<unsigned char>(at[i]);
    if (byte < low || byte > high) return {0xFFFD, i, Utf8Char::impossible};
    code_point = code_point << 6U | (byte & 0x3FU);
    low = 0x80;
    high = 0xBF;
  }
  return {code_point, length, Utf8Char::whole};
}

// For tokenizing, where no byte may get lost: a byte that is part of no character counts as one of its own.
inline Utf8Char read_char(const char* at, const char* end) {
  const Utf8Char read = read_utf8(at, end);
  return read.kind == Utf8Char::whole ? read : Utf8Char{0xFFFD, 1, read.kind};
}

}  // namespace couplet::text
