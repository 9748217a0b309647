#include <algorithm>
#include <map>

#include "server/reply_form.h"
#include "server/token_text.h"

namespace couplet::server {
namespace {

// Parallel lists, as completions have them.
struct TokenLists {
  Json tokens = Json::array(), values = Json::array(), tops = Json::array(), offsets = Json::array();
};

class CompletionReply : public ReplyForm {
 public:
  CompletionReply(const Tokenizer& tokenizer, const ReplyOptions& options) : tokenizer_(tokenizer), options_(options) {}

  const char* id_prefix() const override { return "cmpl-"; }
  const char* object(bool) const override { return "text_completion"; }

  // Echo's: the prompt, and what the model makes of it.
  Json opening(int index, const Before& before) override {
    if (!options_.echo && !options_.token_ids) return nullptr;
    TokenLists lists;
    std::string prompt = echo(index, before, lists);
    Json opened = choice(index, std::move(prompt), {}, std::move(lists));
    if (options_.token_ids) opened["prompt_token_ids"] = before.prompt.ids;
    return opened;
  }

  Json whole(int index, const Before& before, const Piece& piece) override {
    TokenLists lists;
    const std::string prompt = echo(index, before, lists);
    add(index, piece.tokens, lists);
    Json whole = choice(index, prompt + piece.text, piece, std::move(lists));
    if (options_.token_ids) whole["prompt_token_ids"] = before.prompt.ids;
    return whole;
  }

  Json chunk(int index, const Piece& piece) override {
    TokenLists lists;
    add(index, piece.tokens, lists);
    return choice(index, piece.text, piece, std::move(lists));
  }

 private:
  Json choice(int index, std::string text, const Piece& piece, TokenLists lists) const {
    Json choice = {{"index", index}, {"text", std::move(text)}, {"logprobs", nullptr}};
    if (options_.logprobs)
      choice["logprobs"] = {{"tokens", std::move(lists.tokens)},
                            {"token_logprobs", std::move(lists.values)},
                            {"top_logprobs", std::move(lists.tops)},
                            {"text_offset", std::move(lists.offsets)}};
    choice["finish_reason"] = piece.finish_reason.empty() ? Json(nullptr) : Json(piece.finish_reason);
    if (options_.token_ids) choice["token_ids"] = ids_of(piece.tokens);
    if (options_.ledger) choice["ledger"] = piece.ledger;
    return choice;
  }

  // The prompt's text, where it is asked for, and its tokens.
  std::string echo(int index, const Before& before, TokenLists& lists) {
    if (!options_.echo) return "";
    const std::string& text = before.prompt.text;
    const std::size_t length = num_characters(text);
    offsets_.insert_or_assign(index, TextOffsets(tokenizer_, length));
    if (before.logprobs == nullptr) return text;
    TextOffsets offsets(tokenizer_, 0, true);
    std::vector<std::size_t> begins;
    for (const TokenChoice& token : before.logprobs->choices()) begins.push_back(offsets.next(token.id));
    // What the tokens say before the text, BOS or SentencePiece's space, has no place in it.
    const std::size_t spelt = offsets.finish(), before_text = spelt > length ? spelt - length : 0;
    for (std::size_t i = 0; i < begins.size(); ++i)
      add(before.logprobs->choices()[i], begins[i] > before_text ? begins[i] - before_text : 0, lists);
    return text;
  }

  void add(int index, const std::vector<TokenChoice>& tokens, TokenLists& lists) {
    if (!options_.logprobs) return;
    TextOffsets& offsets = offsets_.try_emplace(index, tokenizer_).first->second;
    for (const TokenChoice& token : tokens) add(token, offsets.next(token.id), lists);
  }

  void add(const TokenChoice& token, std::size_t offset, TokenLists& lists) const {
    lists.tokens.push_back(completion_token(tokenizer_, token.id));
    lists.values.push_back(token.measured ? Json(shortest(token.log_probability)) : Json(nullptr));
    lists.tops.push_back(token.measured ? top(token) : Json(nullptr));
    lists.offsets.push_back(offset);
  }

  // The best, and the token itself where it is none of them.
  Json top(const TokenChoice& token) const {
    Json top = Json::object();
    const std::size_t count = std::min(token.alternatives.size(), static_cast<std::size_t>(options_.num_alternatives));
    for (std::size_t i = 0; i < count; ++i)
      top.emplace(completion_token(tokenizer_, token.alternatives[i].id), shortest(token.alternatives[i].log_probability));
    top.emplace(completion_token(tokenizer_, token.id), shortest(token.log_probability));
    return top;
  }

  const Tokenizer& tokenizer_;
  ReplyOptions options_;
  std::map<int, TextOffsets> offsets_;  // by choice
};

}  // namespace

std::unique_ptr<ReplyForm> ReplyForm::completion(const Tokenizer& tokenizer, const ReplyOptions& options) {
  return std::make_unique<CompletionReply>(tokenizer, options);
}

}  // namespace couplet::server
