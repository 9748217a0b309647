#include "text/lookup.h"

#include <algorithm>
#include <bit>

#include "couplet/error.h"

namespace couplet::text {
namespace {

// A table is at most half full. The most that five real vocabularies needed was 35 (Gemma 3's 262,144 tokens).
constexpr std::size_t kMaxProbes = 512;

std::size_t table_slots(std::size_t capacity) {
  return std::bit_ceil(std::max<std::size_t>(2 * capacity, 16));
}

[[noreturn]] void refuse_crowded() {
  throw Error(ErrorKind::format,
              "[tokenizer] vocabulary: expected pieces that spread over a hash table, got " +
                  std::to_string(kMaxProbes) + " that share a place");
}

}  // namespace

PieceMap::PieceMap(std::size_t capacity) : slots_(table_slots(capacity)), mask_(slots_.size() - 1) {}

void PieceMap::insert(const StringTable& table, TokenId id) {
  const std::string_view bytes = table[static_cast<std::size_t>(id)];
  const std::uint64_t hash = hash_bytes(bytes);
  const auto tag = static_cast<std::uint32_t>(hash >> 32U);
  std::size_t at = hash & mask_;
  for (std::size_t probes = 0; probes < kMaxProbes; ++probes, at = (at + 1) & mask_) {
    Slot& slot = slots_[at];
    if (slot.id < 0) {
      slot = {tag, id};
      longest_ = std::max(longest_, bytes.size());
      return;
    }
    if (slot.tag == tag && table[static_cast<std::size_t>(slot.id)] == bytes) return;
  }
  refuse_crowded();
}

PairMap::PairMap(std::size_t capacity) : slots_(table_slots(capacity)), mask_(slots_.size() - 1) {}

void PairMap::insert(TokenId left, TokenId right, Merge merge) {
  const std::uint64_t key = pair_key(left, right);
  std::size_t at = mix(key, 0) & mask_;
  for (std::size_t probes = 0; probes < kMaxProbes; ++probes, at = (at + 1) & mask_) {
    Slot& slot = slots_[at];
    if (slot.key == kEmpty) slot = {key, merge};
    if (slot.key == key) return;
  }
  refuse_crowded();
}

}  // namespace couplet::text
