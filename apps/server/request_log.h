#pragma once
// One line a request on standard error, as text or JSON: figures and names, never a prompt, a reply or a key. Writing never
// blocks the io thread: lines wait in a bounded queue, and what it has no room for is dropped and counted.

#include <memory>
#include <string>
#include <string_view>

#include "server/metrics.h"

namespace couplet::server {

// W3C traceparent, version 00 or later; empty where it is missing or ill-formed.
struct TraceContext {
  std::string trace_id;   // 32 hex digits
  std::string parent_id;  // 16 hex digits
};
TraceContext parse_traceparent(std::string_view header);

struct RequestLine {
  std::string method, id, client;
  TraceContext trace;
  RequestFigures figures;
  std::string problem;  // the code or param of a refusal, never its message, which may quote the client; empty: none
};

// As one line without its newline; control characters are escaped.
std::string to_text(const RequestLine& line);
std::string to_json(const RequestLine& line);

class RequestLog {
 public:
  explicit RequestLog(bool json, int file_descriptor = 2);
  ~RequestLog();  // writes what waits, but waits for no reader longer than a second
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  void write(const RequestLine& line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace couplet::server
