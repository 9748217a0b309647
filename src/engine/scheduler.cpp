#include "engine/scheduler.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "engine/prefill.h"

namespace couplet::engine {
namespace {

constexpr int kPage = kernels::kPagePositions;

// Those that had to stop go first: somebody sees their reply already.
auto start_rank(const Sequence& s) {
  return std::tuple(s.request.priority, s.started ? 0 : 1, s.client->num_running, s.client->served, s.id);
}
auto prompt_rank(const Sequence& s) { return std::tuple(s.request.priority, s.client->served, s.num_pending(), s.id); }
auto keep_rank(const Sequence& s) { return std::pair(s.request.priority, s.id); }

}  // namespace

Scheduler::Scheduler(cache::PrefixTree& tree, const cache::PagePool& pool, SchedulerLimits limits)
    : tree_(&tree), pool_(&pool), limits_(std::move(limits)), budget_(limits_.chunk_rows, limits_.itl_target_ms) {
  running_.reserve(static_cast<std::size_t>(limits_.max_sequences));
  planned_.reserve(static_cast<std::size_t>(limits_.max_sequences));
}

void Scheduler::add(std::unique_ptr<Sequence> sequence) {
  sequence->client = &shares_.join(sequence->request.client);
  waiting_.push_back(std::move(sequence));
  ++num_unstarted_;
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
    --taken->client->num_running;
    tree_->touch(taken->place);
  } else if (const auto at = std::find_if(waiting_.begin(), waiting_.end(), is); at != waiting_.end()) {
    taken = std::move(*at);
    waiting_.erase(at);
    if (!taken->started) --num_unstarted_;
  }
  COUPLET_CHECK(taken != nullptr);
  taken->pages.clear();
  shares_.leave(*std::exchange(taken->client, nullptr));
  return taken;
}

std::span<const Planned> Scheduler::plan() {
  planned_.clear();
  prompt_units_ = 0;
  shares_.settle();
  admit();
  plan_decode();
  plan_prefill();
  return planned_;
}

void Scheduler::note_step(double ms) {
  if (!planned_.empty()) budget_.note(num_decoding_, prompt_units_, ms);
}

void Scheduler::admit() {
  while (!waiting_.empty() && num_running() < limits_.max_sequences) {
    const std::size_t next = next_to_start();
    if (!start(*waiting_[next])) return;  // whoever is next waits for pages, and all others behind it
    starts_ += waiting_.size() > 1 ? 1 : 0;
    run_in_order(std::move(waiting_[next]));
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(next));
  }
}

std::size_t Scheduler::next_to_start() {
  const bool oldest = starts_ % kTurns == kTurns - 1;
  const auto next = std::min_element(waiting_.begin(), waiting_.end(), [oldest](const auto& a, const auto& b) {
    return oldest ? a->id < b->id : start_rank(*a) < start_rank(*b);
  });
  return static_cast<std::size_t>(next - waiting_.begin());
}

bool Scheduler::start(Sequence& sequence) {
  begin_prefill(sequence, *tree_);
  const int needed = cache::pages_for(sequence.num_tokens() + 1) - static_cast<int>(sequence.pages.pages().size());
  // A sequence that can't get all its pages soon would be preempted at once; alone it always fits.
  if (!running_.empty() && needed + pages_wanted() > pool_->free_pages() + pool_->idle_pages()) {
    sequence.pages.clear();
    sequence.num_computed = 0;
    return false;
  }
  if (!sequence.started) {
    sequence.started = true;
    --num_unstarted_;
    if (sequence.uses_tree()) queried_tokens_ += static_cast<std::uint64_t>(sequence.num_prompt());
  }
  find_more_cached(sequence);
  return true;
}

int Scheduler::pages_wanted() const {
  int pages = 0;
  for (const auto& s : running_)
    pages += std::max(0, cache::pages_for(s->num_tokens() + 1) - static_cast<int>(s->pages.pages().size()));
  return pages;
}

void Scheduler::run_in_order(std::unique_ptr<Sequence> sequence) {
  ++sequence->client->num_running;
  const auto place = std::find_if(running_.begin(), running_.end(), [&](const auto& other) {
    return keep_rank(*sequence) < keep_rank(*other);
  });
  running_.insert(place, std::move(sequence));
}

bool Scheduler::find_pages(Sequence& sequence, int num_positions) {
  while (!sequence.pages.reserve(num_positions))
    if (!tree_->evict_one()) return false;
  return true;
}

void Scheduler::preempt_last() {
  std::unique_ptr<Sequence> last = std::move(running_.back());
  running_.pop_back();
  --last->client->num_running;
  tree_->touch(last->place);  // what it had computed stays for it as long as nobody needs the room
  last->pages.clear();
  last->num_computed = 0;
  waiting_.push_front(std::move(last));
  ++num_preemptions_;
}

void Scheduler::plan_decode() {
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.stage() != Stage::decode) continue;
    // The last in rank has not been planned yet, unless it is this one.
    while (i < running_.size() && !find_pages(sequence, sequence.num_tokens())) preempt_last();
    if (i < running_.size()) plan_rows(sequence, 1);
  }
  num_decoding_ = static_cast<int>(planned_.size());
}

void Scheduler::plan_prefill() {
  int num_prompts = 0;
  for (const auto& sequence : running_) {
    sequence->num_planned = 0;
    sequence->considered = sequence->stage() != Stage::prefill;
    if (sequence->considered) continue;
    find_more_cached(*sequence);
    ++num_prompts;
  }
  row_budget_ = limits_.chunk_rows;
  if (num_prompts == 0) return;
  Allowance allowance{budget_.units(num_decoding_)};
  if (allowance.units == 0) row_budget_ = 0;
  const bool oldest = num_prompts > 1 && chunks_++ % kTurns == kTurns - 1;
  while (row_budget_ > 0) {
    Sequence* const next = next_prompt(oldest && allowance.rows_taken == 0);
    if (next == nullptr) return;
    next->considered = true;
    // What another computes for both is waited for: the turn is the other's.
    Sequence& sequence = leader_of(*next);
    if (&sequence != next && sequence.considered) continue;
    sequence.considered = true;
    if (!plan_prompt(sequence, allowance)) return;
    // A leader that found no room, and had to go, leads no longer.
    if (&sequence != next && sequence.num_planned == 0) next->considered = false;
  }
}

bool Scheduler::plan_prompt(Sequence& sequence, Allowance& allowance) {
  int allowed = limits_.chunk_rows - allowance.rows_taken;
  if (num_decoding_ > 0) {
    const int least = allowance.rows_taken == 0 ? RowBudget::kLeastRows : 0;
    allowed = std::min(allowed, std::max(least, limits_.cost.rows_within(allowance.units, sequence.num_computed)));
  }
  if (allowance.rows_taken == 0) row_budget_ = allowed;
  if (allowed <= 0) return false;
  const int rows = rows_with_pages(sequence, std::min(sequence.num_pending(), allowed));
  if (rows <= 0) return true;
  const double cost = limits_.cost.of_rows(sequence.num_computed, rows);
  allowance.units -= cost;
  allowance.rows_taken += rows;
  row_budget_ = std::max(row_budget_, allowance.rows_taken);  // rows of others may be cheaper
  prompt_units_ += cost;
  sequence.num_planned = rows;
  plan_rows(sequence, rows);
  return true;
}

Sequence* Scheduler::next_prompt(bool oldest) const {
  Sequence* next = nullptr;
  for (const auto& s : running_) {
    if (s->considered) continue;
    if (next == nullptr || (oldest ? s->id < next->id : prompt_rank(*s) < prompt_rank(*next))) next = s.get();
  }
  return next;
}

Sequence& Scheduler::leader_of(Sequence& sequence) const {
  const auto reached = [](const Sequence& s) { return s.num_computed + s.num_planned; };
  Sequence* leader = &sequence;
  for (const auto& s : running_)
    if (s->stage() == Stage::prefill && reached(*s) > reached(*leader) && share_next_page(sequence, *s)) leader = s.get();
  return *leader;
}

void Scheduler::find_more_cached(Sequence& sequence) {
  const int before = sequence.num_cached;
  catch_up(sequence, *tree_);
  note_cached(sequence);
  hit_tokens_ += static_cast<std::uint64_t>(sequence.num_cached - before);
}

int Scheduler::rows_with_pages(Sequence& sequence, int num_rows) {
  // A prompt waits for the pages of those that decode. Only when nobody runs at all must somebody give way.
  while (!find_pages(sequence, sequence.num_computed + num_rows)) {
    const int room = static_cast<int>(sequence.pages.pages().size()) * kPage - sequence.num_computed;
    if (room > 0 || !planned_.empty()) return room;
    COUPLET_CHECK(running_.size() > 1);  // alone it fits: the pool holds a whole context
    const bool gives_way = running_.back().get() == &sequence;
    preempt_last();
    if (gives_way) return 0;
  }
  return num_rows;
}

void Scheduler::plan_rows(Sequence& sequence, int num_rows) {
  planned_.push_back({&sequence, sequence.stage(), num_rows, num_rows == sequence.num_pending()});
  sequence.client->served += num_rows;
}

}  // namespace couplet::engine
