#pragma once
// The flat tables a tokenizer looks things up in: strings by number, a piece's number by its bytes, a merge
// by its pair. All are filled at load and only read afterwards. Keys come from a file that may be hostile, so
// a table whose keys crowd together is refused instead of growing slow.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "couplet/tokenizer.h"

namespace couplet::text {

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a ^ 0x9E3779B97F4A7C15U) * (b ^ 0xD1B54A32D192ED03U);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

template <typename Word>
std::uint64_t load(const char* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

inline std::uint64_t hash_bytes(std::string_view bytes) {
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t hash = left;
  for (; left > 16; left -= 16, at += 16)
    hash = mix(hash ^ load<std::uint64_t>(at), load<std::uint64_t>(at + 8));
  if (left >= 8) return mix(hash ^ load<std::uint64_t>(at), load<std::uint64_t>(at + left - 8));
  if (left >= 4) return mix(hash ^ load<std::uint32_t>(at), load<std::uint32_t>(at + left - 4));
  if (left == 0) return mix(hash, 0);
  return mix(hash ^ load<std::uint8_t>(at),
             load<std::uint8_t>(at + left / 2) << 8U | load<std::uint8_t>(at + left - 1));
}

// Strings one after the other in one block of memory, below 4 GiB in all.
class StringTable {
 public:
  void add(std::string_view text) {
    text_ += text;
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
  }
  std::size_t size() const { return ends_.size() - 1; }
  std::string_view operator[](std::size_t i) const {
    return std::string_view(text_).substr(ends_[i], ends_[i + 1] - ends_[i]);
  }

 private:
  std::string text_;
  std::vector<std::uint32_t> ends_ = {0};
};

// bytes -> id, over strings that a StringTable holds.
class PieceMap {
 public:
  explicit PieceMap(std::size_t capacity);

  // Keeps the id that came first where two are spelled alike.
  void insert(const StringTable& table, TokenId id);

  // -1: none.
  TokenId find(const StringTable& table, std::string_view bytes) const {
    if (bytes.size() > longest_) return -1;
    const std::uint64_t hash = hash_bytes(bytes);
    for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.id < 0) return -1;
      if (slot.tag == static_cast<std::uint32_t>(hash >> 32U) &&
          table[static_cast<std::size_t>(slot.id)] == bytes)
        return slot.id;
    }
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    TokenId id = -1;
  };
  std::vector<Slot> slots_;
  std::size_t mask_;
  std::size_t longest_ = 0;  // bytes
};

// What joining two neighbours gives: the best (lowest) rank is joined first.
struct Merge {
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  std::uint32_t rank = kNone;
  TokenId id = -1;
};

// (left id, right id) -> merge.
class PairMap {
 public:
  explicit PairMap(std::size_t capacity);

  // Keeps the merge that came first where two have the same pair.
  void insert(TokenId left, TokenId right, Merge merge);

  Merge find(TokenId left, TokenId right) const {
    const std::uint64_t key = pair_key(left, right);
    for (std::size_t at = mix(key, 0) & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return slot.merge;
      if (slot.key == kEmpty) return {};
    }
  }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  static std::uint64_t pair_key(TokenId left, TokenId right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U |
           static_cast<std::uint32_t>(right);
  }
  struct Slot {
    std::uint64_t key = kEmpty;
    Merge merge;
  };
  std::vector<Slot> slots_;
  std::size_t mask_;
};

}  // namespace couplet::text
