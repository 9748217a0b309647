#pragma once
// The engine's thread, and the border between it and the io thread: requests go in, and what each step did for them comes
// back to their listeners on the io thread, one post a step. Nobody else calls step().

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "couplet/engine.h"

namespace couplet::server {

class Metrics;
using Clock = std::chrono::steady_clock;

// What one step did for one sequence of a group.
struct StepPart {
  int choice = 0;             // its index in the group
  SequenceStep step;          // stage, rows, positions, cached tokens, the choice with its probabilities
  TokenId token = -1;         // chosen in this step; -1: none
  std::string text;           // what has become certain, valid UTF-8; may be empty
  StopReason stop = StopReason::none;  // else this was the sequence's last part
  Clock::time_point began, ended;      // of the step
  std::shared_ptr<const StepRecord> record;  // the whole step's; null unless the group asked for it
};

// Called on the io thread, in order.
using Listener = std::function<void(const StepPart&)>;
using GroupId = std::uint64_t;

struct GroupOptions {
  bool wants_records = false;
};

class EngineHost {
 public:
  EngineHost(Engine& engine, boost::asio::io_context& io, Metrics& metrics);
  ~EngineHost();  // cancels what runs, ends the thread; no listener is called afterwards
  EngineHost(const EngineHost&) = delete;
  EngineHost& operator=(const EngineHost&) = delete;

  struct Submitted {
    GroupId id = 0;  // 0: refused
    SubmitResult refusal;
  };
  // From any thread. The requests (the choices of one HTTP request) all run, or none.
  Submitted submit(std::vector<Request> requests, Listener listener, GroupOptions options = {});
  // From the io thread: the listener is not called again. An ended group is ignored.
  void cancel(GroupId id);

  int num_groups() const;  // running or waiting

 private:
  struct Group;
  struct Member;    // one sequence of a group
  struct Delivery;  // what the io thread has not been told yet

  void run();
  void deliver(std::span<const Event> events, Clock::time_point began, Clock::time_point ended);
  void forget(Group& group);
  void wake();

  Engine& engine_;
  boost::asio::io_context& io_;
  Metrics& metrics_;
  std::shared_ptr<Delivery> delivery_;  // outlives the host in posts that have not run

  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable work_;
  std::unordered_map<RequestId, Member> members_;
  std::unordered_map<GroupId, std::shared_ptr<Group>> groups_;
  GroupId last_group_ = 0;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace couplet::server
