// couplet explain: the two stages made visible, step by step and side by side.

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "chat_prompter.h"
#include "commands.h"
#include "explain_json.h"
#include "explain_page.h"
#include "explain_view.h"
#include "interrupt.h"
#include "output_file.h"
#include "session.h"
#include "terminal.h"
#include "token_chooser.h"

namespace couplet::cli {
namespace {

struct ExplainOptions {
  CommonOptions common;
  SamplingArguments sampling;
  TemplateArguments chat_template;
  std::optional<std::string> prompt;
  std::string system;
  bool raw = false;
  int alternatives = 5;
  bool choose = false;
  std::optional<std::pair<int, TokenId>> what_if;
  OutputFile html{"--html", ""}, trace{"--trace", ""};
  bool force = false;
};

// "3=1234".
std::pair<int, TokenId> parse_what_if(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos)
    throw Error(ErrorKind::usage, fmt::format("[options] --what-if: expected N=ID, a step and a token id, got \"{}\"", visible(text)));
  return {static_cast<int>(parse_integer("--what-if N", text.substr(0, equals), 0, INT_MAX)),
          static_cast<TokenId>(parse_integer("--what-if ID", text.substr(equals + 1), 0, INT_MAX))};
}

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
  line.flag("--choose", options.choose,
            "Pick each next token on standard input: the number of a candidate, #ID, or nothing for the engine's");
  line.option("--what-if", "N=ID", "Then again, with the token ID in step N (0: prefill's), beside the first reply",
              [&](const std::string& text) { options.what_if = parse_what_if(text); });
  options.html.add_to(line, "Write it as one page for a browser, too");
  options.trace.add_to(line, "Write a trace that ui.perfetto.dev opens, too");
  add_force(line, options.force);
  options.chat_template.add_to(line);
  options.sampling.add_to(line);
  return line.parse(arguments);
}

void check_combination(const ExplainOptions& options, const Checkpoint& checkpoint) {
  const auto refuse = [](const std::string& why) { throw Error(ErrorKind::usage, "[options] " + why); };
  if (options.choose && (!options.prompt || *options.prompt == "-"))
    refuse("--choose: expected PROMPT as an argument, as the choices come on standard input");
  if (options.choose && options.common.json && ::isatty(STDIN_FILENO) == 1)
    refuse("--choose: expected no --json, which has no room for questions, or the choices from a pipe");
  const int vocab_size = checkpoint.summary().vocab_size;
  if (options.what_if && options.what_if->second >= vocab_size)
    refuse(fmt::format("--what-if ID: expected a token id from 0 to {}, got {}", vocab_size - 1, options.what_if->second));
  options.html.check(options.force);
  options.trace.check(options.force);
  if (options.html.wanted() && options.html.path == options.trace.path) refuse("--html and --trace: expected two files");
}

MachinePeaks measure(const EngineInfo& info) { return measure_peaks(info.kernels, info.num_threads, info.weights_bytes); }

class Explainer {
 public:
  Explainer(Engine& engine, const ExplainOptions& options, Explanation& explanation)
      : engine_(&engine),
        options_(&options),
        explanation_(&explanation),
        view_(engine, explanation),
        chooser_(engine.checkpoint().tokenizer(), engine.checkpoint().summary().vocab_size,
                 options.common.json ? std::function<void(const TokenChoice&)>() : [this](const TokenChoice& choice) {
                   begin();
                   view_.show_candidates(choice);
                 }) {
    if (options.trace.wanted())
      trace_ = std::make_unique<story::TraceWriter>(options.trace.path, engine, explanation.peaks);
  }

  void run() {
    ExplainedRun& run = explanation_->run;
    bool prefilled = false;
    Request asked = request();
    if (options_->choose) asked.on_choice = [this](const TokenChoice& choice) { return choose(choice); };
    run.reply = generate(*engine_, std::move(asked), [&](const StepView& step) {
      if (failure_) std::rethrow_exception(failure_);
      if (!chooser_.problem().empty()) throw Error(ErrorKind::usage, chooser_.problem());
      const std::size_t before = run.steps.size();
      const bool chosen = run.take(step);
      if (chosen) run.reply.figures.ttft_ms -= chooser_.waited_ms();
      ttft_ms_ = chosen ? run.reply.figures.ttft_ms : ttft_ms_;
      if (options_->common.json) return;
      begin();
      if (chosen) view_.show_prefill();
      prefilled = prefilled || chosen;
      if (run.steps.size() > before) view_.show_step(step.reply);
    }, trace_.get());
    run.reply.figures.ttft_ms = ttft_ms_;
    if (!options_->common.json && !prefilled) view_.show_prefill();
  }

  void run_what_if() {
    if (!options_->what_if || explanation_->run.reply.interrupted) return;
    const auto [step, id] = *options_->what_if;
    const ExplainedRun& before = explanation_->run;
    if (step >= before.num_choices()) {
      problem_ = fmt::format("[explain] --what-if: expected a step of the reply, which has {}, got {}",
                             before.num_choices() == 0 ? "none" : fmt::format("0 to {}", before.num_choices() - 1), step);
      return;
    }
    explanation_->what_if = WhatIf{step, id, {}};
    ExplainedRun& run = explanation_->what_if->run;
    Request again = request();
    for (int n = 0; n < step; ++n) again.forced.push_back(before.choice(n).id);
    again.forced.push_back(id);
    run.reply = generate(*engine_, std::move(again), [&](const StepView& view) { run.take(view); }, trace_.get());
  }

  void show_rest() {
    if (options_->common.json) return print(dump_line(to_json(*engine_, *explanation_)));
    view_.show_end();
    if (explanation_->what_if) view_.show_what_if();
  }

  // What was asked beside the run and could not be done.
  void check() const {
    if (!problem_.empty()) throw Error(ErrorKind::usage, problem_);
    if (trace_ && !trace_->problem().empty()) throw Error(ErrorKind::io, trace_->problem());
  }

 private:
  Request request() const {
    Request request;
    request.prompt = explanation_->prompt;
    request.sampling = explanation_->sampling;
    request.stop = options_->sampling.stop;
    request.log_probabilities = true;
    request.num_alternatives = std::max(options_->alternatives, options_->sampling.logprobs.value_or(0));
    return request;
  }

  // Not before the engine took it: a prompt that is refused is not shown.
  void begin() {
    if (!begun_) view_.show_prompt();
    begun_ = true;
  }

  // Within step(), which nothing may be thrown through.
  TokenId choose(const TokenChoice& choice) {
    try {
      return failure_ ? -1 : chooser_.choose(choice);
    } catch (...) {
      failure_ = std::current_exception();
      return -1;
    }
  }

  Engine* engine_;
  const ExplainOptions* options_;
  Explanation* explanation_;
  ExplainView view_;
  TokenChooser chooser_;
  std::unique_ptr<story::TraceWriter> trace_;
  std::exception_ptr failure_;
  std::string problem_;
  bool begun_ = false;
  double ttft_ms_ = 0;
};

}  // namespace

int explain_command(Arguments arguments) {
  ExplainOptions options;
  if (!read_options(arguments, options)) return 0;
  const auto checkpoint = open_model(options.common);
  check_combination(options, *checkpoint);
  const ChatPrompter prompter(checkpoint, options.chat_template);
  const PromptForm form = prompter.form(options.raw);
  const std::string text = prompt_text(options.prompt);
  Explanation explanation;
  explanation.prompt = prompter.ids(form, options.system, text);
  explanation.templated = form == PromptForm::chat;
  explanation.has_system = !options.system.empty();
  explanation.chosen_by_user = options.choose;
  explanation.sampling = options.sampling.resolve(checkpoint->summary());
  find_own_tokens(checkpoint->tokenizer(), prompter, options.system, text, explanation);

  const auto engine = load_engine(checkpoint, options.common.engine);
  explanation.peaks = measure(engine->info());
  Explainer explainer(*engine, options, explanation);
  explainer.run();
  explainer.run_what_if();
  // Once more: what else ran on the machine before may be gone.
  explanation.peaks = story::better(explanation.peaks, measure(engine->info()));
  explainer.show_rest();
  flush();
  if (options.html.wanted()) write_page(options.html.path, *engine, explanation);
  explainer.check();
  if (explanation.run.reply.interrupted) return kInterruptedStatus;
  if (is_failure(explanation.run.reply.stop))
    throw Error(ErrorKind::resource, "[explain] the reply ended early: " + describe(explanation.run.reply.stop));
  return 0;
}

}  // namespace couplet::cli
