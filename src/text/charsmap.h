#pragma once
// SentencePiece's precompiled normalization, as tokenizer.json and GGUF files carry it: a trie of character sequences
// (a double array, one 32-bit unit a node) and what each becomes. The bytes come from a file that may be hostile: a walk
// ends where a unit or a text would lie outside.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace couplet::text {

class Charsmap {
 public:
  // Throws Error{format} where the sizes that the bytes give don't fit in them.
  explicit Charsmap(std::string_view bytes);

  struct Entry {
    std::size_t length = 0;  // of the sequence
    std::string_view text;   // what it becomes
  };
  // The shortest, or the longest, sequence that `text` begins with.
  std::optional<Entry> shortest(std::string_view text) const { return find(text, false); }
  std::optional<Entry> longest(std::string_view text) const { return find(text, true); }

 private:
  std::optional<Entry> find(std::string_view text, bool longest) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;  // each ends with a zero byte
};

// Nothing for what is no base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace couplet::text
