#include "text/tokenizer.h"

#include <algorithm>

#include "couplet/error.h"
#include "formats/printable.h"
#include "text/bpe.h"
#include "text/load.h"
#include "text/spm.h"
#include "text/tokenizer_json.h"
#include "text/ugm.h"
#include "text/utf8.h"

namespace couplet {

const char* name(TokenKind kind) {
  switch (kind) {
    case TokenKind::normal:
      return "normal";
    case TokenKind::unknown:
      return "unknown";
    case TokenKind::control:
      return "control";
    case TokenKind::user_defined:
      return "user_defined";
    case TokenKind::unused:
      return "unused";
    case TokenKind::byte:
      return "byte";
  }
  return "?";
}

}  // namespace couplet

namespace couplet::text {
namespace {

// Places in a word are 32-bit numbers, and U+FFFD may make a text three times as long.
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30U;

// The first character at `at` that the tokenizer can't express, as [begin, end); the text's end where there
// is none.
template <typename Expresses>
std::pair<std::size_t, std::size_t> find_inexpressible(std::string_view text, std::size_t at,
                                                       const Expresses& expresses) {
  while (at < text.size()) {
    const std::size_t length = read_char(text.data() + at, text.data() + text.size()).length;
    if (!expresses(text.substr(at, length))) return {at, at + length};
    at += length;
  }
  return {text.size(), text.size()};
}

std::string marked_spaces(std::string_view text) {
  std::string marked;
  for (const char byte : text) byte == ' ' ? marked += kMarkedSpace : marked += byte;
  return marked;
}

}  // namespace

VocabularyTokenizer::VocabularyTokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {
  std::vector<std::pair<std::string_view, TokenId>> pieces;
  const auto add = [&](const StringTable& texts, auto... kinds) {
    for (TokenId id = 0; id < vocabulary_.size(); ++id) {
      if (((vocabulary_.kind(id) == kinds) || ...))
        pieces.emplace_back(texts[static_cast<std::size_t>(id)], id);
    }
  };
  add(vocabulary_.bytes, TokenKind::user_defined);
  user_defined_ = PieceFinder(pieces);
  add(vocabulary_.texts, TokenKind::control, TokenKind::unknown);
  user_defined_and_control_ = PieceFinder(std::move(pieces));
  if (vocabulary_.spelling != Spelling::marked_spaces) return;
  pieces.clear();
  StringTable marked;
  for (TokenId id = 0; id < vocabulary_.size(); ++id)
    marked.add(vocabulary_.kind(id) == TokenKind::user_defined ? marked_spaces(vocabulary_.bytes[static_cast<std::size_t>(id)]) : "");
  add(marked, TokenKind::user_defined);
  std::erase_if(pieces, [](const auto& piece) { return piece.first.find(kMarkedSpace) == std::string_view::npos; });
  marked_ = PieceFinder(std::move(pieces));
}

void VocabularyTokenizer::set_inexpressible(const std::array<bool, 256>& may_lack) {
  may_lack_ = may_lack;
  may_lack_any_ = std::find(may_lack.begin(), may_lack.end(), true) != may_lack.end();
  expresses_replacement_ = expresses(kReplacement);
  if (may_lack_any_ && !expresses_replacement_ && vocabulary_.unknown < 0) {
    throw Error(ErrorKind::format,
                "[tokenizer] vocabulary: expected tokens for every byte, for U+FFFD, or an unknown token, "
                "got none of the three");
  }
}

std::vector<TokenId> VocabularyTokenizer::tokenize(std::string_view text, TokenizeOptions options) const {
  TokenizeScratch scratch(text.size());
  return tokenize(text, options, scratch);
}

std::vector<TokenId> VocabularyTokenizer::tokenize(std::string_view text, TokenizeOptions options,
                                                   TokenizeScratch& scratch) const {
  if (text.size() > kMaxTextBytes) {
    throw Error(ErrorKind::resource, "[tokenizer] text: expected at most " + std::to_string(kMaxTextBytes) +
                                         " bytes, got " + std::to_string(text.size()));
  }
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3 + 4);
  if (options.bos && vocabulary_.adds_bos && vocabulary_.bos >= 0) ids.push_back(vocabulary_.bos);
  const PieceFinder& pieces = options.special ? user_defined_and_control_ : user_defined_;
  if (vocabulary_.spelling != Spelling::marked_spaces || text.find(kMarkedSpace) == std::string_view::npos) {
    append_cut(text, pieces, scratch, ids);
    return ids;
  }
  // A U+2581 is a space, but first it may be part of a piece that is spelled with it alone.
  for (std::size_t at = 0; at < text.size();) {
    const PieceFinder::Match match = marked_.find(text, at);
    scratch.unmarked = from_marked_spaces(text.substr(at, match.begin - at));
    append_cut(scratch.unmarked, pieces, scratch, ids);
    if (match.id >= 0) ids.push_back(match.id);
    at = match.begin + match.length;
  }
  return ids;
}

void VocabularyTokenizer::append_cut(std::string_view text, const PieceFinder& pieces, TokenizeScratch& scratch,
                                     std::vector<TokenId>& ids) const {
  for (std::size_t at = 0; at < text.size();) {
    const PieceFinder::Match match = pieces.find(text, at);
    append_stretch(text.substr(at, match.begin - at), scratch, ids);
    if (match.id >= 0) ids.push_back(match.id);
    at = match.begin + match.length;
  }
}

std::size_t VocabularyTokenizer::inexpressible(std::string_view text) const {
  std::size_t count = 0;
  if (!may_lack(text)) return count;
  std::string unmarked, buffer;
  if (vocabulary_.spelling == Spelling::marked_spaces) text = unmarked = from_marked_spaces(text);
  for (std::size_t at = 0; at < text.size();) {
    const PieceFinder::Match match = user_defined_.find(text, at);
    const std::string_view stretch = normalize(text.substr(at, match.begin - at), buffer);
    std::pair<std::size_t, std::size_t> found{0, 0};
    while (true) {
      found = find_inexpressible(stretch, found.second,
                                 [this](std::string_view character) { return expresses(character); });
      if (found.first == stretch.size()) break;
      ++count;
    }
    at = match.begin + match.length;
  }
  return count;
}

std::string_view VocabularyTokenizer::normalize(std::string_view stretch, std::string& /*buffer*/) const {
  return stretch;
}

bool VocabularyTokenizer::may_lack(std::string_view text) const {
  return may_lack_any_ && std::any_of(text.begin(), text.end(), [this](char byte) {
           return may_lack_[static_cast<unsigned char>(byte)];
         });
}

void VocabularyTokenizer::append_stretch(std::string_view stretch, TokenizeScratch& scratch,
                                         std::vector<TokenId>& ids) const {
  if (stretch.empty()) return;
  const std::string_view text = normalize(stretch, scratch.normalized);
  if (!may_lack(text)) return append_text(text, scratch, ids);
  // U+FFFD takes the place of what is inexpressible before words are cut, as if the text had come with it.
  scratch.replaced.clear();
  for (std::size_t at = 0; at < text.size();) {
    const auto [begin, end] =
        find_inexpressible(text, at, [this](std::string_view character) { return expresses(character); });
    scratch.replaced += text.substr(at, begin - at);
    if (begin < end && expresses_replacement_) scratch.replaced += kReplacement;
    if (begin < end && !expresses_replacement_) {
      append_text(scratch.replaced, scratch, ids);
      scratch.replaced.clear();
      ids.push_back(vocabulary_.unknown);
    }
    at = end;
  }
  append_text(scratch.replaced, scratch, ids);
}

TokenKind VocabularyTokenizer::kind(TokenId id) const {
  return id >= 0 && id < vocabulary_.size() ? vocabulary_.kind(id) : TokenKind::unused;
}

std::string_view VocabularyTokenizer::vocabulary_text(TokenId id) const {
  return id >= 0 && id < vocabulary_.size() ? vocabulary_.texts[static_cast<std::size_t>(id)]
                                            : std::string_view();
}

std::string VocabularyTokenizer::bytes(TokenId id, bool special) const {
  if (id < 0 || id >= vocabulary_.size()) return {};
  const TokenKind kind = vocabulary_.kind(id);
  const bool is_special = kind == TokenKind::control || kind == TokenKind::unknown;
  return std::string(is_special && special ? vocabulary_.texts[static_cast<std::size_t>(id)]
                                           : vocabulary_.bytes[static_cast<std::size_t>(id)]);
}

namespace {

std::unique_ptr<Tokenizer> load_from_folder(const formats::CheckpointFile& file) {
  const auto json = file.get_string("tokenizer.huggingface.json");
  if (!json && file.format() == "safetensors")
    throw Error(ErrorKind::not_found, "[tokenizer] tokenizer.json: expected it in the folder, there is none; "
                                      "AutoTokenizer's save_pretrained() in transformers writes it");
  if (!json) throw Error(ErrorKind::format, "[tokenizer] tokenizer.ggml.model: expected a name, got no such key");
  TokenizerNames names;
  names.bos = file.get_string("tokenizer.huggingface.bos_token").value_or("");
  names.eos = file.get_string("tokenizer.huggingface.eos_token").value_or("");
  names.adds_bos = file.get_bool("tokenizer.huggingface.add_bos_token");
  const auto end_ids = file.get_ints("tokenizer.huggingface.eos_token_ids").value_or(std::vector<std::int64_t>());
  names.end_ids = end_ids;
  return load_tokenizer_json(*json, names);
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const formats::CheckpointFile& file, std::string_view pre_tokenizer) {
  const auto model = file.get_string("tokenizer.ggml.model");
  if (model == "gpt2") return load_bpe(file, pre_tokenizer);
  if (!pre_tokenizer.empty()) {
    throw Error(ErrorKind::usage, "[tokenizer] --pre-tokenizer: expected a GGUF file with byte-level BPE (\"gpt2\"), got " +
                                      (model ? formats::in_quotes(*model) : std::string(file.format())));
  }
  if (!model) return load_from_folder(file);
  if (*model == "llama") return load_spm(file);
  if (*model == "t5") return load_ugm(file);
  throw Error(ErrorKind::unsupported, "[tokenizer] tokenizer.ggml.model: expected one of gpt2, llama, t5, got " +
                                          formats::in_quotes(*model));
}

}  // namespace couplet::text
