#include "text/pretokenize.h"

#include <algorithm>

#include "couplet/error.h"
#include "formats/printable.h"

namespace couplet::text {
namespace {

constexpr std::string_view kGpt2 =
    R"('(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Digits are cut out one by one first, and GPT-2's pattern sees what lies between them: to it a digit is an
// end.
constexpr std::string_view kDigitsThenGpt2 =
    R"(\p{N}|'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+)";

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr PreTokenizer kPreTokenizers[] = {
    {"default", kGpt2},
    {"gpt-2", kGpt2},
    {"gpt2", kGpt2},
    {"llama-bpe", kLlama3, true, true},
    {"llama3", kLlama3, true, true},
    {"qwen2", kQwen2},
    {"smollm", kDigitsThenGpt2},
};

}  // namespace

const PreTokenizer& find_pre_tokenizer(std::string_view name) {
  std::string known;
  for (const PreTokenizer& pre : kPreTokenizers) {
    if (pre.name == name) return pre;
    known += (known.empty() ? "" : ", ") + std::string(pre.name);
  }
  throw Error(ErrorKind::unsupported, "[tokenizer] tokenizer.ggml.pre: expected one of " + known + ", got " +
                                          formats::in_quotes(name));
}

}  // namespace couplet::text
