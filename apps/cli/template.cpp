// couplet template: conversations through the chat template, a line each.

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "couplet/chat_template.h"
#include "generate.h"
#include "json_lines.h"
#include "session.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

std::string read_file(const std::string& path) {
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

ChatTemplateTokens token_texts(const Tokenizer& tokenizer) {
  const auto text = [&](TokenId id) { return id < 0 ? std::string() : tokenizer.bytes(id, true); };
  return {text(tokenizer.bos_id()), text(tokenizer.eos_id()), text(tokenizer.unknown_id()), ""};
}

}  // namespace

int template_command(Arguments arguments) {
  CommandLine line(
      "template",
      "Renders conversations: lines {\"messages\", \"tools\", \"add_generation_prompt\"} in, {\"text\"} or "
      "{\"error\"} out.");
  CommonOptions common;
  std::optional<std::string> file;
  std::string template_file;
  common.add_to(line);
  line.positional("FILE", file, "JSON lines; - or none reads standard input");
  line.option("--template", "FILE", "A Jinja template instead of the model's own",
              [&](const std::string& text) {
                if (text.empty())
                  throw Error(ErrorKind::usage, "[options] --template: expected a file, got \"\"");
                template_file = text;
              });
  if (!line.parse(arguments)) return 0;

  const auto checkpoint = open_checkpoint(common);
  if (!ChatTemplate::available())
    throw Error(ErrorKind::unsupported,
                "[template] this build has no template engine: it was made without Rust (cargo)");
  std::unique_ptr<ChatTemplate> given;
  if (!template_file.empty())
    given = std::make_unique<ChatTemplate>(read_file(template_file), token_texts(checkpoint->tokenizer()));
  const ChatTemplate* chat_template = given ? given.get() : checkpoint->chat_template();
  if (chat_template == nullptr)
    throw Error(ErrorKind::template_failed,
                "[template] this model has no chat template; --template FILE brings one");

  LineReader reader(file.value_or("-"));
  for (std::string text; reader.next(text);) {
    try {
      const std::string conversation =
          at_line("template", reader.number(), [&] { return parse_conversation_line(text); });
      print(dump_line({{"text", chat_template->render(conversation)}}));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::template_failed) throw;
      print(dump_line({{"error", error.what()}}));
    }
    flush();  // a program may wait for each answer
  }
  return 0;
}

}  // namespace couplet::cli
