#include "server/engine_host.h"

#include <atomic>
#include <boost/asio/post.hpp>
#include <iterator>
#include <utility>

#include "server/metrics.h"

namespace couplet::server {

struct EngineHost::Group {
  GroupId id = 0;
  Listener listener;
  GroupOptions options;
  std::vector<RequestId> requests;
  int num_running = 0;
  bool cancelled = false;  // io thread only
};

struct EngineHost::Member {
  std::shared_ptr<Group> group;
  int choice = 0;
  Clock::time_point last_token{};  // the epoch: none yet
};

// Parts pile up here while the io thread is busy, at most what the running sequences can produce; one post is under way
// at a time.
struct EngineHost::Delivery {
  struct Item {
    std::shared_ptr<Group> group;
    StepPart part;
  };

  void take(std::vector<Item>& items, boost::asio::io_context& io, const std::shared_ptr<Delivery>& self) {
    {
      const std::lock_guard lock(mutex);
      if (pending.empty()) pending.swap(items);
      else std::move(items.begin(), items.end(), std::back_inserter(pending));
      items.clear();
      if (std::exchange(posted, true)) return;
    }
    boost::asio::post(io, [self] { self->hand_over(); });
  }

  void hand_over() {
    {
      const std::lock_guard lock(mutex);
      handed.swap(pending);
      posted = false;
    }
    for (const Item& item : handed)
      if (!item.group->cancelled && !closed) item.group->listener(item.part);
    handed.clear();
  }

  std::mutex mutex;  // guards the two below
  std::vector<Item> pending;
  bool posted = false;
  std::vector<Item> handed;  // io thread only
  std::atomic<bool> closed{false};
};

EngineHost::EngineHost(Engine& engine, boost::asio::io_context& io, Metrics& metrics)
    : engine_(engine), io_(io), metrics_(metrics), delivery_(std::make_shared<Delivery>()) {
  thread_ = std::thread([this] { run(); });
}

EngineHost::~EngineHost() {
  delivery_->closed = true;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [id, member] : members_) engine_.cancel(id);
  }
  work_.notify_one();
  thread_.join();
}

EngineHost::Submitted EngineHost::submit(std::vector<Request> requests, Listener listener, GroupOptions options) {
  auto group = std::make_shared<Group>();
  group->listener = std::move(listener);
  group->options = options;
  // The engine may run a request before its group is known: deliver() waits for this lock.
  const std::lock_guard lock(mutex_);
  for (Request& request : requests) {
    SubmitResult result = engine_.submit(std::move(request));
    if (!result) {
      for (const RequestId id : group->requests) engine_.cancel(id);
      wake();
      return {0, std::move(result)};
    }
    group->requests.push_back(result.id);
  }
  group->id = ++last_group_;
  group->num_running = static_cast<int>(group->requests.size());
  for (int choice = 0; choice < group->num_running; ++choice)
    members_[group->requests[static_cast<std::size_t>(choice)]] = {group, choice, {}};
  groups_[group->id] = group;
  wake();
  return {group->id, {}};
}

void EngineHost::cancel(GroupId id) {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(id);
  if (found == groups_.end()) return;
  const std::shared_ptr<Group> group = found->second;
  group->cancelled = true;
  for (const RequestId request : group->requests) engine_.cancel(request);
  forget(*group);
  wake();
}

int EngineHost::num_groups() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(groups_.size());
}

void EngineHost::forget(Group& group) {
  for (const RequestId request : group.requests) members_.erase(request);
  groups_.erase(group.id);
}

// The lock is held, so the engine's thread either waits and hears this, or has not looked for work yet.
void EngineHost::wake() { work_.notify_one(); }

void EngineHost::run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [this] { return stopping_ || engine_.has_work(); });
      if (stopping_ && !engine_.has_work()) return;
    }
    const Clock::time_point began = Clock::now();
    const std::span<const Event> events = engine_.step();
    metrics_.observe_step(engine_.last_step());
    deliver(events, began, Clock::now());
  }
}

void EngineHost::deliver(std::span<const Event> events, Clock::time_point began, Clock::time_point ended) {
  const StepRecord& record = engine_.last_step();
  std::shared_ptr<const StepRecord> shared_record;  // one copy, for all who want it
  std::vector<Delivery::Item> items;
  std::unordered_map<RequestId, std::size_t> item_of;
  {
    const std::lock_guard lock(mutex_);
    const auto item = [&](RequestId id) -> StepPart* {
      if (const auto known = item_of.find(id); known != item_of.end()) return &items[known->second].part;
      const auto member = members_.find(id);
      if (member == members_.end()) return nullptr;  // cancelled
      item_of[id] = items.size();
      items.push_back({member->second.group, {}});
      StepPart& part = items.back().part;
      part.choice = member->second.choice;
      part.step.id = id;
      part.began = began;
      part.ended = ended;
      if (member->second.group->options.wants_records) {
        if (!shared_record) shared_record = std::make_shared<const StepRecord>(record);
        part.record = shared_record;
      }
      return &part;
    };
    for (const SequenceStep& step : record.sequences)
      if (StepPart* part = item(step.id)) part->step = step;
    for (const Event& event : events) {
      StepPart* const part = item(event.id);
      if (part == nullptr) continue;
      part->token = event.token;
      part->text = event.text;
      part->stop = event.stop;
      Member& member = members_.at(event.id);
      if (event.token >= 0) {
        if (member.last_token != Clock::time_point{})
          metrics_.observe_inter_token(std::chrono::duration<double>(ended - member.last_token).count());
        member.last_token = ended;
      }
      if (event.stop == StopReason::none) continue;
      const std::shared_ptr<Group> group = member.group;
      members_.erase(event.id);
      if (--group->num_running == 0) groups_.erase(group->id);
    }
  }
  if (!items.empty()) delivery_->take(items, io_, delivery_);
}

}  // namespace couplet::server
