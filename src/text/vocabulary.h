#pragma once
// A checkpoint's list of tokens, checked: how each is spelled, what it adds to a text, and which ones mean
// something.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "couplet/tokenizer.h"
#include "formats/checkpoint_file.h"
#include "text/lookup.h"

namespace couplet::text {

// How a vocabulary spells bytes: byte-level BPE gives each byte a letter of its own (space is U+0120),
// SentencePiece writes text as it is, with U+2581 for a space; plain is text as it is.
enum class Spelling : std::uint8_t { byte_letters, marked_spaces, plain };

struct Vocabulary {
  StringTable texts;  // as spelled
  StringTable bytes;  // what the token adds to a text; empty for control and unknown tokens
  std::vector<TokenKind> kinds;
  TokenId bos = -1, eos = -1, unknown = -1;
  Spelling spelling = Spelling::plain;
  bool adds_bos = false;
  std::vector<TokenId> end_ids;  // ascending

  TokenId size() const { return static_cast<TokenId>(kinds.size()); }
  TokenKind kind(TokenId id) const { return kinds[static_cast<std::size_t>(id)]; }
};

// Throws Error{format} that names the key and, where one is to blame, the entry.
Vocabulary load_vocabulary(const formats::CheckpointFile& file, Spelling spelling, bool adds_bos_by_default);

// One score a token, none of them NaN. Throws Error{format}.
std::vector<float> load_scores(const formats::CheckpointFile& file, std::size_t num_tokens);

std::string from_marked_spaces(std::string_view text);
// What a token adds to a text; a byte token is one that spelled_byte() reads.
std::string token_bytes(std::string_view text, TokenKind kind, Spelling spelling);
// "<0x0A>" -> 10; -1: not spelled so.
int spelled_byte(std::string_view text);
// `known` (-1: none) and the control tokens that end a turn or a text, ascending.
std::vector<TokenId> find_end_ids(const Vocabulary& vocabulary, std::vector<TokenId> known);

// The UTF-8 letter that stands for a byte in byte-level BPE.
std::string byte_letter(unsigned char byte);

// The longest real pieces have a few hundred bytes (runs of spaces); looking for one costs up to its length at a place.
inline constexpr std::size_t kMaxPieceBytes = 4096;
inline constexpr std::string_view kMarkedSpace = "\xE2\x96\x81";  // U+2581

}  // namespace couplet::text
