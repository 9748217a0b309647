#include "couplet/engine.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/cpu_features.h"
#include "base/float_environment.h"
#include "engine/decode.h"
#include "engine/engine_impl.h"
#include "engine/prefill.h"
#include "engine/request_check.h"
#include "engine/sampler.h"
#include "kernels/numerics.h"

namespace couplet {
namespace engine {
namespace {

constexpr int kMostThreads = 1024;
constexpr int kMostRows = 1 << 16;
constexpr int kMostQueue = 1 << 20;
constexpr int kMostTargetMs = 3'600'000;
// The pool's default room, in full contexts: a few conversations with their prefixes.
constexpr std::uint64_t kContextsOfCache = 4;
// An operation of attention takes as long as so many of a product with weights.
constexpr double kAttentionCost = 2;
// Each page costs about 150 bytes of bookkeeping, whatever its size.
constexpr std::uint64_t kMostPages = 1 << 22;

void check_range(const char* option, int value, int least, int most) {
  if (value < least || value > most)
    throw Error(ErrorKind::usage, std::string("[engine] ") + option + ": expected " + std::to_string(least) + " to " +
                                      std::to_string(most) + ", got " + std::to_string(value));
}

// Sets context and cache size: the options', or what the model wants and the machine's free memory allows.
void size_cache(const EngineOptions& options, int model_context, std::uint64_t weights_bytes, std::uint64_t page_bytes,
                EngineInfo& info) {
  if (options.context != 0) check_range("context", options.context, 1, model_context);
  info.context = options.context != 0 ? options.context : model_context;
  const auto bytes_of = [&](int positions) { return static_cast<std::uint64_t>(cache::pages_for(positions)) * page_bytes; };
  if (options.cache_bytes != 0) {
    if (options.cache_bytes < bytes_of(info.context))
      throw Error(ErrorKind::resource, "[engine] cache: expected at least " + std::to_string(bytes_of(info.context)) +
                                           " bytes for a context of " + std::to_string(info.context) + ", got " +
                                           std::to_string(options.cache_bytes));
    info.cache_bytes = options.cache_bytes;
    return;
  }
  const std::uint64_t free_bytes = available_memory_bytes();
  const std::uint64_t affordable = free_bytes > weights_bytes ? (free_bytes - weights_bytes) / 2 : 0;
  if (bytes_of(info.context) > affordable) {
    if (options.context != 0)
      throw Error(ErrorKind::resource, "[engine] context " + std::to_string(info.context) + ": expected " +
                                           std::to_string(bytes_of(info.context)) + " bytes of cache, half of the memory beside the weights is " +
                                           std::to_string(affordable));
    const auto pages = affordable / page_bytes;
    info.context = static_cast<int>(pages) * kernels::kPagePositions;
    info.context_lowered = true;
    if (info.context < 1)
      throw Error(ErrorKind::resource, "[engine] cache: expected at least " + std::to_string(page_bytes) +
                                           " bytes for one page, half of the memory beside the weights is " + std::to_string(affordable));
  }
  info.cache_bytes = std::min(kContextsOfCache * bytes_of(info.context), std::max(affordable, bytes_of(info.context)));
}

// How a prompt row's cost grows with its position: an estimate from the shapes, which measured times then scale.
PromptCost prompt_cost(const model::ModelConfig& config) {
  const double inner = config.num_experts == 0 ? config.intermediate_size
                                               : config.num_used_experts * config.expert_size + config.shared_expert_size;
  const double products = config.hidden_size * (2.0 * config.q_size() + 2.0 * config.kv_size() + 3 * inner);
  const double attention = 2.0 * config.q_size() * kAttentionCost;
  PromptCost cost{products / attention, {}};
  for (const model::LayerConfig& layer : config.layers) {
    const auto same = [&](const PromptCost::Layers& l) { return l.window == layer.window; };
    const auto known = std::find_if(cost.layers.begin(), cost.layers.end(), same);
    const double share = 1.0 / config.num_layers;
    if (known != cost.layers.end())
      known->share += share;
    else
      cost.layers.push_back({share, layer.window});
  }
  return cost;
}

}  // namespace

EngineImpl::EngineImpl(std::shared_ptr<const OpenCheckpoint> checkpoint, const EngineOptions& options)
    : checkpoint_(std::move(checkpoint)), config_(checkpoint_->config()), max_queue_(options.max_queue) {
  const auto began = std::chrono::steady_clock::now();
  const StandardFloats floats;
  check_range("threads", options.num_threads, 0, kMostThreads);
  check_range("chunk_rows", options.chunk_rows, 1, kMostRows);
  check_range("max_sequences", options.max_sequences, 1, kMostRows);
  check_range("max_queue", options.max_queue, 0, kMostQueue);
  if (!(options.itl_target_ms >= 0 && options.itl_target_ms <= kMostTargetMs))
    throw Error(ErrorKind::usage, "[engine] itl_target_ms: expected 0 to " + std::to_string(kMostTargetMs) + ", got " +
                                      std::to_string(options.itl_target_ms));
  kernels_ = &kernels::select_kernels(options.kernels);

  const cache::CacheShape shape = model::cache_shape(config_, page_format(options.cache_format, options.precision));
  size_cache(options, config_.context_length, checkpoint_->summary().weights_bytes, shape.page_bytes(), info_);
  config_.context_length = info_.context;
  info_.kernels = kernels_->name;
  info_.num_threads = options.num_threads != 0 ? std::min(options.num_threads, usable_cpus()) : usable_cpus();
  info_.precision = options.precision;
  info_.cache_format = options.cache_format;
  info_.numerics_version = kernels::kNumericsVersion;

  threads_ = std::make_unique<ThreadPool>(info_.num_threads);
  weights_ = model::load_weights(checkpoint_->file(), config_, *threads_, *kernels_, {.folder = options.packed_folder});
  info_.weights_bytes = weights_->packed_bytes;
  info_.packed_copy = weights_->copy;
  const std::uint64_t num_pages = std::min<std::uint64_t>(info_.cache_bytes / shape.page_bytes(), kMostPages);
  pool_ = std::make_unique<cache::PagePool>(shape, static_cast<int>(num_pages));
  tree_ = std::make_unique<cache::PrefixTree>(*pool_);
  const int chunk = std::min(options.chunk_rows, info_.context);
  scheduler_ = std::make_unique<Scheduler>(
      *tree_, *pool_, SchedulerLimits{chunk, options.max_sequences, options.itl_target_ms, prompt_cost(config_)});
  const int max_rows = chunk + options.max_sequences;
  const int planes = options.precision == Precision::fine ? 2 : 1;
  forward_ = std::make_unique<model::Forward>(config_, *weights_, *kernels_, *threads_, *pool_,
                                              model::ForwardOptions{max_rows, options.max_sequences, planes});
  distribution_ = std::make_unique<Distribution>(*kernels_, config_.vocab_size);
  batch_tokens_.reserve(static_cast<std::size_t>(max_rows));
  batch_sequences_.reserve(static_cast<std::size_t>(options.max_sequences));
  events_.reserve(static_cast<std::size_t>(options.max_sequences));
  info_.load_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
}

std::span<const Event> EngineImpl::step() {
  const StandardFloats floats;
  ledger_.begin_step();
  events_.clear();
  finished_.clear();
  accept();
  const std::span<const Planned> plan = scheduler_->plan();
  num_unstarted_ = scheduler_->num_unstarted();
  ledger_.note_plan(plan);
  if (!plan.empty()) {
    run(plan);
    choose(plan);
    ledger_.note_work(forward_->counters(), batch_sequences_);
    commit(plan);
  }
  ledger_.note_state(*scheduler_, *pool_, *tree_);
  ledger_.end_step();
  scheduler_->note_step(ledger_.record().step_ms);
  return events_;
}

SubmitResult EngineImpl::refuse(const Request& request) const {
  const auto invalid = [](std::string why) { return SubmitResult{0, std::move(why), Refusal::invalid}; };
  const int vocab_size = config_.vocab_size;
  const auto bad_id = [vocab_size](const char* list, const std::vector<TokenId>& ids) -> std::string {
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] < 0 || ids[i] >= vocab_size)
        return std::string(list) + "[" + std::to_string(i) + "]: expected a token id from 0 to " +
               std::to_string(vocab_size - 1) + ", got " + std::to_string(ids[i]);
    return "";
  };
  if (request.prompt.empty()) return invalid("prompt: expected at least one token, got none");
  if (std::string bad = bad_id("prompt", request.prompt); !bad.empty()) return invalid(std::move(bad));
  if (std::string bad = bad_id("forced", request.forced); !bad.empty()) return invalid(std::move(bad));
  const std::size_t length = request.prompt.size() + request.forced.size();
  if (length > static_cast<std::size_t>(info_.context))
    return {0, "prompt: expected at most " + std::to_string(info_.context) + " tokens, the context, got " +
                   std::to_string(length), Refusal::too_long};
  if (request.num_alternatives < 0 || request.num_alternatives > kMaxAlternatives)
    return invalid("num_alternatives: expected 0 to " + std::to_string(kMaxAlternatives) + ", got " +
                   std::to_string(request.num_alternatives));
  if (std::string bad = check(request.sampling, request.stop, vocab_size); !bad.empty()) return invalid(std::move(bad));
  return {};
}

bool EngineImpl::queue_is_full() const {
  return max_queue_ > 0 && num_unstarted_.load() + static_cast<int>(submitted_.size()) >= max_queue_;
}

SubmitResult EngineImpl::submit(Request request) {
  if (SubmitResult refused = refuse(request); refused.kind != Refusal::none) return refused;
  const RequestId id = ++last_id_;
  // Made before the lock is taken: step() waits for the lock too.
  auto sequence = std::make_unique<Sequence>(id, std::move(request), checkpoint_->tokenizer(), *pool_, info_.context);
  const std::lock_guard lock(inbox_mutex_);
  if (queue_is_full())
    return {0, "queue: expected fewer than " + std::to_string(max_queue_) + " requests waiting, got " +
                   std::to_string(max_queue_), Refusal::queue_full};
  submitted_.push_back(std::move(sequence));
  num_unfinished_ += 1;
  inbox_filled_ = true;
  return {id, "", Refusal::none};
}

void EngineImpl::cancel(RequestId id) {
  const std::lock_guard lock(inbox_mutex_);
  cancelled_.push_back(id);
  inbox_filled_ = true;
}

void EngineImpl::accept() {
  if (!inbox_filled_.load()) return;
  const std::lock_guard lock(inbox_mutex_);
  for (std::unique_ptr<Sequence>& sequence : submitted_) scheduler_->add(std::move(sequence));
  submitted_.clear();
  for (const RequestId id : cancelled_) {
    Sequence* sequence = scheduler_->find(id);
    if (sequence == nullptr) continue;  // it ended by itself, or never was
    sequence->shown.clear();
    sequence->choice.id = -1;
    end_reply(*sequence, StopReason::cancelled);
    report(*sequence);
    finish(*sequence);
  }
  cancelled_.clear();
  inbox_filled_ = false;
  num_unstarted_ = scheduler_->num_unstarted();
}

int EngineImpl::num_logit_rows(const Planned& planned) {
  const Sequence& s = *planned.sequence;
  const int last = planned.reaches_end ? 1 : 0;
  if (!s.observed()) return last;
  // After a preemption, positions whose logits were seen run again, but their logits are not made again.
  const int end = s.num_computed + planned.num_rows;
  return std::max(last, std::min(planned.num_rows, end - s.num_observed));
}

void EngineImpl::run(std::span<const Planned> plan) {
  batch_tokens_.clear();
  batch_sequences_.clear();
  for (const Planned& planned : plan) {
    const Sequence& s = *planned.sequence;
    batch_sequences_.push_back({static_cast<int>(batch_tokens_.size()), planned.num_rows, s.num_computed, &s.pages,
                                num_logit_rows(planned)});
    const auto first = s.tokens.begin() + s.num_computed;
    batch_tokens_.insert(batch_tokens_.end(), first, first + planned.num_rows);
  }
  const Ledger::Timing timing = ledger_.time_forward();
  forward_->run({batch_tokens_, batch_sequences_});
  ledger_.note_layers(forward_->counters(), forward_->sequence_counters());
}

const model::Rows& EngineImpl::head(int first, int num) {
  const Ledger::Timing timing = ledger_.time_forward();
  return forward_->head(first, num);
}

void EngineImpl::choose(std::span<const Planned> plan) {
  // Logit rows come in groups, since the logits of a long observed prompt would not fit in memory together.
  const model::Rows* logits = nullptr;
  int row = 0, group_begin = 0, group_end = 0;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    Sequence& sequence = *plan[i].sequence;
    sequence.shown.clear();
    sequence.choice.id = -1;
    const int num = batch_sequences_[i].num_logit_rows;
    for (int r = 0; r < num; ++r, ++row) {
      if (row == group_end) {
        group_begin = group_end;
        group_end += std::min(model::Forward::kHeadRows, forward_->num_logit_rows() - group_begin);
        logits = &head(group_begin, group_end - group_begin);
      }
      // A row that is not finite ends its sequence: nothing behind it is shown or chosen.
      if (sequence.stop != StopReason::none || forward_->fault(static_cast<int>(i)) != model::RowFault::none) continue;
      const float* const values = logits->row(row - group_begin);
      bool finite = true;
      if (sequence.observed()) kernels_->argmax(values, config_.vocab_size, &finite);
      if (!finite) sequence.stop = StopReason::numeric_error;
      else observe(sequence, sequence.num_computed + plan[i].num_rows - num + r, values);
      if (finite && r == num - 1 && plan[i].reaches_end) choose_token(sequence, values);
    }
  }
}

void EngineImpl::observe(Sequence& sequence, int position, const float* logits) {
  if (!sequence.observed() || position < sequence.num_observed) return;
  sequence.request.on_logits(position, {logits, static_cast<std::size_t>(config_.vocab_size)});
  sequence.num_observed = position + 1;
}

void EngineImpl::choose_token(Sequence& sequence, const float* logits) {
  if (sequence.stop_when_computed != StopReason::none || sequence.num_tokens() >= sequence.max_tokens) return;
  const Request& request = sequence.request;
  Selection selection;
  selection.options = &request.sampling;
  selection.history = sequence.history();
  selection.forced = sequence.next_forced();
  selection.measure = request.log_probabilities;
  selection.num_alternatives = request.num_alternatives;
  const std::span<const float> row(logits, static_cast<std::size_t>(config_.vocab_size));
  if (!select_token(*distribution_, row, selection, sequence.choice))
    sequence.stop = StopReason::numeric_error;
  else if (request.on_choice)
    offer_choice(sequence);
}

void EngineImpl::offer_choice(Sequence& sequence) {
  const Ledger::Timing timing = ledger_.time_others();
  const Request& request = sequence.request;
  TokenChoice& choice = sequence.choice;
  const TokenId id = request.on_choice(choice);
  if (id == choice.id || id < 0 || id >= config_.vocab_size) return;
  choice.forced = true;
  distribution_->describe(id, choice.measured, request.num_alternatives, choice);
}

void EngineImpl::commit(std::span<const Planned> plan) {
  for (std::size_t i = 0; i < plan.size(); ++i) {
    Sequence& sequence = *plan[i].sequence;
    const model::RowFault fault = forward_->fault(static_cast<int>(i));
    if (fault == model::RowFault::cache_range) sequence.stop = StopReason::cache_range;
    if (fault == model::RowFault::not_finite) sequence.stop = StopReason::numeric_error;
    if (sequence.stop == StopReason::none) {
      advance(plan[i]);
    } else {
      sequence.choice.id = -1;
      sequence.num_computed = 0;  // nothing of it may be shared
      end_reply(sequence, sequence.stop);
    }
    if (sequence.choice.id >= 0) ledger_.note_choice(i, sequence.choice);
    if (sequence.choice.id >= 0 || sequence.stop != StopReason::none) report(sequence);
    if (sequence.stop != StopReason::none) finish(sequence);
  }
}

void EngineImpl::advance(const Planned& planned) {
  Sequence& sequence = *planned.sequence;
  sequence.pages.append(planned.num_rows);
  sequence.num_computed += planned.num_rows;
  sequence.num_reached = std::max(sequence.num_reached, sequence.num_computed);
  publish_pages(sequence, *tree_);
  if (!planned.reaches_end) return;
  if (sequence.choice.id >= 0)
    feed_back(sequence, checkpoint_->tokenizer());
  else if (sequence.stop_when_computed != StopReason::none)
    sequence.stop = sequence.stop_when_computed;
  else
    end_reply(sequence, sequence.context_limits ? StopReason::context_full : StopReason::max_tokens);
  // Whoever looks at logits is shown those behind the last token too.
  if (sequence.observed() && sequence.stop != StopReason::none && sequence.num_pending() > 0) {
    sequence.stop_when_computed = sequence.stop;
    sequence.stop = StopReason::none;
  }
}

void EngineImpl::report(const Sequence& sequence) {
  events_.push_back({sequence.id, sequence.choice.id, sequence.shown, &sequence.choice, sequence.stop});
}

void EngineImpl::finish(Sequence& sequence) {
  finished_.push_back(scheduler_->remove(&sequence));
  num_unfinished_ -= 1;
}

}  // namespace engine

std::unique_ptr<Engine> Engine::load(std::shared_ptr<const Checkpoint> checkpoint, const EngineOptions& options) {
  auto open = std::dynamic_pointer_cast<const engine::OpenCheckpoint>(std::move(checkpoint));
  COUPLET_CHECK(open != nullptr);
  return std::make_unique<engine::EngineImpl>(std::move(open), options);
}

}  // namespace couplet
