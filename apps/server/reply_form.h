#pragma once
// How a choice is told in JSON: one form for chat completions, one for completions; whole, or as a chunk of a stream.

#include <memory>
#include <string>
#include <vector>

#include "couplet/stats.h"
#include "server/generation_plan.h"

namespace couplet::server {

// What of a choice goes out together: all of it, or what has become certain since the last piece.
struct Piece {
  std::string text;
  std::vector<TokenChoice> tokens;  // of the reply, without the one that ended it
  std::vector<Json> ledger;
  std::string finish_reason;        // "": it goes on
};

// What a choice answers.
struct Before {
  const Prompt& prompt;
  const PromptLogprobs* logprobs;  // null: not asked for
};

class ReplyForm {
 public:
  static std::unique_ptr<ReplyForm> chat(const Tokenizer& tokenizer, const ReplyOptions& options);
  static std::unique_ptr<ReplyForm> completion(const Tokenizer& tokenizer, const ReplyOptions& options);
  virtual ~ReplyForm() = default;

  virtual const char* id_prefix() const = 0;
  virtual const char* object(bool chunk) const = 0;
  // The first chunk's choice, before any piece; null: there is none.
  virtual Json opening(int index, const Before& before) = 0;
  virtual Json whole(int index, const Before& before, const Piece& piece) = 0;
  // Called for the pieces of a choice in order.
  virtual Json chunk(int index, const Piece& piece) = 0;
};

Json ids_of(const std::vector<TokenChoice>& tokens);

}  // namespace couplet::server
