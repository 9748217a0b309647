#pragma once
// What a Checkpoint is inside: the mapped file, its config, its tokenizer and its template. Here bytes, text and sizes
// meet for the first time.

#include <memory>

#include "couplet/checkpoint.h"
#include "formats/checkpoint_file.h"
#include "model/config.h"

namespace couplet::engine {

class OpenCheckpoint : public Checkpoint {
 public:
  explicit OpenCheckpoint(std::unique_ptr<formats::CheckpointFile> file);

  const CheckpointSummary& summary() const override { return summary_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  const ChatTemplate* chat_template() const override { return chat_template_.get(); }
  const formats::CheckpointFile& file() const { return *file_; }
  const model::ModelConfig& config() const { return config_; }

 private:
  std::unique_ptr<formats::CheckpointFile> file_;
  model::ModelConfig config_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> chat_template_;
  CheckpointSummary summary_;
};

}  // namespace couplet::engine
