#include "story/trace_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "story/ledger_json.h"
#include "story/stage_cost.h"
#include "story/token_json.h"

namespace couplet::story {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kClosing = "\n]}\n";
constexpr int kProcess = 1;
constexpr RequestId kStepsLane = 0;  // requests are numbered from 1

double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

// Names of colours that chrome://tracing knows; Perfetto colours a slice by its name.
const char* color(Stage stage) { return stage == Stage::prefill ? "rail_load" : "rail_animation"; }

std::string described(int code) { return std::generic_category().message(code); }

Json slice(RequestId lane, std::string_view name, std::string_view category, const char* color, std::int64_t began_ns,
           std::int64_t ended_ns, Json args) {
  return {{"ph", "X"},
          {"pid", kProcess},
          {"tid", lane},
          {"ts", microseconds(began_ns)},
          {"dur", microseconds(ended_ns - began_ns)},
          {"name", name},
          {"cat", category},
          {"cname", color},
          {"args", std::move(args)}};
}

Json about(const Engine& engine, const MachinePeaks& peaks) {
  const EngineInfo& info = engine.info();
  Json json = {{"couplet", COUPLET_VERSION},
               {"model", engine.checkpoint().summary().name},
               {"kernels", info.kernels},
               {"threads", info.num_threads},
               {"precision", name(info.precision)}};
  if (peaks.read_bytes_per_s > 0) {
    json["int8_operations_per_s"] = peaks.int8_operations_per_s;
    json["read_bytes_per_s"] = peaks.read_bytes_per_s;
  }
  return json;
}

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_zero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

}  // namespace

bool is_traceparent(std::string_view text) {
  constexpr std::size_t kTrace = 3, kSpan = 36, kFlags = 53, kLength = 55;
  if (text.size() != kLength || !text.starts_with("00-") || text[kSpan - 1] != '-' || text[kFlags - 1] != '-') return false;
  const std::string_view trace = text.substr(kTrace, 32), span = text.substr(kSpan, 16);
  return is_hex(trace) && is_hex(span) && is_hex(text.substr(kFlags)) && !is_zero(trace) && !is_zero(span);
}

TraceWriter::TraceWriter(const std::string& path, const Engine& engine, const MachinePeaks& peaks)
    : tokenizer_(&engine.checkpoint().tokenizer()), peaks_(peaks), path_(path), start_(Clock::now()) {
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  struct stat what {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &what) != 0) fail(errno);
  else if (!S_ISREG(what.st_mode)) fail(ESPIPE);  // what was closed before is written over
  if (problem_ == 0) {
    pending_ = "{\"displayTimeUnit\":\"ms\",\"otherData\":" + dump(about(engine, peaks)) + ",\"traceEvents\":[\n";
    pending_ += dump({{"ph", "M"}, {"pid", kProcess}, {"name", "process_name"}, {"args", {{"name", "couplet"}}}});
    add_name(kStepsLane, "steps");
    write();
  }
  if (problem_ == 0) return;
  if (descriptor_ >= 0) ::close(descriptor_);
  throw Error(ErrorKind::io, problem());
}

TraceWriter::~TraceWriter() { ::close(descriptor_); }

std::string TraceWriter::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_ == 0 ? "" : "[trace] " + path_ + ": " + described(problem_);
}

void TraceWriter::fail(int code) { problem_ = code != 0 ? code : EIO; }

std::int64_t TraceWriter::ns(Clock::time_point at) const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at - start_).count();
}

void TraceWriter::add(Json event) { pending_ += ",\n" + dump(std::move(event)); }

void TraceWriter::add_name(RequestId lane, const std::string& name) {
  add({{"ph", "M"}, {"pid", kProcess}, {"tid", lane}, {"name", "thread_name"}, {"args", {{"name", name}}}});
  add({{"ph", "M"}, {"pid", kProcess}, {"tid", lane}, {"name", "thread_sort_index"}, {"args", {{"sort_index", lane}}}});
}

void TraceWriter::submitted(RequestId id, int prompt_tokens, std::string_view traceparent, Clock::time_point at) {
  const std::lock_guard lock(mutex_);
  waiting_[id] = {ns(at), prompt_tokens, is_traceparent(traceparent) ? std::string(traceparent) : ""};
}

void TraceWriter::step(const StepRecord& record, std::span<const Event> events, Clock::time_point ended) {
  const std::lock_guard lock(mutex_);
  if (problem_ != 0) return;
  const std::int64_t ended_ns = ns(ended);
  const auto took_ns = static_cast<std::int64_t>(record.step_ms * 1e6);
  const std::int64_t began_ns = std::clamp(ended_ns - took_ns, last_end_ns_, ended_ns);
  last_end_ns_ = ended_ns;
  if (record.num_prefill_rows + record.num_decode_rows > 0) {
    add_step(record, began_ns, ended_ns);
    for (const SequenceStep& part : record.sequences) add_sequence(record, part, began_ns, ended_ns);
  }
  for (const Event& event : events) {
    if (event.stop == StopReason::none) continue;
    waiting_.erase(event.id);  // cancelled before it ran
    add({{"ph", "i"}, {"pid", kProcess}, {"tid", event.id}, {"ts", microseconds(ended_ns)}, {"s", "t"},
         {"name", name(event.stop)}, {"cat", "stop"}});
  }
  add_counters(record, ended_ns);
  write();
}

void TraceWriter::add_sequence(const StepRecord& record, const SequenceStep& part, std::int64_t began_ns,
                               std::int64_t ended_ns) {
  if (const auto found = waiting_.find(part.id); found != waiting_.end()) {
    const Lane& lane = found->second;
    add_name(part.id, "request " + std::to_string(part.id));
    Json args = {{"prompt_tokens", lane.prompt_tokens}};
    if (!lane.traceparent.empty()) args["traceparent"] = lane.traceparent;
    add(slice(part.id, "waiting", "queue", "grey", std::min(lane.began_ns, began_ns), began_ns, std::move(args)));
    waiting_.erase(found);
  }
  add(slice(part.id, name(part.stage), name(part.stage), color(part.stage), began_ns, ended_ns,
            ledger_entry(record, part, peaks_, *tokenizer_)));
}

void TraceWriter::add_step(const StepRecord& record, std::int64_t began_ns, std::int64_t ended_ns) {
  const bool has_prefill = record.num_prefill_rows > 0, has_decode = record.num_decode_rows > 0;
  StageCost cost;
  cost.add(record);
  Json args = {{"step", record.index},
               {"prefill_rows", record.num_prefill_rows},
               {"decode_rows", record.num_decode_rows},
               {"sequences", record.sequences.size()},
               {"operations", cost.operations()},
               {"weights_bytes", record.weights_bytes},
               {"cache_bytes", cost.cache_bytes},
               {"operations_per_byte", cost.operations_per_byte()},
               {"forward_ms", record.forward_ms}};
  if (peaks_.read_bytes_per_s > 0) {
    args["of_compute_peak"] = cost.of_compute_peak(peaks_);
    args["of_memory_peak"] = cost.of_memory_peak(peaks_);
  }
  const char* kind = has_prefill && has_decode ? "prefill and decode" : has_prefill ? "prefill" : "decode";
  add(slice(kStepsLane, kind, "step", has_prefill && has_decode ? "rail_response" : color(has_prefill ? Stage::prefill : Stage::decode),
            began_ns, ended_ns, std::move(args)));
}

void TraceWriter::add_counters(const StepRecord& record, std::int64_t at_ns) {
  const auto counter = [&](const char* what, Json values) {
    add({{"ph", "C"}, {"pid", kProcess}, {"ts", microseconds(at_ns)}, {"name", what}, {"args", std::move(values)}});
  };
  counter("rows", {{"prefill", record.num_prefill_rows}, {"decode", record.num_decode_rows}});
  counter("sequences", {{"running", record.num_running}, {"waiting", record.num_waiting}});
  counter("pages", {{"in use", record.pages_used - record.pages_in_tree}, {"kept for later", record.pages_in_tree}});
}

// The new events and what closes them go over what closed the old ones.
void TraceWriter::write() {
  const std::size_t num_events = pending_.size();
  pending_ += kClosing;
  std::string_view rest = pending_;
  std::uint64_t at = end_;
  while (!rest.empty() && problem_ == 0) {
    const ssize_t written = ::pwrite(descriptor_, rest.data(), rest.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      fail(written < 0 ? errno : ENOSPC);
      break;
    }
    at += static_cast<std::uint64_t>(written);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (problem_ == 0) {
    end_ += num_events;
  } else if (end_ > 0 && ::ftruncate(descriptor_, static_cast<off_t>(end_)) == 0) {
    // What came before stays whole.
    [[maybe_unused]] const ssize_t ignored = ::pwrite(descriptor_, kClosing.data(), kClosing.size(), static_cast<off_t>(end_));
  }
  pending_.clear();
}

}  // namespace couplet::story
