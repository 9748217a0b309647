#include "text/pretokenize.h"

#include <algorithm>

#include "couplet/error.h"
#include "formats/printable.h"

namespace couplet::text {
namespace {

constexpr std::string_view kGpt2 =
    R"('(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Digits are cut out one by one first, and GPT-2's pattern sees what lies between them: to it a digit is an
// end. Hugging Face takes digits from Unicode 17, which has 13 more than the \p{N} of its patterns.
constexpr std::string_view kDigitsThenGpt2 =
    R"([\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}]|'(?:s|t|re|ve|m|ll|d)| ?\p{L}+)"
    R"(| ?[^\s\p{L}\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}]+)"
    R"(|\s+(?![^\s\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}])|\s+)";

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kDeepseekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kChineseAndKana = "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+";

// Letters of the scripts with two cases, as DeepSeek LLM counts them.
constexpr std::string_view kDeepseekLlmLetters = 
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})"
    R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"
    R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-)"
    R"(\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57})"
    R"(\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"
    R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC})"
    R"(\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-)"
    R"(\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-)"
    R"(\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771})"
    R"(-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A})"
    R"(\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2})"
    R"(\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr std::string_view kDeepseekLlmMarks = "\\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+";
constexpr std::string_view kChineseAndKorean = "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+";

constexpr std::string_view kBloom = " ?[^(\\s|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C)]+";

constexpr std::string_view kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";

constexpr std::string_view kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr PreTokenizer kPreTokenizers[] = {
    {"default", {kGpt2}},
    {"gpt-2", {kGpt2}},
    {"gpt2", {kGpt2}},
    {"phi-2", {kGpt2}},
    {"jais", {kGpt2}},
    {"mpt", {kGpt2}},
    {"olmo", {kGpt2}},
    {"exaone4", {kGpt2}},
    {"gigachat", {kGpt2}},
    {"a.x-4.0", {kGpt2}},
    {"mellum", {kGpt2}},
    {"trillion", {kGpt2}},
    {"granite-docling", {kGpt2}},
    {"llama-bpe", {kLlama3}, true, true},
    {"llama3", {kLlama3}, true, true},
    {"llama-v3", {kLlama3}, true, true},
    {"falcon3", {kLlama3}, true, true},
    {"falcon-h1", {kLlama3}, true, true},
    {"pixtral", {kLlama3}, true, true},
    {"midm-2.0", {kLlama3}, true, true},
    {"lfm2", {kLlama3}, true, true},
    {"dbrx", {kLlama3}},
    {"smaug-bpe", {kLlama3}},
    {"chatglm-bpe", {kLlama3}},
    {"glm4", {kLlama3}},
    {"qwen2", {kQwen2}},
    {"stablelm2", {kQwen2}},
    {"deepseek-r1-qwen", {kQwen2}},
    {"kormo", {kQwen2}},
    {"megrez", {kQwen2}},
    {"hunyuan", {kQwen2}},
    {"grok-2", {kQwen2}},
    {"gpt-4o", {kO200k}, true},
    {"llama4", {kO200k}, true},
    {"minimax-m2", {kO200k}},
    {"tekken", {kTekken}, true, true},
    {"smollm", {kDigitsThenGpt2}},
    {"starcoder", {kDigitsThenGpt2}},
    {"refact", {kDigitsThenGpt2}},
    {"command-r", {kDigitsThenGpt2}},
    {"codeshell", {kDigitsThenGpt2}},
    {"exaone", {kDigitsThenGpt2}},
    {"minerva-7b", {kDigitsThenGpt2}},
    {"falcon", {R"([\p{P}$+<=>\^~|`]+)", kGpt2, "[0-9][0-9][0-9]"}},
    {"deepseek-v3", {R"(\p{N}{1,3})", kChineseAndKana, kDeepseekV3}},
    {"hunyuan-dense", {R"(\p{N}{1,3})", kChineseAndKana, kDeepseekV3}},
    {"deepseek-coder", {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kChineseAndKorean, R"(\p{N})"}},
    {"deepseek-llm",
     {R"([\r\n])", kDeepseekLlmLetters, kDeepseekLlmMarks, R"(\s+$)", kChineseAndKorean, R"(\p{N}+)"}},
    {"bloom", {kBloom}},
    {"poro-chat", {kBloom}},
    {"gpt3-finnish", {kBloom}},
    {"viking", {kBloom, R"(\p{N})"}},
    {"bailingmoe", {kBailing}},
    {"bailingmoe2", {kBailing}},
    {"llada-moe", {kBailing}},
    {"seed-coder", {kSeedCoder}},
};

}  // namespace

std::span<const PreTokenizer> all_pre_tokenizers() { return kPreTokenizers; }

const PreTokenizer& find_pre_tokenizer(std::string_view in_file, std::string_view instead) {
  const std::string_view name = instead.empty() ? in_file : instead;
  std::string known;
  for (const PreTokenizer& pre : kPreTokenizers) {
    if (pre.name == name) return pre;
    known += (known.empty() ? "" : ", ") + std::string(pre.name);
  }
  const std::string wrong = "expected one of " + known + ", got " + formats::in_quotes(name);
  if (!instead.empty()) throw Error(ErrorKind::usage, "[tokenizer] --pre-tokenizer: " + wrong);
  throw Error(ErrorKind::unsupported,
              "[tokenizer] tokenizer.ggml.pre: " + wrong + "; --pre-tokenizer NAME takes one of these instead");
}

}  // namespace couplet::text
