// Tokenizing arbitrary bytes, with byte-level BPE and SentencePiece: ids of the vocabulary whose bytes are
// the text again. The first byte chooses options and pre-tokenizer. Input that begins as a GGUF file is the
// vocabulary itself.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "couplet/error.h"
#include "text/tokenizer_testing.h"

namespace {

using couplet::text::ToyVocabulary;

std::array<std::unique_ptr<couplet::text::VocabularyTokenizer>, 3> load_toys() {
  ToyVocabulary llama = couplet::text::toy_bpe(), smollm = couplet::text::toy_bpe();
  llama.pre = "llama-bpe";
  smollm.pre = "smollm";
  return {llama.load(), smollm.load(), couplet::text::toy_spm().load()};
}

void check(const couplet::Tokenizer& tokenizer, std::string_view text, bool special) {
  std::string bytes;
  bool has_control = false;
  for (const couplet::TokenId id : tokenizer.tokenize(text, {.special = special})) {
    COUPLET_CHECK(id >= 0 && id < tokenizer.vocab_size());
    has_control |= tokenizer.kind(id) == couplet::TokenKind::control;
    bytes += tokenizer.bytes(id, special);
  }
  if (tokenizer.inexpressible(text) > 0) return;
  COUPLET_CHECK(special || !has_control);  // text alone forges nothing
  const bool reads_spaces =
      tokenizer.family() == "spm" && text.find(couplet::text::kMarkedSpace) < text.size();
  COUPLET_CHECK(reads_spaces || bytes == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto toys = load_toys();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("GGUF")) {
    try {
      const auto file = couplet::formats::CheckpointFile::parse(std::as_bytes(std::span(data, size)));
      check(*couplet::text::load_tokenizer(*file), "the  AAAA\xFF<|im_end|>\u2581é 12", false);
    } catch (const couplet::Error&) {
    }
  } else if (size > 0) {
    check(*toys[data[0] / 2 % toys.size()], text.substr(1), data[0] % 2 == 1);
  }
  return 0;
}
