#include "engine/scheduler.h"

#include <algorithm>

#include "base/check.h"
#include "engine/prefill.h"

namespace couplet::engine {

Scheduler::Scheduler(cache::PrefixTree& tree, const cache::PagePool& pool, SchedulerLimits limits)
    : tree_(&tree), pool_(&pool), limits_(limits) {
  running_.reserve(static_cast<std::size_t>(limits.max_sequences));
  planned_.reserve(static_cast<std::size_t>(limits.max_sequences));
}

Sequence* Scheduler::find(RequestId id) {
  const auto same = [id](const auto& sequence) { return sequence->id == id; };
  if (const auto it = std::find_if(running_.begin(), running_.end(), same); it != running_.end()) return it->get();
  if (const auto it = std::find_if(waiting_.begin(), waiting_.end(), same); it != waiting_.end()) return it->get();
  return nullptr;
}

std::unique_ptr<Sequence> Scheduler::remove(Sequence* sequence) {
  std::unique_ptr<Sequence> taken;
  const auto is = [sequence](const auto& other) { return other.get() == sequence; };
  if (const auto it = std::find_if(running_.begin(), running_.end(), is); it != running_.end()) {
    taken = std::move(*it);
    running_.erase(it);
  } else if (const auto at = std::find_if(waiting_.begin(), waiting_.end(), is); at != waiting_.end()) {
    taken = std::move(*at);
    waiting_.erase(at);
  }
  COUPLET_CHECK(taken != nullptr);
  taken->pages.clear();
  return taken;
}

std::span<const Planned> Scheduler::plan() {
  planned_.clear();
  admit();
  plan_decode();
  plan_prefill();
  return planned_;
}

void Scheduler::admit() {
  while (!waiting_.empty() && num_running() < limits_.max_sequences) {
    // A sequence that can't get all its pages soon would be preempted at once; alone it always fits.
    const int needed = cache::pages_for(waiting_.front()->num_tokens() + 1);
    if (!running_.empty() && needed + pages_in_use() > pool_->num_pages()) return;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    begin_prefill(*running_.back(), *tree_);
  }
}

int Scheduler::pages_in_use() const {
  int pages = 0;
  for (const auto& sequence : running_) pages += cache::pages_for(sequence->num_tokens() + 1);
  return pages;
}

bool Scheduler::find_pages(Sequence& sequence, int num_positions) {
  while (!sequence.pages.reserve(num_positions))
    if (!tree_->evict_one()) return false;
  return true;
}

void Scheduler::preempt_youngest() {
  std::unique_ptr<Sequence> youngest = std::move(running_.back());
  running_.pop_back();
  youngest->pages.clear();
  youngest->num_computed = 0;
  waiting_.push_front(std::move(youngest));
  ++num_preemptions_;
}

void Scheduler::plan_decode() {
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.stage() != Stage::decode) continue;
    // The youngest has not been planned yet, unless it is this one.
    while (i < running_.size() && !find_pages(sequence, sequence.num_tokens())) preempt_youngest();
    if (i < running_.size()) plan_rows(sequence, 1);
  }
}

void Scheduler::plan_prefill() {
  int budget = limits_.chunk_rows;
  for (std::size_t i = 0; i < running_.size() && budget > 0; ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.stage() != Stage::prefill) continue;
    int rows = chunk_rows(sequence, budget);
    // A prompt waits for the pages of those that decode. Only when nobody runs at all must somebody give way.
    while (!find_pages(sequence, sequence.num_computed + rows)) {
      const int room = static_cast<int>(sequence.pages.pages().size()) * kernels::kPagePositions - sequence.num_computed;
      if (room > 0 || !planned_.empty()) {
        rows = room;
        break;
      }
      COUPLET_CHECK(i + 1 < running_.size());  // alone it fits: the pool holds a whole context
      preempt_youngest();
    }
    if (rows <= 0) continue;
    plan_rows(sequence, rows);
    budget -= rows;
  }
}

void Scheduler::plan_rows(Sequence& sequence, int num_rows) {
  planned_.push_back({&sequence, sequence.stage(), num_rows, num_rows == sequence.num_pending()});
}

}  // namespace couplet::engine
