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

}  // namespace

std::unique_ptr<ChatTemplate> load_chat_template(const formats::CheckpointFile& file, const Tokenizer& tokenizer) {
  const auto source = file.get_string("tokenizer.chat_template");
  if (!source) return nullptr;
  ChatTemplateTokens tokens;
  tokens.bos = token_text(file, tokenizer, "bos_token", "tokenizer.ggml.bos_token_id");
  tokens.eos = token_text(file, tokenizer, "eos_token", "tokenizer.ggml.eos_token_id");
  tokens.unknown = token_text(file, tokenizer, "unk_token", "tokenizer.ggml.unknown_token_id");
  tokens.padding = token_text(file, tokenizer, "pad_token", "tokenizer.ggml.padding_token_id");
  return std::make_unique<ChatTemplate>(std::string(*source), std::move(tokens));
}

}  // namespace couplet::text
