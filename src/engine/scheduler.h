#pragma once
// Who runs in a step: every decoding sequence first, one row each, then prompt rows up to the row budget. Ranks those who
// want to start or to go on with a prompt; finds the pages for them; when there are none, forgets cached prefixes, and then
// preempts the lowest in rank, which starts over later and, being exact, goes on as if nothing had happened.
//
// Rank: the lower priority first; then the client who has had least, so that clients of one priority get equal shares,
// however much each asks for. Within a client, requests start oldest first, and the prompt with least left goes on first: a
// short one doesn't wait for a long one. Every kTurns-th turn goes to the oldest of all, so that nothing waits for ever.

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "cache/page_pool.h"
#include "cache/prefix_tree.h"
#include "engine/row_budget.h"
#include "engine/sequence.h"
#include "engine/client_shares.h"

namespace couplet::engine {

struct SchedulerLimits {
  int chunk_rows = 0;        // prompt rows in a step
  int max_sequences = 0;     // running at once
  double itl_target_ms = 0;  // RowBudget's
  PromptCost cost = {};
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
  static constexpr int kTurns = 8;

  Scheduler(cache::PrefixTree& tree, const cache::PagePool& pool, SchedulerLimits limits);

  void add(std::unique_ptr<Sequence> sequence);
  // The waiting or running sequence of this id, or null.
  Sequence* find(RequestId id);
  // This step's rows, valid until the next call of anything here. Empty: nothing to run.
  std::span<const Planned> plan();
  // What the step of the last plan took, all in all.
  void note_step(double ms);
  // Takes a sequence out, wherever it is, and gives its pages back.
  std::unique_ptr<Sequence> remove(Sequence* sequence);

  int num_waiting() const { return static_cast<int>(waiting_.size()); }
  int num_unstarted() const { return num_unstarted_; }  // waiting, and never run
  int num_running() const { return static_cast<int>(running_.size()); }
  int num_preemptions() const { return num_preemptions_; }
  int row_budget() const { return row_budget_; }  // prompt rows that the last plan was allowed
  std::uint64_t queried_tokens() const { return queried_tokens_; }  // of prompts, looked up in the tree
  std::uint64_t hit_tokens() const { return hit_tokens_; }          //   and found there

 private:
  struct Allowance {     // for prompt rows of this step
    double units = 0;    // left, where sequences decode
    int rows_taken = 0;
  };

  void admit();
  std::size_t next_to_start();
  bool start(Sequence& sequence);
  // Of those that run, to have all their tokens computed and one more, beyond the pages they have.
  int pages_wanted() const;
  void run_in_order(std::unique_ptr<Sequence> sequence);
  bool find_pages(Sequence& sequence, int num_positions);
  void preempt_last();
  void plan_decode();
  void plan_prefill();
  Sequence* next_prompt(bool oldest) const;
  Sequence& leader_of(Sequence& sequence) const;
  void find_more_cached(Sequence& sequence);
  bool plan_prompt(Sequence& sequence, Allowance& allowance);
  int rows_with_pages(Sequence& sequence, int num_rows);
  void plan_rows(Sequence& sequence, int num_rows);

  cache::PrefixTree* tree_;
  const cache::PagePool* pool_;
  SchedulerLimits limits_;
  RowBudget budget_;
  ClientShares shares_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<std::unique_ptr<Sequence>> running_;  // the lower priority first, then the oldest
  std::vector<Planned> planned_;
  int num_decoding_ = 0;      // of the last plan
  double prompt_units_ = 0;   // of the last plan
  int row_budget_ = 0;
  int starts_ = 0, chunks_ = 0;  // turns that several wanted
  int num_unstarted_ = 0;
  int num_preemptions_ = 0;
  std::uint64_t queried_tokens_ = 0, hit_tokens_ = 0;
};

}  // namespace couplet::engine
