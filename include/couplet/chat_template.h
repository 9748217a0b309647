#pragma once
// A checkpoint's own Jinja chat template: a conversation in, the prompt's text out, byte for byte as transformers
// renders it. A template comes with a file and is hostile: it is rendered in a worker process with limits on time and
// memory, so that nothing it does can end or stall this one.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace couplet {

struct ChatTemplateTokens {  // the texts that a template may name (bos_token, ...); empty: not defined
  std::string bos{}, eos{}, unknown{}, separator{}, padding{}, classifier{}, mask{};
};

class ChatTemplate {
 public:
  // `tool_use_source` is rendered instead for conversations with tools; empty: there is none.
  ChatTemplate(std::string source, ChatTemplateTokens tokens, std::string tool_use_source = "");
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // `conversation` is a JSON object: {"messages": [...], "tools": [...]?, "documents": [...]?,
  // "add_generation_prompt": bool?, "continue_final_message": bool or a field's name?}; any other key is a variable of
  // the template. Throws Error{template_failed} with the template's own message, or saying which limit it ran into.
  std::string render(std::string_view conversation) const;
  const std::string& source() const;
  const std::string& tool_use_source() const;
  const ChatTemplateTokens& tokens() const;

  // False where the program was built without its template engine (no Rust); render() then throws and says so.
  static bool available();
  // The body of the worker process: serves render requests on standard input until it closes. Exit status.
  static int worker_main();
  // The program and argument that start a worker; default: this program with "template-worker".
  static void set_worker_command(std::string program, std::string argument);
  // What templates see as the time (strftime_now): seconds from 1970-01-01 00:00 on the local clock; none: the real one.
  static void set_clock(std::optional<std::int64_t> local_seconds);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace couplet
