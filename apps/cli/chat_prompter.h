#pragma once
// From what the user said to the prompt's token ids, as run, chat, explain and template make them: through the
// checkpoint's chat template or the one of --template, with the variables of --template-arg.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "couplet/checkpoint.h"
#include "options.h"

namespace couplet::cli {

// The options that choose the template and what it sees.
struct TemplateArguments {
  std::string file;                                             // empty: the checkpoint's own template
  std::vector<std::pair<std::string, std::string>> variables;  // name, value as JSON text

  void add_to(CommandLine& line);
};

// How a prompt is put to the model.
enum class PromptForm { chat, raw };

class ChatPrompter {
 public:
  ChatPrompter(std::shared_ptr<const Checkpoint> checkpoint, const TemplateArguments& arguments);

  const ChatTemplate* chat_template() const;  // null: there is none
  // Chat, unless `raw` was asked for or there is no template, which is noted.
  PromptForm form(bool raw) const;

  // `conversation` (an object with messages) as JSON text, with the variables that it does not set itself.
  std::string with_variables(nlohmann::ordered_json conversation) const;
  // A conversation of one turn.
  std::string one_turn(std::string_view system, std::string_view prompt) const;

  // Token ids. Throws Error{usage} where nothing is left to run: an empty raw text on a model without BOS.
  std::vector<TokenId> chat_ids(const std::string& conversation) const;
  std::vector<TokenId> ids(PromptForm form, std::string_view system, std::string_view prompt) const;

 private:
  std::shared_ptr<const Checkpoint> checkpoint_;
  std::unique_ptr<ChatTemplate> given_;
  std::vector<std::pair<std::string, std::string>> variables_;
};

}  // namespace couplet::cli
