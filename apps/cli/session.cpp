#include "session.h"

#include <fmt/format.h>

#include "catalogue.h"
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

// It takes a while, and a packed copy spares it the next start.
void note_quantizing(const Checkpoint& checkpoint, const std::string& packed_folder) {
  constexpr std::uint64_t kMuch = std::uint64_t{256} << 20;
  const CheckpointSummary& summary = checkpoint.summary();
  if (summary.quantized_as.empty() || summary.weights_bytes < kMuch ||
      checkpoint.packed_copy(packed_folder).state == PackedCopyState::present)
    return;
  note(fmt::format("quantizing weights to {}, {} of them", summary.quantized_as, amount(summary.weights_bytes)));
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
  note_quantizing(*checkpoint, with_folder.packed_folder);
  std::unique_ptr<Engine> engine = Engine::load(std::move(checkpoint), with_folder);
  const EngineInfo& info = engine->info();
  note_packed_copy(info.packed_copy);
  if (info.context_lowered)
    note(fmt::format("context lowered to {} positions, the model's own is {}: that is what free memory holds",
                     grouped(static_cast<std::uint64_t>(info.context)),
                     grouped(static_cast<std::uint64_t>(engine->checkpoint().summary().context_length))));
  return engine;
}

}  // namespace couplet::cli
