#include "explain_json.h"

#include <nlohmann/json.hpp>

#include "story/ledger_json.h"
#include "story/token_json.h"

namespace couplet::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;  // names may be added under it; one that changes or goes makes it greater

Json to_json(const StageCost& cost, const MachinePeaks& peaks) {
  return {{"tokens", cost.rows},
          {"passes", cost.steps},
          {"ms", cost.ms},
          {"tokens_per_s", cost.tokens_per_s()},
          {"matmul_operations", cost.matmul_operations},
          {"attention_operations", cost.attention_operations},
          {"weights_bytes", cost.weights_bytes},
          {"cache_bytes", cost.cache_bytes},
          {"operations_per_byte", cost.operations_per_byte()},
          {"of_compute_peak", cost.of_compute_peak(peaks)},
          {"of_memory_peak", cost.of_memory_peak(peaks)},
          {"bound_by", cost.bound_by_arithmetic(peaks) ? "arithmetic" : "memory"}};
}

Json ledger(const ExplainedRun& run, const Engine& engine, const MachinePeaks& peaks) {
  Json json = Json::array();
  std::size_t number = 0;  // of the token
  for (const StepRecord& record : run.records)
    for (const SequenceStep& part : record.sequences) {
      json.push_back(story::ledger_entry(record, part, peaks, engine.checkpoint().tokenizer()));
      if (part.choice.id < 0) continue;
      json.back()["text"] = number == 0 ? run.first_text : run.steps[number - 1].text;
      ++number;
    }
  return json;
}

// Both stages, step by step, and the end of a run.
Json run_json(const ExplainedRun& run, const Engine& engine, const MachinePeaks& peaks) {
  const Tokenizer& tokenizer = engine.checkpoint().tokenizer();
  const Figures& figures = run.reply.figures;
  Json json;
  json["prefill"] = to_json(run.prefill, peaks);
  if (run.first.id >= 0) json["prefill"]["choice"] = story::choice_json(tokenizer, run.first);
  json["prefill"]["ttft_ms"] = figures.ttft_ms > 0 ? Json(figures.ttft_ms) : Json(nullptr);
  json["prefill"]["cached_tokens"] = figures.cached_tokens;
  json["decode"] = to_json(run.decode, peaks);
  json["decode"]["tpot_ms"] = figures.tpot_ms();
  json["decode"]["positions_not_run_again"] = run.positions_not_run_again();
  json["decode"]["steps"] = Json::array();
  for (const DecodeStep& step : run.steps)
    json["decode"]["steps"].push_back({{"in", step.in},
                                       {"choice", story::choice_json(tokenizer, step.choice)},
                                       {"ms", step.ms},
                                       {"text", step.text}});
  json["ledger"] = ledger(run, engine, peaks);
  json["stop"] = name(run.reply.stop);
  json["completion_tokens"] = figures.completion_tokens;
  json["text"] = run.reply.text;
  return json;
}

}  // namespace

Json to_json(const Engine& engine, const Explanation& e) {
  const Tokenizer& tokenizer = engine.checkpoint().tokenizer();
  Json json = {{"format", kFormat}, {"model", engine.checkpoint().summary().name}};
  for (std::size_t n = 0; n < e.prompt.size(); ++n)
    json["prompt"].push_back({{"id", e.prompt[n]},
                              {"text", token_text(tokenizer, e.prompt[n])},
                              {"own", n >= e.own_begin && n < e.own_end}});
  json["sampling"] = {{"temperature", story::shortest(e.sampling.temperature)},
                      {"top_p", story::shortest(e.sampling.top_p)},
                      {"top_k", e.sampling.top_k},
                      {"min_p", story::shortest(e.sampling.min_p)},
                      {"repetition_penalty", story::shortest(e.sampling.repetition_penalty)},
                      {"presence_penalty", story::shortest(e.sampling.presence_penalty)},
                      {"frequency_penalty", story::shortest(e.sampling.frequency_penalty)},
                      {"logit_bias", Json::object()},
                      {"seed", e.sampling.seed}};
  for (const auto& [id, bias] : e.sampling.logit_bias)
    json["sampling"]["logit_bias"][std::to_string(id)] = story::shortest(bias);
  json["machine"] = {{"kernels", engine.info().kernels},
                     {"threads", engine.info().num_threads},
                     {"int8_operations_per_s", e.peaks.int8_operations_per_s},
                     {"float_operations_per_s", e.peaks.float_operations_per_s},
                     {"read_bytes_per_s", e.peaks.read_bytes_per_s}};
  json.update(run_json(e.run, engine, e.peaks));
  if (!e.what_if) return json;
  Json what_if = {{"step", e.what_if->step}, {"id", e.what_if->id}, {"instead_of", e.run.choice(e.what_if->step).id}};
  what_if.update(run_json(e.what_if->run, engine, e.peaks));
  json["what_if"] = std::move(what_if);
  return json;
}

}  // namespace couplet::cli
