// A tokenizer.json of arbitrary bytes, and the tokenizer that it makes: an Error, or ids of the vocabulary for any
// text. What follows a zero byte is the name of BOS, which is added.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "couplet/error.h"
#include "text/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  couplet::text::TokenizerNames names;
  if (end < size) names = {.bos = input.substr(end + 1), .eos = {}, .adds_bos = true};
  try {
    const auto tokenizer = couplet::text::load_tokenizer_json(input.substr(0, end), names);
    for (const bool special : {false, true}) {
      for (const couplet::TokenId id :
           tokenizer->tokenize("the  ab\xFF<x> e\u0301\u2581 12\n", {.bos = true, .special = special})) {
        COUPLET_CHECK(id >= 0 && id < tokenizer->vocab_size());
        (void)tokenizer->bytes(id, special);
      }
    }
  } catch (const couplet::Error&) {
  }
  return 0;
}
