#include "server/request_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

namespace couplet::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostLines = 1024;
// A pipe that can be written at all takes so much at once (PIPE_BUF).
constexpr std::size_t kMostBytes = 4096;
constexpr int kPollMs = 100;
constexpr auto kPatience = std::chrono::seconds(1);

bool is_lower_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_zero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

// A field of a text line: no space, no control character, no quote of its own.
std::string field(std::string_view text) {
  if (text.empty()) return "-";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7F && c != '\\' && c != '"') out += c;
    else out += fmt::format("\\x{:02x}", byte);
  }
  return out;
}

std::string now() {
  const auto time = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto ms = time.time_since_epoch().count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(time)), ms);
}

struct Timing {
  const char* name;
  double seconds;
};

std::array<Timing, 5> timings(const RequestFigures& f) {
  return {{{"queue_ms", f.queue_s}, {"ttft_ms", f.ttft_s}, {"prefill_ms", f.prefill_s}, {"decode_ms", f.decode_s},
           {"total_ms", f.total_s}}};
}

}  // namespace

TraceContext parse_traceparent(std::string_view header) {
  // version "-" trace id "-" parent id "-" flags; later versions may say more behind another "-".
  constexpr std::size_t kSize = 55;
  if (header.size() < kSize || header[2] != '-' || header[35] != '-' || header[52] != '-') return {};
  const std::string_view version = header.substr(0, 2), trace = header.substr(3, 32), parent = header.substr(36, 16);
  if (!is_lower_hex(version) || version == "ff" || !is_lower_hex(header.substr(53, 2))) return {};
  if (version == "00" ? header.size() != kSize : header.size() > kSize && header[kSize] != '-') return {};
  if (!is_lower_hex(trace) || !is_lower_hex(parent) || is_zero(trace) || is_zero(parent)) return {};
  return {std::string(trace), std::string(parent)};
}

std::string to_text(const RequestLine& line) {
  const RequestFigures& f = line.figures;
  std::string text = fmt::format("{} {} {} {} {} id={} client={}", now(), field(line.method), field(f.route), f.status,
                                 field(f.outcome), field(line.id), field(line.client));
  if (!line.problem.empty()) text += " problem=" + field(line.problem);
  if (f.prompt_tokens > 0)
    text += fmt::format(" prompt_tokens={} cached_tokens={} completion_tokens={}", f.prompt_tokens, f.cached_tokens,
                        f.completion_tokens);
  for (const Timing& timing : timings(f))
    if (timing.seconds >= 0) text += fmt::format(" {}={:.1f}", timing.name, timing.seconds * 1e3);
  if (!line.trace.trace_id.empty()) text += fmt::format(" trace={} parent={}", line.trace.trace_id, line.trace.parent_id);
  return text;
}

std::string to_json(const RequestLine& line) {
  const RequestFigures& f = line.figures;
  Json json = {{"time", now()},       {"method", line.method}, {"route", f.route},      {"status", f.status},
               {"outcome", f.outcome}, {"id", line.id},         {"client", line.client}};
  if (!line.problem.empty()) json["problem"] = line.problem;
  if (f.prompt_tokens > 0) {
    json["prompt_tokens"] = f.prompt_tokens;
    json["cached_tokens"] = f.cached_tokens;
    json["completion_tokens"] = f.completion_tokens;
  }
  for (const Timing& timing : timings(f))
    if (timing.seconds >= 0) json[timing.name] = timing.seconds * 1e3;
  if (!line.trace.trace_id.empty()) {
    json["trace_id"] = line.trace.trace_id;
    json["parent_id"] = line.trace.parent_id;
  }
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

struct RequestLog::State {
  State(bool as_json, int descriptor) : json(as_json), file_descriptor(descriptor), thread([this] { run(); }) {}
  ~State() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
      deadline = std::chrono::steady_clock::now() + kPatience;
    }
    filled.notify_one();
    thread.join();
  }

  void add(std::string line) {
    line.resize(std::min(line.size(), kMostBytes - 1));
    line += '\n';
    {
      const std::lock_guard lock(mutex);
      if (lines.size() == kMostLines) {
        ++num_dropped;
        return;
      }
      lines.push_back(std::move(line));
    }
    filled.notify_one();
  }

  // The next line; empty: the log ends. Lines that were dropped are told of in their place.
  std::string next() {
    std::unique_lock lock(mutex);
    filled.wait(lock, [this] { return stopping || !lines.empty(); });
    if (lines.empty()) return "";
    if (num_dropped > 0 && lines.size() < kMostLines) {
      const std::uint64_t num = std::exchange(num_dropped, 0);
      return json ? Json{{"time", now()}, {"lines_dropped", num}}.dump() + "\n"
                  : fmt::format("{} {} lines dropped: nobody read them in time\n", now(), num);
    }
    std::string line = std::move(lines.front());
    lines.pop_front();
    return line;
  }

  bool is_late() {
    const std::lock_guard lock(mutex);
    return stopping && std::chrono::steady_clock::now() > deadline;
  }

  void run() {
    for (std::string line = next(); !line.empty(); line = next()) {
      pollfd ready{file_descriptor, POLLOUT, 0};
      while (poll(&ready, 1, kPollMs) == 0)
        if (is_late()) return;
      // Nobody can be told of a log that can't be written.
      [[maybe_unused]] const auto written = ::write(file_descriptor, line.data(), line.size());
    }
  }

  const bool json;
  const int file_descriptor;
  std::mutex mutex;  // guards what follows, but for the thread
  std::condition_variable filled;
  std::deque<std::string> lines;
  std::uint64_t num_dropped = 0;
  bool stopping = false;
  std::chrono::steady_clock::time_point deadline{};
  std::thread thread;  // last: it uses all the others
};

RequestLog::RequestLog(bool json, int file_descriptor) : state_(std::make_unique<State>(json, file_descriptor)) {}

RequestLog::~RequestLog() = default;

void RequestLog::write(const RequestLine& line) { state_->add(state_->json ? to_json(line) : to_text(line)); }

}  // namespace couplet::server
