#pragma once
// Where one sequence's positions lie: page n holds positions [16n, 16n + 16). Capacity is set at construction, so that
// growing allocates nothing. A page that others share is never written: only whole pages are shared.

#include <span>
#include <vector>

#include "cache/page_pool.h"

namespace couplet::cache {

class PageTable {
 public:
  PageTable(PagePool& pool, int max_positions);
  ~PageTable() { clear(); }
  PageTable(const PageTable&) = delete;
  PageTable& operator=(const PageTable&) = delete;

  // Goes on with a whole page of the prefix tree, whose reference it takes over. What was reserved or written behind the
  // whole pages is given back.
  void adopt(PageId page);
  // The same content in another page, whose reference it takes over.
  void replace(int index, PageId page);
  // Takes pages until `num_positions` fit, at most max_positions(). False: the pool is empty; what was taken stays,
  // so a second call after a page came free goes on.
  bool reserve(int num_positions);
  // Positions that the model has written into reserved pages.
  void append(int num_positions);
  // Forgets positions from `num_positions` on and gives their pages back, reserved ones too. Must not cut into a
  // page that others share.
  void truncate(int num_positions);
  void clear() { truncate(0); }

  int num_positions() const { return num_positions_; }
  int max_positions() const { return max_positions_; }
  int num_whole_pages() const { return num_positions_ / kernels::kPagePositions; }
  std::span<const PageId> pages() const { return pages_; }  // reserved ones included

 private:
  PagePool* pool_;
  int max_positions_;
  int num_positions_ = 0;
  std::vector<PageId> pages_;
};

}  // namespace couplet::cache
