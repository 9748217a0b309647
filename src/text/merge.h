#pragma once
// The loop that both kinds of BPE share: of all neighbours that may be joined, those with the lowest rank
// are, the leftmost first, until none is left. Short words by scanning, long ones by a queue: n log n,
// whatever the text.

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "couplet/tokenizer.h"
#include "text/lookup.h"

namespace couplet::text {

// A stretch of a word: one character or byte at first, what was joined later. Length 0: joined to the one
// before.
struct Symbol {
  std::uint32_t begin, length;  // bytes of the word
  TokenId id;                   // -1: not known
  std::uint32_t previous = 0, next = 0;
};

struct MergeCandidate {
  std::uint64_t order = 0;   // rank << 32 | index of the left symbol
  std::uint32_t length = 0;  // of both together: tells whether they are still as they were
  TokenId id = -1;

  bool exists() const { return id >= 0; }
  bool operator<(const MergeCandidate& other) const { return order < other.order; }
  bool operator>(const MergeCandidate& other) const { return order > other.order; }
};

// Candidates in order. What is there at the start is sorted once and read off; what merging adds goes on a
// heap, which is sorted in turn when nothing else is left. In a run of one letter both are in order as they
// come, so that a megabyte of it costs a few sweeps.
class MergeQueue {
 public:
  void clear() {
    sorted_.clear();
    heap_.clear();
    at_ = 0;
  }
  void add_first(const MergeCandidate& candidate) { heap_.push_back(candidate); }  // before the first take()
  void add(const MergeCandidate& candidate) {
    heap_.push_back(candidate);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  bool take(MergeCandidate& best) {
    if (at_ == sorted_.size()) {
      sorted_.swap(heap_);
      heap_.clear();
      at_ = 0;
      if (!std::is_sorted(sorted_.begin(), sorted_.end())) std::sort(sorted_.begin(), sorted_.end());
      if (sorted_.empty()) return false;
    }
    if (heap_.empty() || sorted_[at_] < heap_.front()) {
      best = sorted_[at_++];
      return true;
    }
    best = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    return true;
  }

 private:
  std::vector<MergeCandidate> sorted_, heap_;
  std::size_t at_ = 0;  // of sorted_
};

// What a call needs to remember, kept from word to word.
struct MergeScratch {
  std::vector<Symbol> symbols;  // in: the word's beginning; out: its tokens
  MergeQueue queue;
  std::size_t lookups = 0;  // work done, for tests of growth
};

// Scanning beats the queue up to about this many symbols.
inline constexpr std::size_t kMaxScanned = 32;

// `find(left, right)` tells what joining two symbols gives.
template <typename Find>
void merge_by_scanning(MergeScratch& scratch, const Find& find) {
  std::vector<Symbol>& symbols = scratch.symbols;
  std::array<Merge, kMaxScanned> merges;  // [i]: of symbol i with i + 1
  std::size_t num_pairs = symbols.empty() ? 0 : symbols.size() - 1;
  for (std::size_t i = 0; i < num_pairs; ++i) merges[i] = find(symbols[i], symbols[i + 1]);
  scratch.lookups += num_pairs;
  while (num_pairs > 0) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < num_pairs; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].rank == Merge::kNone) break;
    symbols[best].length += symbols[best + 1].length;
    symbols[best].id = merges[best].id;
    std::copy(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 2,
              symbols.begin() + static_cast<std::ptrdiff_t>(num_pairs) + 1,
              symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    std::copy(merges.begin() + best + 1, merges.begin() + num_pairs, merges.begin() + best);
    --num_pairs;
    if (best < num_pairs) merges[best] = find(symbols[best], symbols[best + 1]);
    if (best > 0) merges[best - 1] = find(symbols[best - 1], symbols[best]);
    scratch.lookups += 2;
  }
  if (!symbols.empty()) symbols.resize(num_pairs + 1);
}

template <typename Find>
void merge_by_queue(MergeScratch& scratch, const Find& find) {
  std::vector<Symbol>& symbols = scratch.symbols;
  const auto end = static_cast<std::uint32_t>(symbols.size());
  const auto candidate = [&](std::uint32_t left, std::uint32_t right) {
    const Merge merge = find(symbols[left], symbols[right]);
    ++scratch.lookups;
    return MergeCandidate{static_cast<std::uint64_t>(merge.rank) << 32U | left,
                          symbols[left].length + symbols[right].length, merge.id};
  };
  scratch.queue.clear();
  for (std::uint32_t i = 0; i < end; ++i) {
    symbols[i].previous = i - 1;
    symbols[i].next = i + 1;
    if (i + 1 == end) break;
    if (const MergeCandidate first = candidate(i, i + 1); first.exists()) scratch.queue.add_first(first);
  }
  for (MergeCandidate best; scratch.queue.take(best);) {
    const auto index = static_cast<std::uint32_t>(best.order);
    Symbol& left = symbols[index];
    if (left.length == 0 || left.next == end || left.length + symbols[left.next].length != best.length)
      continue;
    Symbol& right = symbols[left.next];
    left.length = best.length;
    left.id = best.id;
    left.next = right.next;
    right.length = 0;
    if (left.next != end) {
      symbols[left.next].previous = index;
      if (const MergeCandidate after = candidate(index, left.next); after.exists()) scratch.queue.add(after);
    }
    if (index == 0) continue;
    if (const MergeCandidate before = candidate(left.previous, index); before.exists())
      scratch.queue.add(before);
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.length == 0; });
}

template <typename Find>
void merge_symbols(MergeScratch& scratch, const Find& find) {
  if (scratch.symbols.size() <= kMaxScanned) {
    merge_by_scanning(scratch, find);
  } else {
    merge_by_queue(scratch, find);
  }
}

}  // namespace couplet::text
