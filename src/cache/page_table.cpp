#include "cache/page_table.h"

#include <utility>

#include "base/check.h"

namespace couplet::cache {

PageTable::PageTable(PagePool& pool, int max_positions) : pool_(&pool), max_positions_(max_positions) {
  COUPLET_CHECK(max_positions >= 0);
  pages_.reserve(static_cast<std::size_t>(pages_for(max_positions)));
}

void PageTable::adopt(PageId page) {
  truncate(num_whole_pages() * kernels::kPagePositions);
  COUPLET_CHECK(num_positions_ + kernels::kPagePositions <= max_positions_);
  pages_.push_back(page);
  num_positions_ += kernels::kPagePositions;
}

void PageTable::replace(int index, PageId page) {
  COUPLET_CHECK(index < num_whole_pages());
  pool_->release(std::exchange(pages_[static_cast<std::size_t>(index)], page));
}

bool PageTable::reserve(int num_positions) {
  COUPLET_CHECK(num_positions >= 0 && num_positions <= max_positions_);
  const auto wanted = static_cast<std::size_t>(pages_for(num_positions));
  while (pages_.size() < wanted) {
    const PageId id = pool_->allocate();
    if (id < 0) return false;
    pages_.push_back(id);
  }
  return true;
}

void PageTable::append(int num_positions) {
  COUPLET_CHECK(num_positions >= 0 && num_positions <= max_positions_ - num_positions_);
  num_positions_ += num_positions;
  COUPLET_CHECK(static_cast<std::size_t>(pages_for(num_positions_)) <= pages_.size());
}

void PageTable::truncate(int num_positions) {
  COUPLET_CHECK(num_positions >= 0 && num_positions <= num_positions_);
  const auto kept = static_cast<std::size_t>(pages_for(num_positions));
  while (pages_.size() > kept) {
    pool_->release(pages_.back());
    pages_.pop_back();
  }
  num_positions_ = num_positions;
  COUPLET_CHECK(num_positions % kernels::kPagePositions == 0 || pool_->references(pages_.back()) == 1);
}

}  // namespace couplet::cache
