#include "text/added_tokens.h"

#include <algorithm>

#include "text/pattern_parser.h"
#include "text/utf8.h"

namespace couplet::text {
namespace {

const WordPattern& word_character() {
  static const WordPattern pattern("[" + std::string(kWordCharacters) + "]");
  return pattern;
}

bool begins_with_word(std::string_view text) {
  std::size_t read = 0;
  return !text.empty() && word_character().find(text.substr(0, std::min<std::size_t>(4, text.size())), 0, read).begin == 0;
}

std::string_view last_char(std::string_view text) {
  std::size_t length = std::min<std::size_t>(1, text.size());
  while (length < std::min<std::size_t>(4, text.size()) && is_continuation(text[text.size() - length])) ++length;
  return text.substr(text.size() - length);
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const std::vector<NormalizerStep>& normalizer)
    : tokens_(std::move(tokens)) {
  std::vector<std::string> contents;
  for (const AddedToken& token : tokens_)
    contents.push_back(token.normalized ? normalize(normalizer, token.content) : token.content);
  std::vector<std::pair<std::string_view, TokenId>> raw, normalized;
  for (std::size_t i = 0; i < tokens_.size(); ++i)
    (tokens_[i].normalized ? normalized : raw).emplace_back(contents[i], static_cast<TokenId>(i));
  raw_ = PieceFinder(std::move(raw));
  normalized_ = PieceFinder(std::move(normalized));
}

bool AddedTokens::touches_word(std::string_view text, std::size_t begin, std::size_t end) {
  return begins_with_word(last_char(text.substr(0, begin))) || begins_with_word(text.substr(end));
}

std::pair<std::size_t, std::size_t> AddedTokens::with_white_space(const AddedToken& token, std::string_view text,
                                                                  std::size_t begin, std::size_t end,
                                                                  std::size_t taken) {
  if (token.lstrip && taken < begin)
    begin = taken + trim_white_space(text.substr(taken, begin - taken), false, true).size();
  if (token.rstrip) end = text.size() - trim_white_space(text.substr(end), true, false).size();
  return {begin, end};
}

}  // namespace couplet::text
