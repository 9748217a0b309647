// couplet template: conversations through the chat template, a line each.

#include <nlohmann/json.hpp>

#include "chat_prompter.h"
#include "commands.h"
#include "couplet/chat_template.h"
#include "generate.h"
#include "json_lines.h"
#include "session.h"
#include "terminal.h"

namespace couplet::cli {

int template_command(Arguments arguments) {
  CommandLine line(
      "template",
      "Renders conversations: lines {\"messages\", \"tools\", \"documents\", \"add_generation_prompt\", "
      "\"continue_final_message\", \"chat_template_kwargs\"} in, {\"text\"} or {\"error\"} out.");
  CommonOptions common;
  TemplateArguments chosen;
  std::optional<std::string> file;
  common.add_to(line);
  line.positional("FILE", file, "JSON lines; - or none reads standard input");
  chosen.add_to(line);
  if (!line.parse(arguments)) return 0;

  const auto checkpoint = open_checkpoint(common);
  if (!ChatTemplate::available())
    throw Error(ErrorKind::unsupported,
                "[template] this build has no template engine: it was made without Rust (cargo)");
  const ChatPrompter prompter(checkpoint, chosen);
  const ChatTemplate* chat_template = prompter.chat_template();
  if (chat_template == nullptr)
    throw Error(ErrorKind::template_failed,
                "[template] this model has no chat template; --template FILE brings one");

  LineReader reader(file.value_or("-"));
  for (std::string text; reader.next(text);) {
    try {
      const std::string conversation = at_line(
          "template", reader.number(), [&] { return prompter.with_variables(parse_conversation_line(text)); });
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
