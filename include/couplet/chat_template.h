#pragma once
// A checkpoint's own Jinja chat template: a conversation in, the prompt's text out, byte for byte as transformers
// renders it. A template comes with a file and is hostile: it is rendered in a worker process with limits on time and
// memory, so that nothing it does can end or stall this one.

#include <memory>
#include <string>
#include <string_view>

namespace couplet {

struct ChatTemplateTokens {  // the texts that a template may name; empty: not defined
  std::string bos, eos, unknown, padding;
};

class ChatTemplate {
 public:
  ChatTemplate(std::string source, ChatTemplateTokens tokens);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // `conversation` is a JSON object: {"messages": [...], "tools": [...]?, "add_generation_prompt": bool?}.
  // Throws Error{template_failed} with the template's own message, or saying which limit it ran into.
  std::string render(std::string_view conversation) const;
  const std::string& source() const;

  // False where the program was built without its template engine (no Rust); render() then throws and says so.
  static bool available();
  // The body of the worker process: serves render requests on standard input until it closes. Exit status.
  static int worker_main();
  // The program and argument that start a worker; default: this program with "template-worker".
  static void set_worker_command(std::string program, std::string argument);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace couplet
