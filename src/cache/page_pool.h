#pragma once
// The memory of keys and values, cut into pages of 16 positions that sequences and the prefix tree share by reference
// count. Address space is reserved once and touched only where a page is used; nothing is allocated afterwards.
// A page comes back with its old content: kernels read visible positions alone (docs/numerics.md, rule 6).

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/memory.h"
#include "kernels/kernels.h"

namespace couplet::cache {

using kernels::PageFormat;  // part of a page's identity, as two formats hold different bits

struct CacheShape {
  int num_layers = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  PageFormat format = PageFormat::f16;

  std::size_t head_bytes() const;  // of one layer and head (kernels/page_layout.h)
  std::size_t page_bytes() const;  // over all layers and heads
};

using PageId = std::int32_t;  // -1: none

// Engine thread only, but for page(), which is const and may be called by any worker while the engine thread waits.
class PagePool {
 public:
  // Throws Error{usage} for an impossible shape, Error{resource} where the address space can't be had.
  PagePool(const CacheShape& shape, int num_pages);
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // A page with one reference, or -1 when all are in use.
  PageId allocate();
  void retain(PageId id);
  void release(PageId id);  // the last reference gives the page back
  int references(PageId id) const;
  // The prefix tree says which pages are its own, so that those of nobody else can be counted: it gives them up.
  void set_cached(PageId id, bool cached);

  // 64-byte aligned; layout [group][layer][page of the group][kv_head][head_bytes]: a span's pages, which are mostly
  // neighbours, lie together for each layer, and a short sequence touches all layers' in a few large pages of memory.
  std::byte* page(int layer, PageId id, int kv_head) const {
    const int group = id / kGroupPages, in_group = id % kGroupPages;
    const auto page_index = (static_cast<std::size_t>(group) * static_cast<std::size_t>(shape_.num_layers) +
                             static_cast<std::size_t>(layer)) * kGroupPages + static_cast<std::size_t>(in_group);
    return bytes_.data() + (page_index * static_cast<std::size_t>(shape_.num_kv_heads) +
                      static_cast<std::size_t>(kv_head)) * head_bytes_;
  }

  const CacheShape& shape() const { return shape_; }
  int num_pages() const { return num_pages_; }
  int free_pages() const { return static_cast<int>(free_.size()); }
  int used_pages() const { return num_pages_ - free_pages(); }
  int idle_pages() const { return idle_pages_; }  // used, but by the prefix tree alone

 private:
  static constexpr int kGroupPages = kernels::kSpanPages;

  static std::size_t whole_groups(int num_pages);  // in pages
  void check_used(PageId id) const;
  bool is_idle(PageId id) const;

  CacheShape shape_;
  int num_pages_;
  std::size_t head_bytes_;
  Array<std::byte> bytes_;
  std::vector<int> references_;  // [num_pages]
  std::vector<bool> cached_;     // [num_pages]: the prefix tree's
  int idle_pages_ = 0;
  std::vector<PageId> free_;     // a stack: the page given back last is the warmest
};

constexpr int pages_for(int num_positions) {
  return num_positions / kernels::kPagePositions + (num_positions % kernels::kPagePositions != 0 ? 1 : 0);
}

}  // namespace couplet::cache
