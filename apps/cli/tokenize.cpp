// couplet tokenize: text to tokens, a row each, and ids back to text.

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "generate.h"
#include "json_lines.h"
#include "session.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

using Json = nlohmann::ordered_json;

struct TokenizeArguments {
  CommonOptions common;
  std::optional<std::string> text;
  bool bos = false, special = false, batch = false, detokenize = false;
};

bool read_options(Arguments arguments, TokenizeArguments& options) {
  CommandLine line("tokenize", "Shows the tokens of a text, a row each.");
  options.common.add_to(line);
  line.positional("TEXT", options.text, "The text; - or none reads standard input, every byte of it");
  line.flag("--bos", options.bos, "Put BOS first where the model wants one");
  line.flag("--special", options.special, "Read special tokens out of the text");
  line.flag("--batch", options.batch, "Read lines {\"text\"} on stdin, write lines {\"ids\"}");
  line.flag("--detokenize", options.detokenize,
            "Ids back to text: TEXT is \"1 2 3\"; with --batch lines {\"ids\"}");
  return line.parse(arguments);
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

void show_tokens(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool json) {
  if (!json) print(bold(fmt::format("{:>8}  {:<24} {:<24} kind", "id", "text", "bytes")) + "\n");
  for (const TokenId id : ids) {
    const std::string bytes = tokenizer.bytes(id, true);
    const char* kind = name(tokenizer.kind(id));
    if (json) {
      print(dump_line({{"id", id},
                       {"text", bytes},
                       {"bytes", std::vector<std::uint8_t>(bytes.begin(), bytes.end())},
                       {"kind", kind}}));
    } else {
      print(fmt::format("{:>8}  {} {} {}\n", id, fit("\"" + visible(bytes) + "\"", 24), fit(hex(bytes), 24),
                        kind));
    }
  }
}

std::vector<TokenId> parse_ids(std::string_view text, int vocab_size) {
  constexpr std::string_view kBetween = " ,\t\n\r[]";
  std::vector<TokenId> ids;
  while (true) {
    const std::size_t begin = std::min(text.find_first_not_of(kBetween), text.size());
    text.remove_prefix(begin);
    if (text.empty()) return ids;
    const std::size_t end = std::min(text.find_first_of(kBetween), text.size());
    const std::string what = fmt::format("ids[{}]", ids.size());
    ids.push_back(static_cast<TokenId>(parse_integer(what, text.substr(0, end), 0, vocab_size - 1)));
    text.remove_prefix(end);
  }
}

int run_batch(const TokenizeArguments& options, const Tokenizer& tokenizer) {
  if (options.text)
    throw Error(ErrorKind::usage, "[tokenize] --batch: expected lines on standard input, got TEXT too");
  LineReader reader("-");
  for (std::string line; reader.next(line);) {
    print(at_line("tokenize", reader.number(), [&] {
      if (options.detokenize) {
        const std::vector<TokenId> ids = parse_ids_line(line, tokenizer.vocab_size());
        return dump_line({{"text", detokenize(tokenizer, ids, options.special)}});
      }
      const std::string text = parse_text_line(line);
      return dump_line({{"ids", tokenizer.tokenize(text, {.bos = options.bos, .special = options.special})}});
    }));
  }
  return 0;
}

}  // namespace

int tokenize_command(Arguments arguments) {
  TokenizeArguments options;
  if (!read_options(arguments, options)) return 0;
  const auto checkpoint = open_checkpoint(options.common);
  const Tokenizer& tokenizer = checkpoint->tokenizer();
  if (options.batch) return run_batch(options, tokenizer);
  const bool from_input = !options.text || *options.text == "-";
  const std::string text = from_input ? read_standard_input() : *options.text;
  if (options.detokenize) {
    const std::string back = detokenize(tokenizer, parse_ids(text, tokenizer.vocab_size()), options.special);
    print(options.common.json ? dump_line({{"text", back}})
                              : (output_is_terminal() ? harmless(back) : back) + "\n");
    return 0;
  }
  show_tokens(tokenizer, tokenizer.tokenize(text, {.bos = options.bos, .special = options.special}),
              options.common.json);
  const std::size_t lost = tokenizer.inexpressible(text);
  if (lost > 0) note(fmt::format("{} characters are not in the vocabulary and became U+FFFD", lost));
  return 0;
}

}  // namespace couplet::cli
