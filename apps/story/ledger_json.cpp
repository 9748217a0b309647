#include "story/ledger_json.h"

#include <nlohmann/json.hpp>
#include <numbers>

#include "story/stage_cost.h"
#include "story/token_json.h"

namespace couplet::story {

using Json = nlohmann::ordered_json;

const char* how(const TokenChoice& choice) { return choice.forced ? "forced" : choice.drawn ? "drawn" : "greedy"; }

Json choice_json(const Tokenizer& tokenizer, const TokenChoice& choice) {
  Json json = to_json(tokenizer, choice);
  json["how"] = how(choice);
  if (choice.drawn) json["draw"] = choice.draw;
  json["text_tokens"] = choice.text_tokens;
  if (!choice.measured) return json;
  json["shaped_logprob"] = shortest(choice.shaped_log_probability);
  json["entropy_bits"] = choice.entropy / std::numbers::ln2;
  json["num_kept"] = choice.num_kept;
  return json;
}

Json ledger_entry(const StepRecord& record, const SequenceStep& part, const MachinePeaks& peaks,
                  const Tokenizer& tokenizer) {
  Json json = {{"step", record.index},
               {"stage", name(part.stage)},
               {"rows", part.num_rows},
               {"logit_rows", part.num_logit_rows},
               {"first_position", part.first_position},
               {"cached_tokens", part.num_cached},
               {"integer_operations", part.matmul_operations + part.attention_operations - part.float_operations},
               {"float_operations", part.float_operations},
               {"attention_operations", part.attention_operations},
               {"weights_bytes", part.weights_bytes},
               {"cache_read_bytes", part.cache_read_bytes},
               {"cache_write_bytes", part.cache_write_bytes},
               {"whole_step",
                {{"ms", record.step_ms},
                 {"forward_ms", record.forward_ms},
                 {"sequences", record.sequences.size()},
                 {"prefill_rows", record.num_prefill_rows},
                 {"decode_rows", record.num_decode_rows}}}};
  if (peaks.int8_operations_per_s > 0 && peaks.read_bytes_per_s > 0) {
    StageCost cost;
    cost.add(record);
    json["whole_step"]["of_compute_peak"] = cost.of_compute_peak(peaks);
    json["whole_step"]["of_memory_peak"] = cost.of_memory_peak(peaks);
  }
  if (part.choice.id >= 0) json["choice"] = choice_json(tokenizer, part.choice);
  return json;
}

}  // namespace couplet::story
