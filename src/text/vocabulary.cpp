#include "text/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "couplet/error.h"
#include "text/utf8.h"

namespace couplet::text {
namespace {

constexpr std::size_t kMaxVocabularyBytes = std::size_t{1} << 31U;

[[noreturn]] void refuse(const std::string& key, const std::string& expected, const std::string& got) {
  throw Error(ErrorKind::format,
              "[tokenizer] tokenizer.ggml." + key + ": expected " + expected + ", got " + got);
}

std::array<char32_t, 256> make_byte_letters() {
  std::array<char32_t, 256> letters{};
  char32_t next = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool itself = (byte > ' ' && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    letters[byte] = itself ? byte : next++;
  }
  return letters;
}

constexpr char32_t kNumByteLetters = 256 + 68;  // 68 bytes are no printable Latin-1 character

std::array<std::int16_t, kNumByteLetters> make_letter_bytes() {
  std::array<std::int16_t, kNumByteLetters> bytes{};
  bytes.fill(-1);
  const std::array<char32_t, 256> letters = make_byte_letters();
  for (std::size_t byte = 0; byte < 256; ++byte) bytes[letters[byte]] = static_cast<std::int16_t>(byte);
  return bytes;
}

// A piece that holds anything else than byte letters stands for itself.
std::string from_byte_letters(std::string_view text) {
  static const std::array<std::int16_t, kNumByteLetters> letter_bytes = make_letter_bytes();
  std::string bytes;
  for (const char *at = text.data(), *end = at + text.size(); at != end;) {
    const Utf8Char letter = read_char(at, end);
    if (letter.code_point >= kNumByteLetters || letter_bytes[letter.code_point] < 0) return std::string(text);
    bytes += static_cast<char>(letter_bytes[letter.code_point]);
    at += letter.length;
  }
  return bytes;
}

std::vector<TokenKind> load_kinds(const formats::CheckpointFile& file, std::size_t num_tokens) {
  std::vector<TokenKind> kinds(num_tokens, TokenKind::normal);
  const auto types = file.get_ints("tokenizer.ggml.token_type");
  if (!types) return kinds;
  if (types->size() != num_tokens) {
    refuse("token_type", std::to_string(num_tokens) + " entries, one a token", std::to_string(types->size()));
  }
  constexpr TokenKind kKinds[] = {TokenKind::normal,  TokenKind::normal,       TokenKind::unknown,
                                  TokenKind::control, TokenKind::user_defined, TokenKind::unused,
                                  TokenKind::byte};
  for (std::size_t i = 0; i < num_tokens; ++i) {
    const std::int64_t type = (*types)[i];
    if (type < 0 || type > 6)
      refuse("token_type", "entry " + std::to_string(i) + " in 0..6", std::to_string(type));
    kinds[i] = kKinds[type];
  }
  return kinds;
}

TokenId load_id(const formats::CheckpointFile& file, const std::string& key, TokenId num_tokens) {
  const std::optional<std::uint64_t> id = file.get_uint("tokenizer.ggml." + key);
  if (!id) return -1;
  if (*id >= static_cast<std::uint64_t>(num_tokens)) {
    refuse(key, "an id below " + std::to_string(num_tokens), std::to_string(*id));
  }
  return static_cast<TokenId>(*id);
}

// Ends of a turn or text as the families spell them; they count where they are control tokens (Gemma's </s>
// is HTML).
constexpr std::string_view kTurnEnds[] = {"<|im_end|>",
                                          "<|endoftext|>",
                                          "<|eot_id|>",
                                          "<|eom_id|>",
                                          "<|end_of_text|>",
                                          "<end_of_turn>",
                                          "<|end|>",
                                          "</s>",
                                          "<|return|>",
                                          "<|call|>",
                                          "<eos>",
                                          "<|eot|>",
                                          "<|end_of_turn|>",
                                          "<end_of_utterance>",
                                          "<EOT>",
                                          "[EOT]",
                                          "[EOS]",
                                          "<|END_OF_TURN_TOKEN|>",
                                          "<\uFF5Cend\u2581of\u2581sentence\uFF5C>"};

}  // namespace

std::vector<TokenId> find_end_ids(const Vocabulary& vocabulary, std::vector<TokenId> known) {
  std::vector<TokenId> ids = std::move(known);
  TokenId message_end = -1;
  bool has_return = false;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.kind(id) != TokenKind::control) continue;
    const std::string_view text = vocabulary.texts[static_cast<std::size_t>(id)];
    if (std::find(std::begin(kTurnEnds), std::end(kTurnEnds), text) == std::end(kTurnEnds)) continue;
    if (text == "<|end|>") message_end = id;
    if (text == "<|return|>") has_return = true;
    ids.push_back(id);
  }
  // Where an answer ends with <|return|>, <|end|> only ends one of its messages and the answer goes on.
  if (has_return && message_end != vocabulary.eos) std::erase(ids, message_end);
  std::erase(ids, -1);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

std::string from_marked_spaces(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const bool marked = text.substr(at).starts_with(kMarkedSpace);
    bytes += marked ? ' ' : text[at];
    at += marked ? kMarkedSpace.size() : 1;
  }
  return bytes;
}

int spelled_byte(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  int value = 0;
  for (const char digit : text.substr(3, 2)) {
    const std::size_t upper = std::string_view("0123456789ABCDEF").find(digit);
    const std::size_t nibble =
        upper != std::string_view::npos ? upper : std::string_view("0123456789abcdef").find(digit);
    if (nibble == std::string_view::npos) return -1;
    value = 16 * value + static_cast<int>(nibble);
  }
  return value;
}

std::string token_bytes(std::string_view text, TokenKind kind, Spelling spelling) {
  switch (kind) {
    case TokenKind::control:
    case TokenKind::unknown:
      return {};
    case TokenKind::byte:
      return {static_cast<char>(spelled_byte(text))};
    case TokenKind::user_defined:
      return spelling == Spelling::marked_spaces ? from_marked_spaces(text) : std::string(text);
    case TokenKind::normal:
    case TokenKind::unused:
      break;
  }
  if (spelling == Spelling::plain) return std::string(text);
  return spelling == Spelling::marked_spaces ? from_marked_spaces(text) : from_byte_letters(text);
}

std::string byte_letter(unsigned char byte) {
  static const std::array<char32_t, 256> letters = make_byte_letters();
  const char32_t letter = letters[byte];
  if (letter < 0x80) return {static_cast<char>(letter)};
  return {static_cast<char>(0xC0U | letter >> 6U), static_cast<char>(0x80U | (letter & 0x3FU))};
}

Vocabulary load_vocabulary(const formats::CheckpointFile& file, Spelling spelling, bool adds_bos_by_default) {
  const auto tokens = file.get_strings("tokenizer.ggml.tokens");
  if (!tokens || tokens->empty())
    refuse("tokens", "at least one token", tokens ? "an empty list" : "no such key");
  if (tokens->size() > 0x7FFFFFFFU)
    refuse("tokens", "at most 2147483647 tokens", std::to_string(tokens->size()));

  Vocabulary vocabulary;
  vocabulary.spelling = spelling;
  vocabulary.kinds = load_kinds(file, tokens->size());
  std::size_t total_bytes = 0;
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    const std::string_view text = (*tokens)[i];
    total_bytes += text.size();
    if (text.size() > kMaxPieceBytes || total_bytes > kMaxVocabularyBytes) {
      refuse("tokens", "at most " + std::to_string(kMaxPieceBytes) + " bytes a token and 2 GiB in all",
             std::to_string(text.size()) + " in token " + std::to_string(i));
    }
    vocabulary.texts.add(text);
    if (vocabulary.kinds[i] == TokenKind::byte && spelled_byte(text) < 0)
      refuse("tokens", "byte token " + std::to_string(i) + " spelled like <0x0A>",
             std::to_string(text.size()) + " other bytes");
    vocabulary.bytes.add(token_bytes(text, vocabulary.kinds[i], spelling));
  }

  vocabulary.bos = load_id(file, "bos_token_id", vocabulary.size());
  vocabulary.eos = load_id(file, "eos_token_id", vocabulary.size());
  vocabulary.unknown = load_id(file, "unknown_token_id", vocabulary.size());
  if (vocabulary.unknown < 0) {
    const auto found = std::find(vocabulary.kinds.begin(), vocabulary.kinds.end(), TokenKind::unknown);
    if (found != vocabulary.kinds.end())
      vocabulary.unknown = static_cast<TokenId>(found - vocabulary.kinds.begin());
  }
  vocabulary.adds_bos = file.get_bool("tokenizer.ggml.add_bos_token").value_or(adds_bos_by_default);
  std::vector<TokenId> ends = {vocabulary.eos};
  for (const char* key : {"eot_token_id", "eom_token_id"})
    ends.push_back(load_id(file, key, vocabulary.size()));
  vocabulary.end_ids = find_end_ids(vocabulary, std::move(ends));
  return vocabulary;
}

std::vector<float> load_scores(const formats::CheckpointFile& file, std::size_t num_tokens) {
  const auto scores = file.get_floats("tokenizer.ggml.scores");
  const std::size_t num_scores = scores ? scores->size() : 0;
  if (num_scores != num_tokens)
    refuse("scores", std::to_string(num_tokens) + " entries, one a token", std::to_string(num_scores));
  for (std::size_t i = 0; i < num_scores; ++i) {
    if (std::isnan((*scores)[i])) refuse("scores", "numbers", "NaN in entry " + std::to_string(i));
  }
  return *scores;
}

}  // namespace couplet::text
