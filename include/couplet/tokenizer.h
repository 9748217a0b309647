#pragma once
// Text <-> tokens. A vocabulary is fixed by the checkpoint; any text maps to its ids and back, byte for byte, but for
// what the vocabulary itself can't tell apart or express: SentencePiece reads U+2581 as a space, and may want a space
// before the text (which comes back with it); a character that has no tokens is replaced, see tokenize().
// Thread-safe: all methods are const and keep no state; the streaming Detokenizer belongs to one sequence.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace couplet {

using TokenId = std::int32_t;

enum class TokenKind { normal, unknown, control, user_defined, unused, byte };
const char* name(TokenKind kind);

struct TokenizeOptions {
  bool bos = false;      // put BOS first, where the model wants one
  bool special = false;  // read control tokens out of the text; off: text that spells one stays text
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Ids of `text`, any bytes; a byte that is no UTF-8 counts as a character of its own. User-defined pieces are cut out
  // first, the leftmost and there the longest. A character the vocabulary can't express (SmolLM2 has no token for
  // U+0004) is replaced as a whole by U+FFFD's tokens, or, where even that has none, by the unknown token; it is never
  // dropped. Text alone never becomes a control token. Throws Error{resource} for a text of more than 1 GiB.
  virtual std::vector<TokenId> tokenize(std::string_view text, TokenizeOptions options = {}) const = 0;
  // How many characters of `text` the vocabulary can't express and tokenize() replaces.
  virtual std::size_t inexpressible(std::string_view text) const = 0;

  virtual int vocab_size() const = 0;
  // Any id is a fair question: one outside the vocabulary is unused, has no text and no bytes.
  virtual TokenKind kind(TokenId id) const = 0;
  virtual std::string_view vocabulary_text(TokenId id) const = 0;  // as the vocabulary spells it ("Ġthe", "<0x0A>")
  // The bytes that the token adds to a text; what a control token spells counts only with `special`.
  virtual std::string bytes(TokenId id, bool special = false) const = 0;

  virtual bool adds_bos() const = 0;
  virtual TokenId bos_id() const = 0;      // -1: none
  virtual TokenId eos_id() const = 0;      // -1: none
  virtual TokenId unknown_id() const = 0;  // -1: none
  // Every id that ends an answer: EOS, end of turn, end of text.
  virtual std::span<const TokenId> end_ids() const = 0;
  virtual std::string_view family() const = 0;  // "bpe" or "spm"
  virtual std::string_view pre_tokenizer() const = 0;  // "smollm", ...; "" for spm
};

// Ids -> text, whole. Bytes that are no UTF-8 become U+FFFD, exactly as the streaming form does.
std::string detokenize(const Tokenizer& tokenizer, std::span<const TokenId> ids, bool special = false);

// Ids -> text, one id at a time: never part of a character; the pieces joined equal detokenize() of all ids.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, bool special = false)
      : tokenizer_(&tokenizer), special_(special) {}

  // Text that has become certain with this id, valid UTF-8, possibly empty. Appends to `out`.
  void push(TokenId id, std::string& out);
  // What is still held back, as U+FFFD; call once, after the last id.
  void finish(std::string& out);
  // Bytes held back: the beginning of a character that the next id may complete.
  std::string_view pending() const { return pending_; }

 private:
  const Tokenizer* tokenizer_;
  bool special_;
  std::string pending_;
};

}  // namespace couplet
