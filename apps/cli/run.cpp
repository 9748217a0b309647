// couplet run: one prompt, the reply streamed as it grows.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "chat_prompter.h"
#include "commands.h"
#include "generate.h"
#include "interrupt.h"
#include "output_file.h"
#include "session.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

using Json = nlohmann::ordered_json;

struct RunOptions {
  CommonOptions common;
  SamplingArguments sampling;
  TemplateArguments chat_template;
  std::optional<std::string> prompt;
  std::string system;
  bool raw = false;
  bool steps = false;
  OutputFile trace{"--trace", ""};
  bool force = false;
};

bool read_options(Arguments arguments, RunOptions& options) {
  CommandLine line("run", "Runs one prompt and prints the reply as it grows; figures go to stderr.");
  options.common.add_to(line);
  line.positional("PROMPT", options.prompt,
                  "The prompt; - or none reads standard input, less a newline at its end");
  line.flag("--raw", options.raw, "Complete the text as it stands, without the chat template");
  line.option("--system", "TEXT", "System prompt", [&](const std::string& text) { options.system = text; });
  line.flag("--steps", options.steps, "Print the reply so far after every decode step");
  options.trace.add_to(line, "Write a trace that ui.perfetto.dev opens");
  add_force(line, options.force);
  options.chat_template.add_to(line);
  options.sampling.add_to(line);
  return line.parse(arguments);
}

void check_combination(const RunOptions& options) {
  if (options.common.json && options.steps)
    throw Error(ErrorKind::usage, "[options] --steps: expected no --json, which answers once, at the end");
  if (options.sampling.logprobs && options.common.quiet && !options.common.json)
    throw Error(ErrorKind::usage,
                "[options] --logprobs: expected --json or no --quiet: its table goes to standard error");
  options.trace.check(options.force);
}

// The table of --logprobs, on standard error: text alone goes to standard output.
void note_logprobs(const Tokenizer& tokenizer, const std::vector<TokenChoice>& choices) {
  for (const TokenChoice& choice : choices) {
    std::string row = fmt::format("{:>8}  {} {:>9.4f} ", choice.id,
                                  fit(visible(token_text(tokenizer, choice.id)), 16), choice.log_probability);
    for (const Alternative& other : choice.alternatives)
      row += fmt::format("  {} {:.4f}", visible(token_text(tokenizer, other.id)), other.log_probability);
    note(row);
  }
}

Json answer(const Tokenizer& tokenizer, const Reply& reply, const SamplingOptions& sampling,
            const std::optional<std::vector<TokenChoice>>& choices) {
  Json json = {{"text", reply.text},
               {"stop", name(reply.stop)},
               {"prompt_tokens", reply.figures.prompt_tokens},
               {"cached_tokens", reply.figures.cached_tokens},
               {"completion_tokens", reply.figures.completion_tokens},
               {"temperature", story::shortest(sampling.temperature)}};
  if (sampling.temperature > 0) json["seed"] = sampling.seed;
  json["figures"] = to_json(reply.figures);
  if (!choices) return json;
  json["tokens"] = Json::array();
  for (const TokenChoice& choice : *choices) json["tokens"].push_back(to_json(tokenizer, choice));
  return json;
}

// What is shown while the reply grows.
void show_step(const RunOptions& options, const StepView& step) {
  if (options.common.json || step.event == nullptr) return;
  if (options.steps) {
    if (step.event->token >= 0 || !step.event->text.empty()) print(visible(step.reply) + "\n");
  } else {
    print(output_is_terminal() ? harmless(step.event->text) : std::string(step.event->text));
  }
  flush();
}

}  // namespace

int run_command(Arguments arguments) {
  RunOptions options;
  if (!read_options(arguments, options)) return 0;
  check_combination(options);
  const auto checkpoint = open_model(options.common);
  const Tokenizer& tokenizer = checkpoint->tokenizer();
  const ChatPrompter prompter(checkpoint, options.chat_template);
  const PromptForm form = prompter.form(options.raw);
  Request request;
  request.prompt = prompter.ids(form, options.system, prompt_text(options.prompt));
  request.sampling = options.sampling.resolve(checkpoint->summary());
  request.stop = options.sampling.stop;
  request.log_probabilities = options.sampling.logprobs.has_value();
  request.num_alternatives = options.sampling.logprobs.value_or(0);
  const SamplingOptions sampling = request.sampling;

  const auto engine = load_engine(checkpoint, options.common.engine);
  std::unique_ptr<story::TraceWriter> trace;
  if (options.trace.wanted()) trace = std::make_unique<story::TraceWriter>(options.trace.path, *engine);
  std::optional<std::vector<TokenChoice>> choices;
  if (options.sampling.logprobs) choices.emplace();
  const Reply reply = generate(*engine, std::move(request), [&](const StepView& step) {
    if (choices && step.event != nullptr && step.event->choice != nullptr && step.event->token >= 0)
      choices->push_back(*step.event->choice);
    show_step(options, step);
  }, trace.get());
  if (options.common.json) {
    print(dump_line(answer(tokenizer, reply, sampling, choices)));
  } else if (!options.steps) {
    print("\n");
  }
  flush();
  if (choices && !options.common.json) note_logprobs(tokenizer, *choices);
  note(figures_line(reply));
  if (options.sampling.seed_was_drawn(sampling)) note(fmt::format("seed {}", sampling.seed));
  if (trace && !trace->problem().empty()) throw Error(ErrorKind::io, trace->problem());
  if (reply.interrupted) return kInterruptedStatus;
  if (is_failure(reply.stop))
    throw Error(ErrorKind::resource, "[run] the reply ended early: " + describe(reply.stop));
  return 0;
}

}  // namespace couplet::cli
