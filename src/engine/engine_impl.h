#pragma once
// The engine's inside. Everything hangs on step(): plan, forward, choose, commit.

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/thread_pool.h"
#include "cache/page_pool.h"
#include "cache/prefix_tree.h"
#include "couplet/engine.h"
#include "engine/distribution.h"
#include "engine/ledger.h"
#include "engine/open_checkpoint.h"
#include "engine/scheduler.h"
#include "model/forward.h"

namespace couplet::engine {

class EngineImpl : public Engine {
 public:
  EngineImpl(std::shared_ptr<const OpenCheckpoint> checkpoint, const EngineOptions& options);

  SubmitResult submit(Request request) override;
  void cancel(RequestId id) override;
  bool has_work() const override { return num_unfinished_.load() > 0; }
  std::span<const Event> step() override;
  const StepRecord& last_step() const override { return ledger_.record(); }
  const EngineInfo& info() const override { return info_; }
  const Checkpoint& checkpoint() const override { return *checkpoint_; }

  // For tests: what must be back when nothing runs.
  const cache::PagePool& pages() const { return *pool_; }
  const cache::PrefixTree& prefixes() const { return *tree_; }
  int num_preemptions() const { return scheduler_->num_preemptions(); }

 private:
  SubmitResult refuse(const Request& request) const;  // kind none: it can be run
  bool queue_is_full() const;  // inbox_mutex_ is held
  void accept();
  static int num_logit_rows(const Planned& planned);
  void run(std::span<const Planned> plan);
  const model::Rows& head(int first, int num);
  void choose(std::span<const Planned> plan);
  void choose_token(Sequence& sequence, const float* logits);
  void offer_choice(Sequence& sequence);
  void observe(Sequence& sequence, int position, const float* logits);
  void commit(std::span<const Planned> plan);
  void advance(const Planned& planned);
  void finish(Sequence& sequence);
  void report(const Sequence& sequence);

  std::shared_ptr<const OpenCheckpoint> checkpoint_;
  model::ModelConfig config_;  // context_length is this engine's, not the checkpoint's
  EngineInfo info_;
  const kernels::KernelTable* kernels_;
  std::unique_ptr<ThreadPool> threads_;
  std::unique_ptr<model::Weights> weights_;
  std::unique_ptr<cache::PagePool> pool_;
  std::unique_ptr<cache::PrefixTree> tree_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<model::Forward> forward_;
  std::unique_ptr<Distribution> distribution_;
  Ledger ledger_;

  std::vector<TokenId> batch_tokens_;
  std::vector<model::SequenceRows> batch_sequences_;
  std::vector<Event> events_;
  std::vector<std::unique_ptr<Sequence>> finished_;  // of the last step: its events look at them

  const int max_queue_;
  std::mutex inbox_mutex_;  // guards the two below
  std::vector<std::unique_ptr<Sequence>> submitted_;
  std::vector<RequestId> cancelled_;
  std::atomic<RequestId> last_id_{0};
  std::atomic<bool> inbox_filled_{false};
  std::atomic<int> num_unfinished_{0};
  std::atomic<int> num_unstarted_{0};  // the scheduler's, as of its last plan
};

}  // namespace couplet::engine
