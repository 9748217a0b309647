#pragma once
// What stands on the command line, read strictly: a value that is not exactly what an option takes throws
// Error{usage} that says what was expected and what came. One CommandLine a subcommand; the groups here are
// shared by several.

#include <CLI/App.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "couplet/convert.h"
#include "couplet/engine.h"
#include "couplet/request.h"

namespace couplet::cli {

using Arguments = std::span<const std::string>;

class CommandLine {
 public:
  CommandLine(const std::string& command, const std::string& about);

  // An option with a value. `take` gets the text, valid UTF-8 where `value` is "TEXT"; given twice it is an
  // error, unless `repeated`.
  using Take = std::function<void(const std::string& text)>;
  void option(const std::string& names, const std::string& value, const std::string& help, Take take,
              bool repeated = false);
  void flag(const std::string& names, bool& target, const std::string& help);
  void positional(const std::string& name, std::string& target, const std::string& help);
  void positional(const std::string& name, std::optional<std::string>& target, const std::string& help);
  void positionals(const std::string& name, std::vector<std::string>& targets,
                   const std::string& help);  // one or more
  void integer(const std::string& names, int& target, int least, int greatest, const std::string& help);

  // False where --help or --version was answered: nothing is left to do.
  bool parse(Arguments arguments);

 private:
  CLI::App app_;
};

// A whole number in [least, greatest]; a finite number in [least, greatest]. `what` names the option.
std::int64_t parse_integer(std::string_view what, std::string_view text, std::int64_t least,
                           std::int64_t greatest);
double parse_number(std::string_view what, std::string_view text, double least, double greatest);
std::uint64_t parse_seed(std::string_view what, std::string_view text);
// "128,512,2048".
std::vector<int> parse_list(std::string_view what, std::string_view text, int least, int greatest);

std::string weight_type_names();  // "q4_0, q4_1, ..."
std::string parse_weight_type(std::string_view what, const std::string& text);

// The options that every command has.
struct CommonOptions {
  std::string model;
  OpenOptions open;      // the pre-tokenizer, whether weights are quantized
  EngineOptions engine;  // threads, precision, cache format, context
  bool json = false;
  bool quiet = false;

  // MODEL first, then the options.
  void add_to(CommandLine& line, bool needs_model = true);
};

// The options of run, chat and explain; what was not given stays empty.
struct SamplingArguments {
  std::optional<float> temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int> top_k;
  std::optional<std::uint64_t> seed;
  std::vector<std::pair<TokenId, float>> logit_bias;
  StopOptions stop;
  std::optional<int> logprobs;  // alternatives reported with every token

  void add_to(CommandLine& line);
  // What was not given is the model's own default where it has any, else SamplingOptions'. Draws a seed
  // unless one was given or nothing is drawn. Throws for a logit bias outside the vocabulary.
  SamplingOptions resolve(const CheckpointSummary& model) const;
  bool seed_was_drawn(const SamplingOptions& resolved) const { return !seed && resolved.temperature > 0; }
};

// The text of an argument, or all of standard input where it is missing or "-", less one newline at its end.
// Throws Error{usage} unless it is valid UTF-8 and not empty.
std::string prompt_text(const std::optional<std::string>& argument);
std::string read_standard_input();
// Offset of the first byte that is no UTF-8; npos: all of it is.
std::size_t find_invalid_utf8(std::string_view text);
// Throws Error{usage} that names `what` and the byte.
void require_utf8(std::string_view what, std::string_view text);

}  // namespace couplet::cli
