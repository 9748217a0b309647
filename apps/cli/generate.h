#pragma once
// One request from prompt to stop: steps the engine, hands each step to whoever shows it, and keeps the
// figures, all of them from the steps' own records. run, chat and explain differ only in what they show.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "couplet/engine.h"
#include "story/token_json.h"
#include "story/trace_writer.h"

namespace couplet::cli {

using story::is_end;
using story::to_json;
using story::token_text;

struct Figures {
  int prompt_tokens = 0;      // of which
  int cached_tokens = 0;      //   so many came from the prefix cache
  int completion_tokens = 0;  // of the reply, without the end token
  int prefill_steps = 0, prefill_rows = 0;
  int decode_steps = 0;
  double prefill_ms = 0, decode_ms = 0;  // in steps
  double ttft_ms = 0;                    // from submit to the first token; 0: none came

  double prefill_tokens_per_s() const { return prefill_ms > 0 ? prefill_rows * 1e3 / prefill_ms : 0; }
  double tpot_ms() const { return decode_steps > 0 ? decode_ms / decode_steps : 0; }
  double decode_tokens_per_s() const { return decode_ms > 0 ? decode_steps * 1e3 / decode_ms : 0; }
};

struct Reply {
  std::string text;
  StopReason stop = StopReason::none;
  Figures figures;
  bool interrupted = false;
};

// What one step did for the request; the views are valid during the call.
struct StepView {
  const StepRecord& record;
  const Event* event;        // null: none, the prompt goes on
  const std::string& reply;  // text so far, this step's included
  const Figures& figures;    // so far
};

// Throws Error{resource} where the engine refuses the request. Ctrl-C cancels it after the running step. `trace`, where there
// is one, gets each step.
Reply generate(Engine& engine, Request request, const std::function<void(const StepView&)>& on_step,
               story::TraceWriter* trace = nullptr);

// "the model ended its turn", ...; a failure reads as one.
std::string describe(StopReason stop);
bool is_failure(StopReason stop);

// "43 prompt tokens, ttft_ms 15.1, ...", for standard error.
std::string figures_line(const Reply& reply);
nlohmann::ordered_json to_json(const Figures& figures);
// story::dump() and a newline.
std::string dump_line(nlohmann::ordered_json value);

}  // namespace couplet::cli
