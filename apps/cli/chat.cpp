// couplet chat: a conversation. The whole of it is the prompt of each turn; what the prefix cache knows is
// not computed again.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "chat_prompter.h"
#include "commands.h"
#include "generate.h"
#include "interrupt.h"
#include "line_editor.h"
#include "session.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ChatOptions {
  CommonOptions common;
  SamplingArguments sampling;
  TemplateArguments chat_template;
  std::string system;
};

bool read_options(Arguments arguments, ChatOptions& options) {
  CommandLine line(
      "chat", "A conversation. /help lists its commands; Ctrl-C stops a reply, Ctrl-D ends the program.");
  options.common.add_to(line);
  line.option("--system", "TEXT", "System prompt", [&](const std::string& text) { options.system = text; });
  options.chat_template.add_to(line);
  options.sampling.add_to(line);
  if (!line.parse(arguments)) return false;
  if (options.sampling.logprobs)
    throw Error(ErrorKind::usage, "[options] --logprobs: expected run or explain, got chat, which shows text alone");
  return true;
}

class Conversation {
 public:
  Conversation(Engine& engine, const ChatPrompter& prompter, const ChatOptions& options)
      : engine_(&engine),
        prompter_(&prompter),
        options_(&options),
        sampling_(options.sampling.resolve(engine.checkpoint().summary())) {
    clear();
  }

  void clear() {
    messages_ = Json::array();
    if (!options_->system.empty()) add("system", options_->system);
  }

  const SamplingOptions& sampling() const { return sampling_; }

  // One turn. What the user said stays in the conversation only if the model could answer.
  void say(const std::string& text) {
    const InterruptShield shield;
    const InterruptScope turn;
    add("user", text);
    Request request;
    request.sampling = sampling_;
    request.stop = options_->sampling.stop;
    try {
      request.prompt = prompter_->chat_ids(
          prompter_->with_variables({{"messages", messages_}, {"add_generation_prompt", true}}));
      check_room(request.prompt.size());
      add("assistant", reply(std::move(request)));
    } catch (const Error& error) {
      messages_.erase(messages_.size() - 1);
      if (error.kind() == ErrorKind::io) throw;  // the answer can't be written
      refuse(error.what());
    }
  }

  // Each turn has its answer, one that was refused too.
  void refuse(std::string_view why) const {
    show_error(visible(why));
    if (!options_->common.json) return;
    print(dump_line({{"error", why}}));
    flush();
  }

 private:
  void add(std::string_view role, std::string_view text) {
    messages_.push_back({{"role", role}, {"content", text}});
  }

  void check_room(std::size_t prompt_size) const {
    const auto context = static_cast<std::size_t>(engine_->info().context);
    if (prompt_size < context) return;
    throw Error(ErrorKind::resource,
                fmt::format("the context is full: the conversation has {} tokens, the context holds "
                            "{}; /clear begins a new one",
                            grouped(prompt_size), grouped(context)));
  }

  std::string reply(Request request) {
    const bool json = options_->common.json;
    const Reply reply = generate(*engine_, std::move(request), [&](const StepView& step) {
      if (json || step.event == nullptr) return;
      print(output_is_terminal() ? harmless(step.event->text) : std::string(step.event->text));
      flush();
    });
    if (json && !is_failure(reply.stop)) {
      print(
          dump_line({{"text", reply.text}, {"stop", name(reply.stop)}, {"figures", to_json(reply.figures)}}));
    } else if (!json) {
      print("\n");
    }
    flush();
    note(figures_line(reply));
    if (is_failure(reply.stop))
      throw Error(ErrorKind::resource, "the reply ended early: " + describe(reply.stop));
    if (reply.stop == StopReason::context_full)
      note("the context is full: the next turn will not fit; /clear begins a new one");
    return reply.text;
  }

  Engine* engine_;
  const ChatPrompter* prompter_;
  const ChatOptions* options_;
  SamplingOptions sampling_;
  Json messages_;
};

constexpr std::string_view kHelp =
    "/clear   begin a new conversation\n"
    "/help    this list\n"
    "/quit    end (so does Ctrl-D)\n"
    "//text  say /text to the model\n"
    "Ctrl-C stops a reply; arrow keys edit the line and bring back earlier ones.";

// "/word" and nothing else: what a mistyped command looks like. "/etc/hosts" and "/a b" are text.
bool looks_like_command(std::string_view line) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return line.size() > 1 && line[0] == '/' && std::all_of(line.begin() + 1, line.end(), is_letter);
}

// False: the conversation ends.
bool take_line(Conversation& conversation, const std::string& line) {
  const std::string_view word = std::string_view(line).substr(0, line.find_last_not_of(" \t\r") + 1);
  if (word.empty()) return true;
  if (word == "/quit") return false;
  if (word == "/clear") {
    conversation.clear();
  } else if (word == "/help") {
    show_error(kHelp);
  } else if (looks_like_command(word)) {
    conversation.refuse(fmt::format("unknown command {}; /help lists them, /{} says it to the model", word, word));
  } else if (find_invalid_utf8(line) != std::string::npos) {
    conversation.refuse("expected UTF-8, got other bytes");
  } else {
    conversation.say(line.starts_with("//") ? line.substr(1) : line);
  }
  return true;
}

}  // namespace

int chat_command(Arguments arguments) {
  ChatOptions options;
  if (!read_options(arguments, options)) return 0;
  const auto checkpoint = open_model(options.common);
  const ChatPrompter prompter(checkpoint, options.chat_template);
  if (prompter.chat_template() == nullptr)
    throw Error(ErrorKind::template_failed,
                "[chat] this model has no chat template, so it knows no turns: couplet run completes raw "
                "text with it, --template FILE brings a template");
  const auto engine = load_engine(checkpoint, options.common.engine);
  Conversation conversation(*engine, prompter, options);
  if (options.sampling.seed_was_drawn(conversation.sampling()))
    note(fmt::format("seed {}", conversation.sampling().seed));
  // From a pipe only a reply is shielded: waiting for the next line must have an end.
  std::optional<InterruptShield> shield;
  if (::isatty(STDIN_FILENO) == 1) shield.emplace();
  LineEditor editor("> ");
  while (const std::optional<std::string> line = editor.next()) {
    if (!take_line(conversation, *line)) break;
  }
  return 0;
}

}  // namespace couplet::cli
