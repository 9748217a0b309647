#include "text/charsmap.h"

#include "couplet/error.h"

namespace couplet::text {
namespace {

std::uint32_t read_unit(std::string_view bytes, std::size_t at) {
  std::uint32_t unit = 0;
  for (std::size_t i = 4; i-- > 0;) unit = unit << 8U | static_cast<unsigned char>(bytes[at + i]);
  return unit;
}

// A node's unit: how far its children lie, the byte that led to it, whether a sequence ends at it; a child of byte 0 is
// then where its text begins.
std::size_t offset_of(std::uint32_t unit) { return std::size_t{unit >> 10U} << ((unit & 0x200U) >> 6U); }
bool has_text(std::uint32_t unit) { return (unit & 0x100U) != 0; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FFU; }
std::size_t text_of(std::uint32_t unit) { return unit & 0x7FFFFFFFU; }

}  // namespace

Charsmap::Charsmap(std::string_view bytes) {
  const std::size_t trie_bytes = bytes.size() < 4 ? 0 : read_unit(bytes, 0);
  if (trie_bytes == 0 || trie_bytes % 4 != 0 || trie_bytes > bytes.size() - 4) {
    throw Error(ErrorKind::format, "[tokenizer] precompiled_charsmap: expected a trie that fits in " +
                                       std::to_string(bytes.size()) + " bytes, got one of " + std::to_string(trie_bytes));
  }
  for (std::size_t at = 4; at < 4 + trie_bytes; at += 4) units_.push_back(read_unit(bytes, at));
  texts_ = bytes.substr(4 + trie_bytes);
}

std::optional<Charsmap::Entry> Charsmap::find(std::string_view text, bool longest) const {
  std::optional<Entry> found;
  std::size_t node = offset_of(units_[0]);
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label_of(units_[node]) != byte) break;
    const bool ends = has_text(units_[node]);
    node ^= offset_of(units_[node]);
    if (!ends || node >= units_.size() || text_of(units_[node]) > texts_.size()) continue;
    const std::string_view rest = std::string_view(texts_).substr(text_of(units_[node]));
    found = {at + 1, rest.substr(0, rest.find('\0'))};
    if (!longest) break;
  }
  return found;
}

std::optional<std::string> from_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  unsigned num_bits = 0;
  for (const char letter : text) {
    const std::size_t digit = kDigits.find(letter);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6U | static_cast<std::uint32_t>(digit);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes += static_cast<char>(bits >> num_bits & 0xFFU);
  }
  return bytes;
}

}  // namespace couplet::text
