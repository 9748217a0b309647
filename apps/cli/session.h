#pragma once
// A checkpoint and the engine on it, opened as the common options say, with notes on standard error about
// what was decided at load; and the prompt's token ids as run, chat and explain make them.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "couplet/engine.h"
#include "options.h"

namespace couplet::cli {

// Headers alone; no weights are read.
std::shared_ptr<const Checkpoint> open_checkpoint(const CommonOptions& options);
// The same, of a model that can be run: a tokenizer alone is refused.
std::shared_ptr<const Checkpoint> open_model(const CommonOptions& options);
std::unique_ptr<Engine> load_engine(std::shared_ptr<const Checkpoint> checkpoint,
                                    const EngineOptions& options);

// How a prompt is put to the model.
enum class PromptForm { chat, raw };
// Chat, unless `raw` was asked for or the checkpoint has no template, which is noted.
PromptForm prompt_form(const Checkpoint& checkpoint, bool raw);

// A conversation of one turn.
std::string one_turn(std::string_view system, std::string_view prompt);
// Throws Error{usage} where nothing is left to run: an empty raw text on a model without BOS.
std::vector<TokenId> prompt_ids(const Checkpoint& checkpoint, PromptForm form, std::string_view system,
                                std::string_view prompt);

}  // namespace couplet::cli
