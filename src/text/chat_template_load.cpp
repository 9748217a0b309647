// The chat template that a checkpoint carries, with the special tokens that its text may name.

#include <string>

#include "couplet/error.h"
#include "text/load.h"

namespace couplet::text {
namespace {

// The text of a token: a folder says it, a GGUF file has the id under `key`; empty where the file has none.
std::string token_text(const formats::CheckpointFile& file, const Tokenizer& tokenizer, std::string_view name,
                       std::string_view key) {
  if (const auto text = file.get_string("tokenizer.huggingface." + std::string(name))) return std::string(*text);
  const auto id = file.get_uint(key);
  if (!id) return {};
  if (*id >= static_cast<std::uint64_t>(tokenizer.vocab_size())) {
    throw Error(ErrorKind::format, "[template] " + std::string(key) + ": expected an id below " +
                                       std::to_string(tokenizer.vocab_size()) + ", got " + std::to_string(*id));
  }
  return std::string(tokenizer.vocabulary_text(static_cast<TokenId>(*id)));
}

ChatTemplateTokens special_tokens(const formats::CheckpointFile& file, const Tokenizer& tokenizer) {
  const auto text = [&](const char* name, const char* key) { return token_text(file, tokenizer, name, key); };
  return {.bos = text("bos_token", "tokenizer.ggml.bos_token_id"),
          .eos = text("eos_token", "tokenizer.ggml.eos_token_id"),
          .unknown = text("unk_token", "tokenizer.ggml.unknown_token_id"),
          .separator = text("sep_token", "tokenizer.ggml.seperator_token_id"),  // spelled so in the format
          .padding = text("pad_token", "tokenizer.ggml.padding_token_id"),
          .classifier = text("cls_token", "tokenizer.ggml.cls_token_id"),
          .mask = text("mask_token", "tokenizer.ggml.mask_token_id")};
}

}  // namespace

std::unique_ptr<ChatTemplate> load_chat_template(const formats::CheckpointFile& file, const Tokenizer& tokenizer) {
  const std::string source(file.get_string("tokenizer.chat_template").value_or(""));
  const std::string tool_use(file.get_string("tokenizer.chat_template.tool_use").value_or(""));
  if (source.empty() && tool_use.empty()) return nullptr;
  return std::make_unique<ChatTemplate>(source, special_tokens(file, tokenizer), tool_use);
}

}  // namespace couplet::text
