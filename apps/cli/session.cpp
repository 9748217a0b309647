#include "session.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "catalogue.h"
#include "couplet/chat_prompt.h"
#include "terminal.h"

namespace couplet::cli {

namespace {

void note_packed_copy(const PackedCopy& copy) {
  if (copy.state == PackedCopyState::written)
    note(fmt::format("kept a packed copy for the next starts, {}: {} (COUPLET_PACKED=off keeps none)", amount(copy.bytes),
                     visible(copy.path)));
  if (copy.state == PackedCopyState::failed)
    note(fmt::format(
        "weights are packed anew at each start, no copy could be kept: {} (COUPLET_PACKED names another folder, or off)",
        visible(copy.problem)));
}

}  // namespace

std::shared_ptr<const Checkpoint> open_checkpoint(const CommonOptions& options) {
  if (options.quiet) set_quiet();
  return Checkpoint::open(resolve_model(options.model), options.open);
}

std::shared_ptr<const Checkpoint> open_model(const CommonOptions& options) {
  auto checkpoint = open_checkpoint(options);
  if (const std::string& lack = checkpoint->summary().lacks_weights; !lack.empty()) throw Error(ErrorKind::not_found, lack);
  return checkpoint;
}

std::unique_ptr<Engine> load_engine(std::shared_ptr<const Checkpoint> checkpoint,
                                    const EngineOptions& options) {
  EngineOptions with_folder = options;
  with_folder.packed_folder = packed_folder().string();
  std::unique_ptr<Engine> engine = Engine::load(std::move(checkpoint), with_folder);
  const EngineInfo& info = engine->info();
  note_packed_copy(info.packed_copy);
  if (info.context_lowered)
    note(fmt::format("context lowered to {} positions, the model's own is {}: that is what free memory holds",
                     grouped(static_cast<std::uint64_t>(info.context)),
                     grouped(static_cast<std::uint64_t>(engine->checkpoint().summary().context_length))));
  return engine;
}

PromptForm prompt_form(const Checkpoint& checkpoint, bool raw) {
  if (raw) return PromptForm::raw;
  if (checkpoint.chat_template() != nullptr) return PromptForm::chat;
  note("this model has no chat template: the text is completed as it stands");
  return PromptForm::raw;
}

std::string one_turn(std::string_view system, std::string_view prompt) {
  nlohmann::ordered_json conversation = {{"messages", nlohmann::ordered_json::array()},
                                         {"add_generation_prompt", true}};
  if (!system.empty()) conversation["messages"].push_back({{"role", "system"}, {"content", system}});
  conversation["messages"].push_back({{"role", "user"}, {"content", prompt}});
  return conversation.dump();
}

std::vector<TokenId> prompt_ids(const Checkpoint& checkpoint, PromptForm form, std::string_view system,
                                std::string_view prompt) {
  if (form == PromptForm::chat) return chat_prompt(checkpoint, one_turn(system, prompt));
  if (!system.empty())
    throw Error(ErrorKind::usage,
                "[options] --system: expected a model with a chat template and no --raw, "
                "got a text completed as it stands");
  const std::vector<TokenId> ids = checkpoint.tokenizer().tokenize(prompt, {.bos = true});
  if (ids.empty()) throw Error(ErrorKind::usage, "[options] PROMPT: expected some text, got none");
  return ids;
}

}  // namespace couplet::cli
