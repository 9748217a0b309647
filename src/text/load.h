#pragma once
// From a checkpoint's metadata to the tokenizer and the chat template it describes.

#include <memory>
#include <string_view>

#include "couplet/chat_template.h"
#include "couplet/tokenizer.h"
#include "formats/checkpoint_file.h"

namespace couplet::text {

// Throws Error{format} for a vocabulary that breaks its rules, Error{unsupported} for a tokenizer it doesn't know.
// The tokenizer copies what it needs; the file may close. `pre_tokenizer`: as OpenOptions has it.
std::unique_ptr<Tokenizer> load_tokenizer(const formats::CheckpointFile& file, std::string_view pre_tokenizer = {});

// Null where the file has no template, under tokenizer.chat_template and, for conversations with tools,
// tokenizer.chat_template.tool_use. The tokens that it may name are those of tokenizer.huggingface.*_token
// (texts) or tokenizer.ggml.*_token_id.
std::unique_ptr<ChatTemplate> load_chat_template(const formats::CheckpointFile& file, const Tokenizer& tokenizer);

}  // namespace couplet::text
