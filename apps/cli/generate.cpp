#include "generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <chrono>
#include <nlohmann/json.hpp>

#include "interrupt.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

void add_record(Figures& figures, const StepRecord& record, RequestId id) {
  for (const SequenceStep& part : record.sequences) {
    if (part.id != id) continue;
    figures.cached_tokens += part.num_cached;
    if (part.stage == Stage::prefill) {
      ++figures.prefill_steps;
      figures.prefill_rows += part.num_rows;
      figures.prefill_ms += record.step_ms;
    } else {
      ++figures.decode_steps;
      figures.decode_ms += record.step_ms;
    }
  }
}

// Of the program that started this one, in the variable that tracing tools hand it on with.
std::string_view callers_trace() {
  const char* traceparent = std::getenv("TRACEPARENT");
  return traceparent == nullptr ? "" : traceparent;
}

// Whatever ends the loop, no request is left behind in the engine.
class Running {
 public:
  Running(Engine& engine, RequestId id) : engine_(&engine), id_(id) {}
  ~Running() {
    if (engine_->has_work()) engine_->cancel(id_);
    while (engine_->has_work()) engine_->step();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Engine* engine_;
  RequestId id_;
};

}  // namespace

Reply generate(Engine& engine, Request request, const std::function<void(const StepView&)>& on_step,
               story::TraceWriter* trace) {
  const InterruptScope interrupt;
  const Tokenizer& tokenizer = engine.checkpoint().tokenizer();
  Reply reply;
  Figures& figures = reply.figures;
  figures.prompt_tokens = static_cast<int>(request.prompt.size());
  const Clock::time_point start = Clock::now();
  const SubmitResult submitted = engine.submit(std::move(request));
  if (!submitted) throw Error(ErrorKind::resource, submitted.refusal);
  if (trace != nullptr) trace->submitted(submitted.id, figures.prompt_tokens, callers_trace(), start);
  const Running running(engine, submitted.id);
  while (engine.has_work()) {
    if (interrupt.interrupted() && !reply.interrupted) {
      reply.interrupted = true;
      engine.cancel(submitted.id);
    }
    const std::span<const Event> events = engine.step();
    if (trace != nullptr) trace->step(engine.last_step(), events);
    const auto event =
        std::find_if(events.begin(), events.end(), [&](const Event& e) { return e.id == submitted.id; });
    const bool found = event != events.end();
    add_record(figures, engine.last_step(), submitted.id);
    if (found) {
      reply.text += event->text;
      reply.stop = event->stop;
      if (event->token >= 0 && figures.ttft_ms == 0)
        figures.ttft_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      const bool ended = event->stop == StopReason::end_of_turn && is_end(tokenizer, event->token);
      if (event->token >= 0 && !ended) ++figures.completion_tokens;
    }
    on_step({engine.last_step(), found ? &*event : nullptr, reply.text, figures});
  }
  return reply;
}

std::string describe(StopReason stop) {
  switch (stop) {
    case StopReason::none:
      return "still running";
    case StopReason::end_of_turn:
      return "the model ended its turn";
    case StopReason::stop_text:
      return "a stop text was reached";
    case StopReason::max_tokens:
      return "the token limit was reached";
    case StopReason::context_full:
      return "the context is full";
    case StopReason::cancelled:
      return "it was interrupted";
    case StopReason::numeric_error:
      return "a value of the model was not finite";
    case StopReason::cache_range:
      return "a key or value was beyond what the cache's format holds";
  }
  return "unknown";
}

bool is_failure(StopReason stop) {
  return stop == StopReason::numeric_error || stop == StopReason::cache_range;
}

std::string figures_line(const Reply& reply) {
  const Figures& f = reply.figures;
  std::string line = fmt::format("{} prompt tokens", f.prompt_tokens);
  if (f.cached_tokens > 0)
    line += fmt::format(" ({} from the cache, {} prefilled)", f.cached_tokens, f.prefill_rows);
  line += fmt::format(", {} reply tokens | ", f.completion_tokens);
  if (f.ttft_ms > 0) line += fmt::format("ttft_ms {:.1f}, ", f.ttft_ms);
  line += fmt::format("prefill_tokens_per_s {:.0f}", f.prefill_tokens_per_s());
  if (f.decode_steps > 0)
    line += fmt::format(", tpot_ms {:.2f}, decode_tokens_per_s {:.0f}", f.tpot_ms(), f.decode_tokens_per_s());
  return line + " | " + describe(reply.stop);
}

Json to_json(const Figures& f) {
  return {{"ttft_ms", f.ttft_ms > 0 ? Json(f.ttft_ms) : Json(nullptr)},
          {"prefill_ms", f.prefill_ms},
          {"prefill_steps", f.prefill_steps},
          {"prefill_rows", f.prefill_rows},
          {"prefill_tokens_per_s", f.prefill_tokens_per_s()},
          {"decode_ms", f.decode_ms},
          {"decode_steps", f.decode_steps},
          {"tpot_ms", f.tpot_ms()},
          {"decode_tokens_per_s", f.decode_tokens_per_s()}};
}

std::string dump_line(Json value) { return story::dump(std::move(value)) + "\n"; }

}  // namespace couplet::cli
