#pragma once
// Who runs in a step: every decoding sequence first, one row each, then prompt chunks up to the row budget, oldest
// first. Finds the pages for them; when there are none, forgets cached prefixes, and then preempts the youngest, which
// starts over later and, being exact, goes on as if nothing had happened.

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "cache/page_pool.h"
#include "cache/prefix_tree.h"
#include "engine/sequence.h"

namespace couplet::engine {

struct SchedulerLimits {
  int chunk_rows = 0;     // prompt rows in a step
  int max_sequences = 0;  // running at once
};

// A sequence's part in the step that is planned.
struct Planned {
  Sequence* sequence = nullptr;
  Stage stage = Stage::prefill;
  int num_rows = 0;
  bool reaches_end = false;  // all its tokens are then computed: the next one can be chosen
};

class Scheduler {
 public:
  Scheduler(cache::PrefixTree& tree, const cache::PagePool& pool, SchedulerLimits limits);

  void add(std::unique_ptr<Sequence> sequence) { waiting_.push_back(std::move(sequence)); }
  // The waiting or running sequence of this id, or null.
  Sequence* find(RequestId id);
  // This step's rows, valid until the next call of anything here. Empty: nothing to run.
  std::span<const Planned> plan();
  // Takes a sequence out, wherever it is, and gives its pages back.
  std::unique_ptr<Sequence> remove(Sequence* sequence);

  int num_waiting() const { return static_cast<int>(waiting_.size()); }
  int num_running() const { return static_cast<int>(running_.size()); }
  int num_preemptions() const { return num_preemptions_; }

 private:
  void admit();
  // Of all that runs, once their tokens are computed; pages that they share count for each.
  int pages_in_use() const;
  bool find_pages(Sequence& sequence, int num_positions);
  void preempt_youngest();
  void plan_decode();
  void plan_prefill();
  void plan_rows(Sequence& sequence, int num_rows);

  cache::PrefixTree* tree_;
  const cache::PagePool* pool_;
  SchedulerLimits limits_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<std::unique_ptr<Sequence>> running_;  // oldest first
  std::vector<Planned> planned_;
  int num_preemptions_ = 0;
};

}  // namespace couplet::engine
