#include "server/reply_form.h"
#include "server/token_text.h"

namespace couplet::server {
namespace {

class ChatReply : public ReplyForm {
 public:
  ChatReply(const Tokenizer& tokenizer, const ReplyOptions& options) : tokenizer_(tokenizer), options_(options) {}

  const char* id_prefix() const override { return "chatcmpl-"; }
  const char* object(bool chunk) const override { return chunk ? "chat.completion.chunk" : "chat.completion"; }

  Json opening(int index, const Before&) override {
    return choice(index, "delta", {{"role", "assistant"}, {"content", ""}, {"refusal", nullptr}}, {}, nullptr);
  }

  Json whole(int index, const Before&, const Piece& piece) override {
    return choice(index, "message", {{"role", "assistant"}, {"content", piece.text}, {"refusal", nullptr}}, piece, logprobs(piece));
  }

  Json chunk(int index, const Piece& piece) override {
    Json delta = Json::object();
    if (!piece.text.empty()) delta["content"] = piece.text;
    return choice(index, "delta", std::move(delta), piece, piece.tokens.empty() ? Json(nullptr) : logprobs(piece));
  }

 private:
  Json choice(int index, const char* content_key, Json content, const Piece& piece, Json logprobs) const {
    Json choice = {{"index", index}, {content_key, std::move(content)}, {"logprobs", std::move(logprobs)}};
    choice["finish_reason"] = piece.finish_reason.empty() ? Json(nullptr) : Json(piece.finish_reason);
    if (options_.token_ids) choice["token_ids"] = ids_of(piece.tokens);
    if (options_.ledger) choice["ledger"] = piece.ledger;
    return choice;
  }

  Json logprobs(const Piece& piece) const {
    if (!options_.logprobs) return nullptr;
    Json content = Json::array();
    for (const TokenChoice& token : piece.tokens) content.push_back(chat_token(tokenizer_, token, options_.num_alternatives));
    return {{"content", std::move(content)}, {"refusal", nullptr}};
  }

  const Tokenizer& tokenizer_;
  ReplyOptions options_;
};

}  // namespace

Json ids_of(const std::vector<TokenChoice>& tokens) {
  Json ids = Json::array();
  for (const TokenChoice& token : tokens) ids.push_back(token.id);
  return ids;
}

std::unique_ptr<ReplyForm> ReplyForm::chat(const Tokenizer& tokenizer, const ReplyOptions& options) {
  return std::make_unique<ChatReply>(tokenizer, options);
}

}  // namespace couplet::server
