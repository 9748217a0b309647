// Tokenizing arbitrary bytes, with byte-level BPE and SentencePiece: ids of the vocabulary whose bytes are
// the text again. The first byte chooses options and pre-tokenizer.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "text/tokenizer_testing.h"

namespace {

using couplet::text::ToyVocabulary;
using Tokenizers = std::array<std::unique_ptr<couplet::text::VocabularyTokenizer>, 5>;

Tokenizers load_all() {
  Tokenizers all;
  std::size_t i = 0;
  for (const char* pre : {"gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    ToyVocabulary toy = couplet::text::toy_bpe();
    toy.pre = pre;
    all[i++] = toy.load();
  }
  all[i] = couplet::text::toy_spm().load();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tokenizers all = load_all();
  if (size == 0) return 0;
  const couplet::Tokenizer& tokenizer = *all[data[0] / 2 % all.size()];
  const bool special = data[0] % 2 == 1;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);

  std::string bytes;
  bool has_control = false;
  for (const couplet::TokenId id : tokenizer.tokenize(text, {.special = special})) {
    COUPLET_CHECK(id >= 0 && id < tokenizer.vocab_size());
    const couplet::TokenKind kind = tokenizer.kind(id);
    has_control |= kind == couplet::TokenKind::control || kind == couplet::TokenKind::unknown;
    bytes += tokenizer.bytes(id, special);
  }
  COUPLET_CHECK(special || !has_control);  // text alone forges nothing
  const bool has_marked_space = text.find(couplet::text::kMarkedSpace) != std::string_view::npos;
  const bool is_exact =
      tokenizer.inexpressible(text) == 0 && !(has_marked_space && tokenizer.family() == "spm");
  COUPLET_CHECK(!is_exact || bytes == text);
  return 0;
}
