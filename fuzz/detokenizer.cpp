// Detokenizing arbitrary ids, two bytes an id: what comes piece by piece is the whole text, and every piece
// is text by itself. The first byte chooses vocabulary and options.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "text/tokenizer_testing.h"
#include "text/utf8.h"

namespace {

bool is_utf8(const std::string& text) {
  using couplet::text::Utf8Char;
  for (const char *at = text.data(), *end = at + text.size(); at != end;) {
    const Utf8Char read = couplet::text::read_utf8(at, end);
    if (read.kind != Utf8Char::whole) return false;
    at += read.length;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto bpe = couplet::text::toy_bpe().load();
  static const auto spm = couplet::text::toy_spm().load();
  if (size == 0) return 0;
  const couplet::Tokenizer& tokenizer = data[0] % 2 == 0 ? *bpe : *spm;
  const bool special = data[0] / 2 % 2 == 1;

  std::vector<couplet::TokenId> ids;
  for (std::size_t i = 1; i + 1 < size; i += 2)
    ids.push_back(static_cast<std::int16_t>(data[i] | data[i + 1] << 8));

  couplet::Detokenizer detokenizer(tokenizer, special);
  std::string joined;
  for (const couplet::TokenId id : ids) {
    std::string piece;
    detokenizer.push(id, piece);
    COUPLET_CHECK(is_utf8(piece));
    COUPLET_CHECK(detokenizer.pending().size() < 4);
    joined += piece;
  }
  detokenizer.finish(joined);
  COUPLET_CHECK(joined == couplet::detokenize(tokenizer, ids, special));
  return 0;
}
