#include "couplet/tokenizer.h"
#include "text/utf8.h"

namespace couplet {

using text::Utf8Char;

void Detokenizer::push(TokenId id, std::string& out) {
  pending_ += tokenizer_->bytes(id, special_);
  const char* at = pending_.data();
  const char* const end = at + pending_.size();
  while (at != end) {
    const Utf8Char read = text::read_utf8(at, end);
    if (read.kind == Utf8Char::cut) break;
    if (read.kind == Utf8Char::whole) {
      out.append(at, read.length);
    } else {
      out += text::kReplacement;
    }
    at += read.length;
  }
  pending_.erase(0, static_cast<std::size_t>(at - pending_.data()));
}

void Detokenizer::finish(std::string& out) {
  if (!pending_.empty()) out += text::kReplacement;  // a beginning of a character is one maximal subpart
  pending_.clear();
}

std::string detokenize(const Tokenizer& tokenizer, std::span<const TokenId> ids, bool special) {
  Detokenizer detokenizer(tokenizer, special);
  std::string text;
  for (const TokenId id : ids) detokenizer.push(id, text);
  detokenizer.finish(text);
  return text;
}

}  // namespace couplet
