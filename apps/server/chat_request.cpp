#include "server/chat_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "couplet/chat_prompt.h"
#include "server/api_error.h"

namespace couplet::server {
namespace {

constexpr int kMaxTopLogprobs = 20;
constexpr std::size_t kMaxVariables = 64, kMaxVariableBytes = std::size_t{64} << 10;

// Text parts, joined by line breaks as other local servers do.
std::string read_parts(const Json& parts, const std::string& path) {
  if (parts.empty()) refuse_value(path, "a string or a list of at least one part", parts);
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Fields part(parts[i], fmt::format("{}[{}]", path, i));
    const std::string* type = part.text("type");
    if (type == nullptr) refuse_field(part.path("type"), "\"text\"", "nothing");
    if (*type != "text")
      throw ApiError(fmt::format("{}: expected \"text\", got {}: this version reads text alone", part.path("type"), shown(*type)),
                     part.path("type"), "unsupported_parameter");
    const std::string* content = part.text("text");
    if (content == nullptr) refuse_field(part.path("text"), "a string", "nothing");
    if (i > 0) text += '\n';
    text += *content;
  }
  return text;
}

std::string read_role(const Fields& message, const ServedModel& model) {
  const std::string* role = message.text("role");
  const std::string path = message.path("role");
  if (role == nullptr) refuse_field(path, "system, developer, user or assistant", "nothing");
  if (*role == "tool" || *role == "function")
    throw ApiError(fmt::format("{}: {} messages are not supported in this version; expected system, developer, user or assistant", path, *role),
                   path, "unsupported_parameter");
  if (*role != "system" && *role != "developer" && *role != "user" && *role != "assistant")
    refuse_field(path, "system, developer, user or assistant", shown(*role));
  return *role == "developer" && !model.template_knows_developer ? "system" : *role;
}

Json read_message(const Json& value, const std::string& path, const ServedModel& model) {
  const Fields message(value, path);
  Json read = {{"role", read_role(message, model)}};
  for (const char* name : {"tool_calls", "function_call", "audio"}) {
    const Json* asked = message.find(name);
    if (asked != nullptr && !(asked->is_array() && asked->empty()))
      throw ApiError(fmt::format("{}: not supported in this version", message.path(name)), message.path(name), "unsupported_parameter");
  }
  const Json* content = message.find("content");
  const std::string* refusal = message.text("refusal");
  const bool may_be_null = read["role"] == "assistant";
  if (content == nullptr && refusal != nullptr && may_be_null) {
    read["content"] = *refusal;
  } else if (content == nullptr) {
    if (!may_be_null) refuse_field(message.path("content"), "a string or a list of parts", value.contains("content") ? "null" : "nothing");
    read["content"] = nullptr;
  } else if (content->is_string()) {
    read["content"] = *content;
  } else if (content->is_array()) {
    read["content"] = read_parts(*content, message.path("content"));
  } else {
    refuse_value(message.path("content"), "a string or a list of parts", *content);
  }
  for (const char* name : {"name", "reasoning_content", "reasoning", "thinking"})
    if (const std::string* text = message.text(name)) read[name] = *text;
  return read;
}

Json read_messages(const Fields& fields, const ServedModel& model) {
  const Json* messages = fields.array("messages");
  if (messages == nullptr) refuse_field("messages", "a list of at least one message", "nothing");
  if (messages->empty()) refuse_value("messages", "a list of at least one message", *messages);
  Json read = Json::array();
  for (std::size_t i = 0; i < messages->size(); ++i)
    read.push_back(read_message((*messages)[i], fmt::format("messages[{}]", i), model));
  return read;
}

void read_variables(const Fields& fields, Json& conversation) {
  constexpr std::array kOwn = {"messages", "tools", "documents", "add_generation_prompt", "continue_final_message", "chat_template"};
  if (const std::string* effort = fields.text("reasoning_effort")) {
    constexpr std::array<std::string_view, 7> kEfforts = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
    if (std::find(kEfforts.begin(), kEfforts.end(), *effort) == kEfforts.end())
      refuse_field("reasoning_effort", "none, minimal, low, medium, high, xhigh or max", shown(*effort));
    conversation["reasoning_effort"] = *effort;
  }
  const auto variables = fields.object("chat_template_kwargs");
  if (!variables) return;
  if (variables->json().size() > kMaxVariables)
    refuse_field("chat_template_kwargs", fmt::format("at most {} variables", kMaxVariables), std::to_string(variables->json().size()));
  const std::size_t bytes = dump(variables->json()).size();
  if (bytes > kMaxVariableBytes)
    refuse_field("chat_template_kwargs", fmt::format("at most {} bytes", kMaxVariableBytes), fmt::format("{} bytes", bytes));
  for (const auto& [name, value] : variables->json().items()) {
    if (std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end())
      refuse_field("chat_template_kwargs", "variables of the template", fmt::format("{}, which has a place of its own", name));
    conversation[name] = value;
  }
}

template <typename Render>
auto through_template(const ServedModel& model, Render render) {
  if (!model.has_template)
    throw ApiError("messages: this model has no chat template, it can only complete text: expected a request to /v1/completions",
                   "messages", "no_chat_template");
  try {
    return render();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::template_failed) throw;
    throw ApiError(error.what(), "messages", "template_failed");
  }
}

void read_logprobs(const Fields& fields, SharedFields& shared) {
  shared.reply.logprobs = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, kMaxTopLogprobs);
  if (top.value_or(0) > 0 && !shared.reply.logprobs)
    refuse_field("top_logprobs", "logprobs to be true with it", "a number of alternatives alone");
  shared.reply.num_alternatives = static_cast<int>(top.value_or(0));
}

}  // namespace

Json read_conversation(const Fields& fields, const ServedModel& model) {
  Json conversation = {{"messages", read_messages(fields, model)}};
  const bool continues = fields.boolean("continue_final_message").value_or(false);
  const bool opens = fields.boolean("add_generation_prompt").value_or(!continues);
  if (continues && opens)
    refuse_field("add_generation_prompt", "false beside continue_final_message", "true");
  conversation["add_generation_prompt"] = opens;
  if (continues) conversation["continue_final_message"] = true;
  read_variables(fields, conversation);
  return conversation;
}

std::vector<TokenId> conversation_ids(const Json& conversation, const ServedModel& model) {
  return through_template(model, [&] { return chat_prompt(model.checkpoint, dump(conversation)); });
}

std::string conversation_text(const Json& conversation, const ServedModel& model) {
  return through_template(model, [&] { return model.checkpoint.chat_template()->render(dump(conversation)); });
}

GenerationPlan read_chat_request(const Json& body, const ServedModel& model) {
  const Fields fields(body);
  SharedFields shared = read_shared_fields(fields, model, -1);
  if (fields.boolean("echo").value_or(false))
    throw ApiError("echo: not supported for chat completions; expected null or false, got true", "echo", "unsupported_parameter");
  read_logprobs(fields, shared);
  std::vector<Prompt> prompts(1);
  prompts[0].ids = conversation_ids(read_conversation(fields, model), model);
  return make_plan(std::move(shared), std::move(prompts), model, "messages");
}

}  // namespace couplet::server
