// couplet explain: the two stages made visible, step by step and side by side.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numbers>

#include "chat_prompter.h"
#include "commands.h"
#include "explain_view.h"
#include "interrupt.h"
#include "session.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ExplainOptions {
  CommonOptions common;
  SamplingArguments sampling;
  TemplateArguments chat_template;
  std::optional<std::string> prompt;
  std::string system;
  bool raw = false;
  int alternatives = 5;
};

bool read_options(Arguments arguments, ExplainOptions& options) {
  CommandLine line("explain",
                   "Runs one prompt and shows what prefill and decode do; every figure is measured.");
  options.common.add_to(line);
  line.positional("PROMPT", options.prompt,
                  "The prompt; - or none reads standard input, less a newline at its end");
  line.flag("--raw", options.raw, "Complete the text as it stands, without the chat template");
  line.option("--system", "TEXT", "System prompt", [&](const std::string& text) { options.system = text; });
  line.integer("--alternatives", options.alternatives, 1, kMaxAlternatives,
               "Tokens shown of a distribution; default: 5");
  options.chat_template.add_to(line);
  options.sampling.add_to(line);
  return line.parse(arguments);
}

// Takes in a step. True once prefill has led to its token.
bool take_step(const StepView& view, Explanation& explanation) {
  const StepRecord& record = view.record;
  const bool is_decode = record.num_decode_rows > 0;
  if (!is_decode && record.num_prefill_rows == 0) return false;  // nothing ran: a cancelled request leaves
  (is_decode ? explanation.decode : explanation.prefill).add(record);
  if (view.event == nullptr || view.event->token < 0 || view.event->choice == nullptr) return false;
  if (!is_decode) {
    explanation.first = *view.event->choice;
    return true;
  }
  const TokenId in = explanation.steps.empty() ? explanation.first.id : explanation.steps.back().choice.id;
  explanation.steps.push_back({in, *view.event->choice, record.step_ms, std::string(view.event->text)});
  return false;
}

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

Json choice_to_json(const Tokenizer& tokenizer, const TokenChoice& choice) {
  Json json = cli::to_json(tokenizer, choice);
  json["shaped_logprob"] = choice.shaped_log_probability;
  json["entropy_bits"] = choice.entropy / std::numbers::ln2;
  json["num_kept"] = choice.num_kept;
  return json;
}

Json to_json(const Engine& engine, const Explanation& e) {
  const Tokenizer& tokenizer = engine.checkpoint().tokenizer();
  Json json;
  for (std::size_t n = 0; n < e.prompt.size(); ++n)
    json["prompt"].push_back({{"id", e.prompt[n]},
                              {"text", token_text(tokenizer, e.prompt[n])},
                              {"own", n >= e.own_begin && n < e.own_end}});
  json["sampling"] = {{"temperature", e.sampling.temperature},
                      {"top_p", e.sampling.top_p},
                      {"top_k", e.sampling.top_k},
                      {"min_p", e.sampling.min_p},
                      {"repetition_penalty", e.sampling.repetition_penalty},
                      {"presence_penalty", e.sampling.presence_penalty},
                      {"frequency_penalty", e.sampling.frequency_penalty},
                      {"logit_bias", Json::object()},
                      {"seed", e.sampling.seed}};
  for (const auto& [id, bias] : e.sampling.logit_bias)
    json["sampling"]["logit_bias"][std::to_string(id)] = bias;
  json["machine"] = {{"kernels", engine.info().kernels},
                     {"threads", engine.info().num_threads},
                     {"int8_operations_per_s", e.peaks.int8_operations_per_s},
                     {"float_operations_per_s", e.peaks.float_operations_per_s},
                     {"read_bytes_per_s", e.peaks.read_bytes_per_s}};
  json["prefill"] = to_json(e.prefill, e.peaks);
  if (e.first.id >= 0) json["prefill"]["choice"] = choice_to_json(tokenizer, e.first);
  json["prefill"]["ttft_ms"] = e.reply.figures.ttft_ms;
  json["decode"] = to_json(e.decode, e.peaks);
  json["decode"]["steps"] = Json::array();
  for (const DecodeStep& step : e.steps)
    json["decode"]["steps"].push_back({{"in", step.in},
                                       {"choice", choice_to_json(tokenizer, step.choice)},
                                       {"ms", step.ms},
                                       {"text", step.text}});
  json["stop"] = name(e.reply.stop);
  json["completion_tokens"] = e.reply.figures.completion_tokens;
  json["text"] = e.reply.text;
  return json;
}

}  // namespace

int explain_command(Arguments arguments) {
  ExplainOptions options;
  if (!read_options(arguments, options)) return 0;
  const auto checkpoint = open_model(options.common);
  const ChatPrompter prompter(checkpoint, options.chat_template);
  const PromptForm form = prompter.form(options.raw);
  const std::string text = prompt_text(options.prompt);
  Explanation explanation;
  explanation.prompt = prompter.ids(form, options.system, text);
  explanation.templated = form == PromptForm::chat;
  explanation.has_system = !options.system.empty();
  explanation.sampling = options.sampling.resolve(checkpoint->summary());
  find_own_tokens(checkpoint->tokenizer(), prompter, options.system, text, explanation);

  const auto engine = load_engine(checkpoint, options.common.engine);
  const EngineInfo& info = engine->info();
  ExplainView view(*engine, explanation);
  explanation.peaks = measure_peaks(info.kernels, info.num_threads, info.weights_bytes);

  Request request;
  request.prompt = explanation.prompt;
  request.sampling = explanation.sampling;
  request.stop = options.sampling.stop;
  request.log_probabilities = true;
  request.num_alternatives = std::max(options.alternatives, options.sampling.logprobs.value_or(0));
  request.use_prefix_cache = false;
  bool begun = false, prefilled = false;
  explanation.reply = generate(*engine, std::move(request), [&](const StepView& step) {
    const std::size_t before = explanation.steps.size();
    const bool chosen = take_step(step, explanation);
    explanation.reply.figures = step.figures;
    if (options.common.json) return;
    if (!begun) view.show_prompt();  // not before: a prompt that is refused is not shown
    begun = true;
    if (chosen) view.show_prefill();
    prefilled = prefilled || chosen;
    if (explanation.steps.size() > before) view.show_step(step.reply);
  });
  // Once more: what else ran on the machine before may be gone.
  explanation.peaks =
      better(explanation.peaks, measure_peaks(info.kernels, info.num_threads, info.weights_bytes));
  if (options.common.json) {
    print(dump_line(to_json(*engine, explanation)));
  } else {
    if (!prefilled) view.show_prefill();
    view.show_end();
  }
  flush();
  if (explanation.reply.interrupted) return kInterruptedStatus;
  if (is_failure(explanation.reply.stop))
    throw Error(ErrorKind::resource, "[explain] the reply ended early: " + describe(explanation.reply.stop));
  return 0;
}

}  // namespace couplet::cli
