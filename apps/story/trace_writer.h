#pragma once
// What the engine did, on a time line: a file in Chrome's trace form, which ui.perfetto.dev and chrome://tracing open. A lane
// for the steps and one for each sequence; a slice a step, named by its stage, with its figures; counters of rows, pages and
// sequences. The file is whole JSON after every step, so whatever ends the program leaves one; nothing piles up in memory.

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "couplet/engine.h"
#include "couplet/machine.h"

namespace couplet::story {

class TraceWriter {
 public:
  using Clock = std::chrono::steady_clock;

  // Makes the file, or empties it. Throws Error{io} where it can't be written. `peaks`: with them each step says how near
  // it came to the machine's limits.
  TraceWriter(const std::string& path, const Engine& engine, const MachinePeaks& peaks = {});
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // From any thread. A request was handed to the engine: its lane begins with its wait. `traceparent` is the caller's, as
  // the W3C writes it; what has another form is left out.
  void submitted(RequestId id, int prompt_tokens, std::string_view traceparent = "", Clock::time_point at = Clock::now());
  // After each step(), before the next.
  void step(const StepRecord& record, std::span<const Event> events, Clock::time_point ended = Clock::now());

  // One line about why the file is not complete; "": it is.
  std::string problem() const;

 private:
  struct Lane {
    std::int64_t began_ns;
    int prompt_tokens;
    std::string traceparent;
  };
  std::int64_t ns(Clock::time_point at) const;
  void add(nlohmann::ordered_json event);  // to what the next write() takes
  void add_name(RequestId lane, const std::string& name);
  void add_sequence(const StepRecord& record, const SequenceStep& part, std::int64_t began_ns, std::int64_t ended_ns);
  void add_step(const StepRecord& record, std::int64_t began_ns, std::int64_t ended_ns);
  void add_counters(const StepRecord& record, std::int64_t at_ns);
  void write();
  void fail(int code);

  const Tokenizer* tokenizer_;
  MachinePeaks peaks_;
  std::string path_;
  Clock::time_point start_;
  mutable std::mutex mutex_;            // guards what is below
  int descriptor_ = -1;
  std::uint64_t end_ = 0;               // of the events in the file; behind it stands what closes them
  std::int64_t last_end_ns_ = 0;        // of the last step
  std::string pending_;
  std::map<RequestId, Lane> waiting_;   // submitted, no step of theirs was seen
  int problem_ = 0;
};

// "00-<32 hex digits>-<16>-<2>", not all zero: a traceparent of the W3C's version 0.
bool is_traceparent(std::string_view text);

}  // namespace couplet::story
