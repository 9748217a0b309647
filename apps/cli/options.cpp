#include "options.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <CLI/Config.hpp>
#include <CLI/Error.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "couplet/error.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

constexpr int kMaxThreads = 1024;
constexpr float kMaxBias = 1e6F;  // far beyond any logit, and its sum with one stays finite
constexpr float kMaxFactor = 1e6F;

[[noreturn]] void refuse(std::string_view what, std::string_view expected, std::string_view got) {
  throw Error(ErrorKind::usage, fmt::format("[options] {}: expected {}, got \"{}\"", what, expected, got));
}

template <typename Number>
bool read_whole(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

CommandLine::Take number_into(const std::string& what, std::optional<float>& target, double least,
                              double greatest) {
  return [=, &target](const std::string& text) {
    target = static_cast<float>(parse_number(what, text, least, greatest));
  };
}

std::pair<TokenId, float> parse_bias(const std::string& text) {
  const std::size_t equals = text.find('=');
  TokenId id = 0;
  if (equals == std::string::npos || !read_whole(std::string_view(text).substr(0, equals), id) || id < 0)
    refuse("--logit-bias", "ID=BIAS with a token id and a number", text);
  const double bias =
      parse_number("--logit-bias", std::string_view(text).substr(equals + 1), -kMaxBias, kMaxBias);
  return {id, static_cast<float>(bias)};
}

}  // namespace

CommandLine::CommandLine(const std::string& command, const std::string& about)
    : app_(about, "couplet " + command) {
  app_.set_help_flag("-h,--help", "Print this and exit");
  app_.set_version_flag("--version", "couplet " COUPLET_VERSION, "Print the version and exit");
  app_.get_formatter()->column_width(34);
}

void CommandLine::option(const std::string& names, const std::string& value, const std::string& help,
                         Take take, bool repeated) {
  // A path may be any bytes; a TEXT goes to the model.
  const CLI::callback_t each = [take = std::move(take), names,
                                is_text = value == "TEXT"](const CLI::results_t& texts) {
    for (const std::string& text : texts) {
      if (is_text) require_utf8(names, text);
      take(text);
    }
    return true;
  };
  CLI::Option* added = app_.add_option(names, each, help)->type_name(value)->allow_extra_args(false);
  if (repeated) added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandLine::flag(const std::string& names, bool& target, const std::string& help) {
  app_.add_flag_callback(names, [&target] { target = true; }, help);
}

void CommandLine::positional(const std::string& name, std::string& target, const std::string& help) {
  option(name, "", help, [&target](const std::string& text) { target = text; });
  app_.get_option(name)->required();
}

void CommandLine::positional(const std::string& name, std::optional<std::string>& target,
                             const std::string& help) {
  option(name, "", help, [&target](const std::string& text) { target = text; });
}

void CommandLine::positionals(const std::string& name, std::vector<std::string>& targets,
                              const std::string& help) {
  app_.add_option(
          name, [&targets](const CLI::results_t& texts) { return targets = texts, true; }, help)
      ->type_name("")
      ->required()
      ->expected(1, -1)
      ->allow_extra_args();  // CLI11 gives a positional no more than the minimum without it
}

void CommandLine::integer(const std::string& names, int& target, int least, int greatest,
                          const std::string& help) {
  option(names, "N", help, [=, &target](const std::string& text) {
    target = static_cast<int>(parse_integer(names, text, least, greatest));
  });
}

bool CommandLine::parse(Arguments arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app_.parse(std::move(reversed));
    return true;
  } catch (const CLI::CallForHelp&) {
    print(app_.help());
  } catch (const CLI::CallForVersion&) {
    print("couplet " COUPLET_VERSION "\n");
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::usage, fmt::format("{}; see {} --help", error.what(), app_.get_name()));
  }
  return false;
}

std::int64_t parse_integer(std::string_view what, std::string_view text, std::int64_t least,
                           std::int64_t greatest) {
  std::int64_t value = 0;
  if (!read_whole(text, value) || value < least || value > greatest)
    refuse(what, fmt::format("a whole number from {} to {}", least, greatest), text);
  return value;
}

double parse_number(std::string_view what, std::string_view text, double least, double greatest) {
  double value = 0;
  if (!read_whole(text, value) || !(value >= least && value <= greatest))
    refuse(what, fmt::format("a number from {} to {}", least, greatest), text);
  return value;
}

std::uint64_t parse_seed(std::string_view what, std::string_view text) {
  std::uint64_t value = 0;
  if (!read_whole(text, value)) refuse(what, "a whole number from 0 to 2^64 - 1", text);
  return value;
}

std::vector<int> parse_list(std::string_view what, std::string_view text, int least, int greatest) {
  std::vector<int> values;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    values.push_back(static_cast<int>(parse_integer(what, text.substr(begin, end - begin), least, greatest)));
    begin = end + 1;
  }
  return values;
}

std::string weight_type_names() {
  std::string names;
  for (const std::string_view name : weight_types()) names.append(names.empty() ? "" : ", ").append(name);
  return names;
}

std::string parse_weight_type(std::string_view what, const std::string& text) {
  const std::vector<std::string_view> types = weight_types();
  if (std::ranges::find(types, text) == types.end()) refuse(what, "one of " + weight_type_names(), text);
  return text;
}

void CommonOptions::add_to(CommandLine& line, bool needs_model) {
  const std::string about = "A GGUF file, a catalogue name (smollm2, gemma3) or what was pulled (hf.co/OWNER/NAME)";
  if (needs_model) {
    line.positional("MODEL", model, about);
  } else {
    line.option("MODEL", "", about, [this](const std::string& text) { model = text; });
  }
  line.integer("--threads", engine.num_threads, 1, kMaxThreads, "Threads, at most as many as the system has CPUs for us; default: so many");
  line.option("--precision", "fast|fine", "Of activations; default: fast", [this](const std::string& text) {
    if (text != "fast" && text != "fine") refuse("--precision", "fast or fine", text);
    engine.precision = text == "fine" ? Precision::fine : Precision::fast;
  });
  line.option("--quantize", "T", "Quantize float weights as they are read: " + weight_type_names(),
              [this](const std::string& text) { open.quantize = parse_weight_type("--quantize", text); });
  line.option("--cache-format", "q16|f16", "Of keys and values; default: q16", [this](const std::string& text) {
    if (text != "q16" && text != "f16") refuse("--cache-format", "q16 or f16", text);
    engine.cache_format = text == "f16" ? CacheFormat::f16 : CacheFormat::q16;
  });
  line.integer("--context", engine.context, 1, INT_MAX,
               "Positions a sequence may hold; default: the model's, lowered to what memory allows");
  line.option("--pre-tokenizer", "NAME", "How byte-level BPE cuts a text, where the file names a way that is wrong or not known",
              [this](const std::string& text) { open.pre_tokenizer = text; });
  line.flag("--json", json, "Answer in JSON");
  line.flag("--quiet", quiet, "Nothing on stderr but errors");
}

void SamplingArguments::add_to(CommandLine& line) {
  line.option("--max-tokens", "N", "At most so many tokens; default: what the context holds",
              [this](const std::string& text) {
                stop.max_tokens = static_cast<int>(parse_integer("--max-tokens", text, 0, INT_MAX));
              });
  line.option("--temperature", "T", "0 takes the best token each time; default: the model's own, else 0.8",
              number_into("--temperature", temperature, 0, 100));
  line.option("--top-k", "K", "Only the K best tokens; 0: off", [this](const std::string& text) {
    top_k = static_cast<int>(parse_integer("--top-k", text, 0, INT_MAX));
  });
  line.option("--top-p", "P",
              "Only the best tokens that make up P together; default: the model's own, else 0.95",
              [this](const std::string& text) {
                top_p = static_cast<float>(parse_number("--top-p", text, 0, 1));
                if (!(*top_p > 0)) refuse("--top-p", "a number above 0, at most 1", text);
              });
  line.option("--min-p", "P", "Only tokens with P times the best one's probability",
              number_into("--min-p", min_p, 0, 1));
  line.option("--repetition-penalty", "X", "Makes tokens of prompt and reply less likely; 1: off",
              [this](const std::string& text) {
                repetition_penalty =
                    static_cast<float>(parse_number("--repetition-penalty", text, 0, kMaxFactor));
                if (!(*repetition_penalty >= 1 / kMaxFactor))
                  refuse("--repetition-penalty", "a number above 0", text);
              });
  line.option("--presence-penalty", "X", "Lowers tokens that the reply has, once",
              number_into("--presence-penalty", presence_penalty, -2, 2));
  line.option("--frequency-penalty", "X", "Lowers tokens each time the reply has them",
              number_into("--frequency-penalty", frequency_penalty, -2, 2));
  line.option(
      "--logit-bias", "ID=BIAS", "Adds to a token's logit (may be repeated)",
      [this](const std::string& text) { logit_bias.push_back(parse_bias(text)); }, true);
  line.option(
      "--stop", "TEXT", "Ends the reply before this text (may be repeated)",
      [this](const std::string& text) {
        if (text.empty()) refuse("--stop", "some text", text);
        stop.texts.push_back(text);
      },
      true);
  line.option("--seed", "N", "Of the draws; default: a new one each time, printed",
              [this](const std::string& text) { seed = parse_seed("--seed", text); });
  line.flag("--ignore-eos", stop.ignore_end, "Go on past the model's own end");
  line.option("--logprobs", "K", "Log probabilities of each token and of the K best",
              [this](const std::string& text) {
                logprobs = static_cast<int>(parse_integer("--logprobs", text, 0, kMaxAlternatives));
              });
}

SamplingOptions SamplingArguments::resolve(const CheckpointSummary& model) const {
  SamplingOptions options = default_sampling(model.sampling);
  options.temperature = temperature.value_or(options.temperature);
  options.top_k = top_k.value_or(options.top_k);
  options.top_p = top_p.value_or(options.top_p);
  options.min_p = min_p.value_or(options.min_p);
  options.repetition_penalty = repetition_penalty.value_or(options.repetition_penalty);
  options.presence_penalty = presence_penalty.value_or(options.presence_penalty);
  options.frequency_penalty = frequency_penalty.value_or(options.frequency_penalty);
  options.logit_bias = logit_bias;
  for (const auto& [id, bias] : logit_bias) {
    if (id >= model.vocab_size)
      refuse("--logit-bias", fmt::format("a token id from 0 to {}", model.vocab_size - 1),
             std::to_string(id));
  }
  // 32 bits are enough to tell replies apart and short enough to type again.
  options.seed = seed ? *seed : options.temperature > 0 ? std::random_device{}() : 0;
  return options;
}

std::string read_standard_input() {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      wait_until_ready(STDIN_FILENO, POLLIN);
      continue;
    }
    if (count < 0) throw Error(ErrorKind::io, std::string("[input] standard input: ") + std::strerror(errno));
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() > kMaxBytes)
      throw Error(ErrorKind::io, "[input] standard input: expected at most 1 GiB, got more");
  }
}

std::size_t find_invalid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

void require_utf8(std::string_view what, std::string_view text) {
  const std::size_t invalid = find_invalid_utf8(text);
  if (invalid != std::string_view::npos)
    throw Error(ErrorKind::usage,
                fmt::format("[options] {}: expected UTF-8, got byte 0x{:02x} at offset {}", what,
                            static_cast<unsigned char>(text[invalid]), invalid));
}

std::string prompt_text(const std::optional<std::string>& argument) {
  const bool from_input = !argument || *argument == "-";
  std::string text = from_input ? read_standard_input() : *argument;
  if (from_input && text.ends_with('\n')) text.pop_back();
  require_utf8("PROMPT", text);
  if (text.empty()) throw Error(ErrorKind::usage, "[options] PROMPT: expected some text, got none");
  return text;
}

}  // namespace couplet::cli
