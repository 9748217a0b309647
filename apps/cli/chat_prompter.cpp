#include "chat_prompter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "couplet/chat_prompt.h"
#include "couplet/error.h"
#include "json_lines.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string read_template(const std::string& path) {
  constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
  const auto refuse = [&](ErrorKind kind, const std::string& why) {
    throw Error(kind, fmt::format("[template] {}: {}", path, why));
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(ErrorKind::not_found, std::strerror(errno));
  std::string text(kMaxBytes + 1, '\0');
  errno = 0;
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) refuse(ErrorKind::io, std::strerror(errno != 0 ? errno : EIO));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxBytes) refuse(ErrorKind::io, "expected a file of at most 16 MiB, got more");
  return text;
}

// The tokens that the checkpoint's own template may name; without one, those that the tokenizer knows.
ChatTemplateTokens token_texts(const Checkpoint& checkpoint) {
  if (checkpoint.chat_template() != nullptr) return checkpoint.chat_template()->tokens();
  const Tokenizer& tokenizer = checkpoint.tokenizer();
  const auto text = [&](TokenId id) { return id < 0 ? std::string() : tokenizer.bytes(id, true); };
  ChatTemplateTokens tokens;
  tokens.bos = text(tokenizer.bos_id());
  tokens.eos = text(tokenizer.eos_id());
  tokens.unknown = text(tokenizer.unknown_id());
  return tokens;
}

std::pair<std::string, std::string> parse_variable(const std::string& text) {
  constexpr std::array kOwn = {"messages", "add_generation_prompt", "continue_final_message"};
  require_utf8("--template-arg", text);
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(ErrorKind::usage, fmt::format("[options] --template-arg: expected NAME=VALUE, got \"{}\"", text));
  const std::string name = text.substr(0, equals);
  if (std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end())
    throw Error(ErrorKind::usage,
                fmt::format("[options] --template-arg: expected a variable of the template, got {}, which the "
                            "conversation sets",
                            name));
  return {name, json_or_text(std::string_view(text).substr(equals + 1))};
}

// "2026-07-26" or "2026-07-26 13:45:00" as seconds of the local clock.
std::int64_t parse_time(const std::string& text) {
  int year = 0, hour = 0, minute = 0, second = 0, size = 0, all = 0;
  unsigned month = 0, day = 0;
  const int count = std::sscanf(text.c_str(), "%4d-%2u-%2u%n %2d:%2d:%2d%n", &year, &month, &day, &size, &hour, &minute,
                                &second, &all);
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  const bool complete = (count == 3 && static_cast<std::size_t>(size) == text.size()) ||
                        (count == 6 && static_cast<std::size_t>(all) == text.size());
  const auto within = [](int value, int end) { return value >= 0 && value < end; };
  if (!complete || year < 1 || !date.ok() || !within(hour, 24) || !within(minute, 60) || !within(second, 60))
    throw Error(ErrorKind::usage,
                fmt::format("[options] --template-date: expected YYYY-MM-DD or \"YYYY-MM-DD HH:MM:SS\", got \"{}\"", text));
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + hour) * 60 + minute) * 60 + second;
}

}  // namespace

void TemplateArguments::add_to(CommandLine& line) {
  line.option("--template", "FILE", "A Jinja template instead of the model's own", [this](const std::string& text) {
    if (text.empty()) throw Error(ErrorKind::usage, "[options] --template: expected a file, got \"\"");
    file = text;
  });
  line.option(
      "--template-arg", "NAME=VALUE",
      "A variable of the template, such as enable_thinking=false; the value is JSON or else text (may be repeated)",
      [this](const std::string& text) {
        auto variable = parse_variable(text);
        for (const auto& [name, value] : variables) {
          if (name == variable.first)
            throw Error(ErrorKind::usage, fmt::format("[options] --template-arg: expected each name once, got {} twice", name));
        }
        variables.push_back(std::move(variable));
      },
      true);
  line.option("--template-date", "DATE", "The local time that the template sees, \"YYYY-MM-DD HH:MM:SS\"; default: now",
              [](const std::string& text) { ChatTemplate::set_clock(parse_time(text)); });
}

ChatPrompter::ChatPrompter(std::shared_ptr<const Checkpoint> checkpoint, const TemplateArguments& arguments)
    : checkpoint_(std::move(checkpoint)), variables_(arguments.variables) {
  if (!arguments.file.empty())
    given_ = std::make_unique<ChatTemplate>(read_template(arguments.file), token_texts(*checkpoint_));
}

const ChatTemplate* ChatPrompter::chat_template() const {
  return given_ ? given_.get() : checkpoint_->chat_template();
}

PromptForm ChatPrompter::form(bool raw) const {
  if (raw) return PromptForm::raw;
  if (chat_template() != nullptr) return PromptForm::chat;
  note("this model has no chat template: the text is completed as it stands");
  return PromptForm::raw;
}

std::string ChatPrompter::with_variables(Json conversation) const {
  for (const auto& [name, value] : variables_) {
    if (!conversation.contains(name)) conversation[name] = Json::parse(value);
  }
  return conversation.dump();
}

std::string ChatPrompter::one_turn(std::string_view system, std::string_view prompt) const {
  Json conversation = {{"messages", Json::array()}, {"add_generation_prompt", true}};
  if (!system.empty()) conversation["messages"].push_back({{"role", "system"}, {"content", system}});
  conversation["messages"].push_back({{"role", "user"}, {"content", prompt}});
  return with_variables(std::move(conversation));
}

std::vector<TokenId> ChatPrompter::chat_ids(const std::string& conversation) const {
  return chat_prompt(checkpoint_->tokenizer(), *chat_template(), conversation);
}

std::vector<TokenId> ChatPrompter::ids(PromptForm form, std::string_view system, std::string_view prompt) const {
  if (form == PromptForm::chat) return chat_ids(one_turn(system, prompt));
  if (!system.empty())
    throw Error(ErrorKind::usage,
                "[options] --system: expected a model with a chat template and no --raw, "
                "got a text completed as it stands");
  std::vector<TokenId> ids = checkpoint_->tokenizer().tokenize(prompt, {.bos = true});
  if (ids.empty()) throw Error(ErrorKind::usage, "[options] PROMPT: expected some text, got none");
  return ids;
}

}  // namespace couplet::cli
