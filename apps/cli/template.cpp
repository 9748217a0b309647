// couplet template: conversations through the chat template, a line each.

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
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
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorKind::not_found, fmt::format("[template] {}: {}", path, std::strerror(errno)));
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad() || text.size() > kMaxBytes)
    throw Error(ErrorKind::io, fmt::format("[template] {}: expected a file of at most 16 MiB", path));
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
              [&](const std::string& text) { template_file = text; });
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
    const std::string conversation =
        at_line("template", reader.number(), [&] { return parse_conversation_line(text); });
    try {
      print(dump_line({{"text", chat_template->render(conversation)}}));
    } catch (const Error& error) {
      print(dump_line({{"error", error.what()}}));
    }
    flush();  // a program may wait for each answer
  }
  return 0;
}

}  // namespace couplet::cli
