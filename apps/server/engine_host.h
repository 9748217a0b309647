#pragma once
// The engine's thread, and the border between it and the io thread: requests go in, and what each step did for them comes
// back to their listeners on the io thread, one post a step. Nobody else calls step().

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
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
  ~EngineHost();  // cancels what runs, ends the thread

  // From any thread. The requests (the choices of one HTTP request) start together or not at all.
  struct Submitted {
    GroupId id = 0;      // 0: refused, see refusal
    SubmitResult refusal;
  };
  Submitted submit(std::vector<Request> requests, Listener listener, GroupOptions options = {});
  // The listener is not called again once this returns on the io thread. Ended groups are ignored.
  void cancel(GroupId id);

  int num_groups() const;  // running or waiting
};

}  // namespace couplet::server
