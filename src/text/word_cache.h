#pragma once
// The words that a call of tokenize() has seen, so that a text's frequent words are merged once. Belongs to
// one call: small, forgetful (a word may take another's place) and never shared.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "couplet/tokenizer.h"
#include "text/lookup.h"

namespace couplet::text {

class WordCache {
 public:
  explicit WordCache(std::size_t text_bytes)
      : entries_(std::bit_ceil(std::clamp<std::size_t>(text_bytes / 16, 16, kMaxEntries))) {}

  // Appends the ids of `word` to `ids`: those it had earlier in `ids`, else what `make` appends.
  template <typename Make>
  void append(std::string_view word, std::vector<TokenId>& ids, const Make& make) {
    if (word.size() > kMaxWordBytes) return make();
    const Key key(word);
    Entry& entry = entries_[key.hash() & (entries_.size() - 1)];
    if (entry.key == key) {
      if (entry.count == 1) return ids.push_back(ids[entry.first]);
      const std::size_t end = ids.size();
      ids.resize(end + entry.count);
      std::copy_n(ids.begin() + entry.first, entry.count, ids.begin() + static_cast<std::ptrdiff_t>(end));
      return;
    }
    const std::size_t first = ids.size();
    make();
    if (first <= UINT32_MAX) {
      entry = {key, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(ids.size() - first)};
    }
  }

 private:
  static constexpr std::size_t kMaxEntries = 8192;  // 256 KiB: the second-level cache
  static constexpr std::size_t kMaxWordBytes = 23;

  // The word's bytes and, last, their number: no word is the key of zeros.
  struct Key {
    std::uint64_t words[3] = {};
    Key() = default;
    explicit Key(std::string_view word) {
      char bytes[24] = {};
      std::memcpy(bytes, word.data(), word.size());
      bytes[kMaxWordBytes] = static_cast<char>(word.size());
      std::memcpy(words, bytes, sizeof words);
    }
    std::uint64_t hash() const { return mix(mix(words[0], words[1]), words[2]); }
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    std::uint32_t first = 0, count = 0;  // in the ids
  };
  std::vector<Entry> entries_;
};

}  // namespace couplet::text
