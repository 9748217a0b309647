#include "cache/page_pool.h"

#include <limits>
#include <string>

#include "base/check.h"
#include "couplet/error.h"

namespace couplet::cache {
namespace {

// Bounds that every product below stays in 64 bits under; far above any model's.
constexpr int kMaxLayers = 1 << 16;
constexpr int kMaxHeads = 1 << 16;
constexpr int kMaxHeadDim = 1 << 16;

void check_field(const char* what, int value, int greatest) {
  if (value >= 1 && value <= greatest) return;
  throw Error(ErrorKind::usage, std::string("[cache] ") + what + ": expected 1 to " + std::to_string(greatest) +
                                    ", got " + std::to_string(value));
}

const CacheShape& checked(const CacheShape& shape, int num_pages) {
  check_field("layers", shape.num_layers, kMaxLayers);
  check_field("key/value heads", shape.num_kv_heads, kMaxHeads);
  check_field("head_dim", shape.head_dim, kMaxHeadDim);
  check_field("pages", num_pages, std::numeric_limits<PageId>::max());
  std::size_t bytes = 0;
  const std::size_t reserved = static_cast<std::size_t>(num_pages) + kernels::kSpanPages;  // the last group is whole
  if (__builtin_mul_overflow(shape.page_bytes(), reserved, &bytes))
    throw Error(ErrorKind::resource, "[cache] pages: expected at most 2^64 bytes in all, got " +
                                         std::to_string(num_pages) + " pages of " +
                                         std::to_string(shape.page_bytes()) + " bytes");
  return shape;
}

}  // namespace

std::size_t CacheShape::head_bytes() const { return kernels::page_bytes(format, head_dim); }

std::size_t CacheShape::page_bytes() const {
  return head_bytes() * static_cast<std::size_t>(num_layers) * static_cast<std::size_t>(num_kv_heads);
}

PagePool::PagePool(const CacheShape& shape, int num_pages)
    : shape_(checked(shape, num_pages)),
      num_pages_(num_pages),
      head_bytes_(shape.head_bytes()),
      bytes_(shape.page_bytes() * whole_groups(num_pages), "pages of keys and values"),
      references_(static_cast<std::size_t>(num_pages), 0),
      cached_(static_cast<std::size_t>(num_pages), false) {
  free_.reserve(references_.size());
  for (PageId id = num_pages - 1; id >= 0; --id) free_.push_back(id);  // the lowest is taken first
}

std::size_t PagePool::whole_groups(int num_pages) {
  return (static_cast<std::size_t>(num_pages) + kGroupPages - 1) / kGroupPages * kGroupPages;
}

PageId PagePool::allocate() {
  if (free_.empty()) return -1;
  const PageId id = free_.back();
  free_.pop_back();
  references_[static_cast<std::size_t>(id)] = 1;
  return id;
}

void PagePool::retain(PageId id) {
  check_used(id);
  if (is_idle(id)) --idle_pages_;
  ++references_[static_cast<std::size_t>(id)];
}

void PagePool::release(PageId id) {
  check_used(id);
  if (--references_[static_cast<std::size_t>(id)] == 0) free_.push_back(id);
  if (is_idle(id)) ++idle_pages_;
}

void PagePool::set_cached(PageId id, bool cached) {
  check_used(id);
  if (is_idle(id)) --idle_pages_;
  cached_[static_cast<std::size_t>(id)] = cached;
  if (is_idle(id)) ++idle_pages_;
}

bool PagePool::is_idle(PageId id) const {
  const auto index = static_cast<std::size_t>(id);
  return cached_[index] && references_[index] == 1;
}

int PagePool::references(PageId id) const {
  COUPLET_CHECK(id >= 0 && id < num_pages_);
  return references_[static_cast<std::size_t>(id)];
}

void PagePool::check_used(PageId id) const { COUPLET_CHECK(references(id) > 0); }

}  // namespace couplet::cache
