#pragma once
// A checkpoint and the engine on it, opened as the common options say, with notes on standard error about
// what was decided at load.

#include <memory>

#include "couplet/engine.h"
#include "options.h"

namespace couplet::cli {

// Headers alone; no weights are read.
std::shared_ptr<const Checkpoint> open_checkpoint(const CommonOptions& options);
// The same, of a model that can be run: a tokenizer alone is refused.
std::shared_ptr<const Checkpoint> open_model(const CommonOptions& options);
std::unique_ptr<Engine> load_engine(std::shared_ptr<const Checkpoint> checkpoint,
                                    const EngineOptions& options);

}  // namespace couplet::cli
