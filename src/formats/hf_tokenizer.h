#pragma once
// What a Hugging Face folder says of its tokenizer and chat templates, as keys: tokenizer.json whole, as GGUF has it under
// "tokenizer.huggingface.json", and what the files beside it add.

#include <deque>
#include <filesystem>
#include <string>

#include "formats/json.h"
#include "formats/key_values.h"
#include "formats/mapped_file.h"

namespace couplet::formats {

// The small files of a folder; what was opened stays mapped.
class FolderFiles {
 public:
  explicit FolderFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  bool has(const std::string& name) const;
  const MappedFile& open(const std::string& name) { return files_.emplace_back(folder_ / name); }
  std::string_view text(const std::string& name);
  // Throws Error{format}, "[folder] <name> ...", for what is no JSON object.
  JsonDocument json(const std::string& name);

 private:
  std::filesystem::path folder_;
  std::deque<MappedFile> files_;
};

// tokenizer.huggingface.json: tokenizer.json's text, a view of `files`
// tokenizer.huggingface.bos_token, .eos_token, .unk_token, .pad_token: their texts
// tokenizer.huggingface.add_bos_token
// tokenizer.chat_template, and tokenizer.chat_template.<name>
void add_tokenizer_keys(FolderFiles& files, KeyValues& metadata);

}  // namespace couplet::formats
