#pragma once
// What /metrics says: figures of steps, observed once a step on the engine's thread, and of requests, once each on the io
// thread; under our own names (couplet_) and those that vLLM's and llama.cpp's tools read.

#include <memory>
#include <string>

#include "couplet/engine.h"

namespace couplet::server {

// How one HTTP request for text went, in seconds; a stage that was not reached has none (negative).
struct RequestFigures {
  std::string route;        // "/v1/chat/completions"
  int status = 200;
  std::string outcome;      // "stop", "length", "cancelled", "refused", "error"
  int prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  double queue_s = -1, prefill_s = -1, decode_s = -1, ttft_s = -1, total_s = -1;
};

class Metrics {
 public:
  Metrics(const std::string& model_name, const EngineInfo& info);
  ~Metrics();

  void observe_step(const StepRecord& record);           // engine thread
  void observe_inter_token(double seconds);              // engine thread: between two tokens of one sequence
  void observe_request(const RequestFigures& figures);   // io thread
  void observe_http(const std::string& route, int status);
  // The exposition format, version 0.0.4.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace couplet::server
