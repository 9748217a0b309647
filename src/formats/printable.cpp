#include "formats/printable.h"

#include <cstddef>
#include <cstdint>

namespace couplet::formats {
namespace {

// Bytes of the printable character that starts at `text[0]`; 0 if there is none (a control character, bad
// UTF-8).
std::size_t printable_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  std::uint32_t code = lead & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kSmallest[] = {0x80, 0x800,
                                         0x10000};  // of two, three and four bytes: no longer form
  if (code < kSmallest[length - 2] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
  const bool control = code < 0xa0;
  // Line and paragraph separators would break the line; the marks that turn text around would disguise it.
  const bool layout = (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return control || layout ? 0 : length;
}

}  // namespace

bool is_printable(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = printable_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string in_quotes(std::string_view text, std::size_t most_bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string result = "\"";
  while (!text.empty() && result.size() <= most_bytes) {
    std::size_t length = printable_length(text);
    if (length == 0 || text[0] == '"' || text[0] == '\\') {
      const auto byte = static_cast<std::uint8_t>(text[0]);
      result += "\\x";
      result += kHex[byte >> 4];
      result += kHex[byte & 15];
      length = 1;
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  if (!text.empty()) result += "...";
  return result + "\"";
}

}  // namespace couplet::formats
