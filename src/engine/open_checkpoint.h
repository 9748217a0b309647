#pragma once
// What a Checkpoint is inside: the mapped file, its config, its tokenizer and its template. Here bytes, text and sizes
// meet for the first time.

#include <memory>
#include <vector>
#include <optional>

#include "couplet/checkpoint.h"
#include "formats/checkpoint_file.h"
#include "kernels/kernels.h"
#include "model/config.h"

namespace couplet::engine {

// Fine keeps values in two planes where they are integers.
constexpr kernels::PageFormat page_format(CacheFormat format, Precision precision) {
  if (format == CacheFormat::f16) return kernels::PageFormat::f16;
  return precision == Precision::fine ? kernels::PageFormat::q16_fine : kernels::PageFormat::q16;
}

// What tensors there are of each type, the largest in all first.
std::vector<TensorTypeSummary> summarize_tensors(const formats::CheckpointFile& file);

class OpenCheckpoint : public Checkpoint {
 public:
  explicit OpenCheckpoint(std::unique_ptr<formats::CheckpointFile> file, const OpenOptions& options = {});

  const CheckpointSummary& summary() const override { return summary_; }
  std::uint64_t cache_bytes_per_position(CacheFormat format, Precision precision) const override;
  PackedCopy packed_copy(const std::string& packed_folder) const override;
  std::string weights_id() const override;
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  const ChatTemplate* chat_template() const override { return chat_template_.get(); }
  const formats::CheckpointFile& file() const { return *file_; }
  // Throws Error{not_found} where the checkpoint is a tokenizer alone.
  const model::ModelConfig& config() const;

 private:
  std::unique_ptr<formats::CheckpointFile> file_;
  std::optional<model::ModelConfig> config_;  // nothing: a tokenizer alone
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> chat_template_;
  CheckpointSummary summary_;
};

}  // namespace couplet::engine
