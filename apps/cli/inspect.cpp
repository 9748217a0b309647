// couplet inspect: what a model file holds, read from its headers alone; or, with --machine, what it would run on.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "catalogue.h"
#include "commands.h"
#include "generate.h"
#include "inspect_machine.h"
#include "session.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string shown(int number) { return grouped(static_cast<std::uint64_t>(std::max(number, 0))); }

Json describe_token(const Tokenizer& tokenizer, TokenId id) {
  if (id < 0) return nullptr;
  return {{"id", id}, {"text", tokenizer.bytes(id, true)}};
}

// What the file recommends; an empty object: nothing.
Json describe(const SamplingDefaults& sampling) {
  Json json = Json::object();
  if (sampling.temperature) json["temperature"] = *sampling.temperature;
  if (sampling.top_k) json["top_k"] = *sampling.top_k;
  if (sampling.top_p) json["top_p"] = *sampling.top_p;
  if (sampling.min_p) json["min_p"] = *sampling.min_p;
  if (sampling.repetition_penalty) json["repetition_penalty"] = *sampling.repetition_penalty;
  return json;
}

std::uint64_t cache_bytes_of(const Checkpoint& checkpoint, const CommonOptions& common, int context) {
  return checkpoint.cache_bytes_per_position(common.engine.cache_format, common.engine.precision) *
         static_cast<std::uint64_t>(context);
}

Json describe(const Tokenizer& tokenizer) {
  Json ends = Json::array();
  for (const TokenId id : tokenizer.end_ids()) ends.push_back(describe_token(tokenizer, id));
  return {{"family", tokenizer.family()},
          {"pre_tokenizer", tokenizer.pre_tokenizer()},
          {"adds_bos", tokenizer.adds_bos()},
          {"bos", describe_token(tokenizer, tokenizer.bos_id())},
          {"eos", describe_token(tokenizer, tokenizer.eos_id())},
          {"unknown", describe_token(tokenizer, tokenizer.unknown_id())},
          {"ends", ends}};
}

Json to_json(const Checkpoint& checkpoint, const CommonOptions& common, int context) {
  const CheckpointSummary& s = checkpoint.summary();
  const ChatTemplate* chat_template = checkpoint.chat_template();
  const Json template_source = chat_template == nullptr ? Json(nullptr) : Json(chat_template->source());
  if (!s.lacks_weights.empty())
    return {{"name", s.name},
            {"format", s.file_format},
            {"lacks_weights", s.lacks_weights},
            {"tokenizer", describe(checkpoint.tokenizer())},
            {"chat_template", template_source}};
  const std::uint64_t cache_bytes = cache_bytes_of(checkpoint, common, context);
  Json json = {{"name", s.name},
               {"family", s.family},
               {"format", s.file_format},
               {"file_bytes", s.file_bytes},
               {"num_parameters", s.num_parameters},
               {"num_layers", s.num_layers},
               {"hidden_size", s.hidden_size},
               {"intermediate_size", s.intermediate_size},
               {"num_heads", s.num_heads},
               {"num_kv_heads", s.num_kv_heads},
               {"head_dim", s.head_dim},
               {"vocab_size", s.vocab_size},
               {"context_length", s.context_length},
               {"sliding_window", s.sliding_window}};
  for (const TensorTypeSummary& type : s.tensor_types)
    json["tensors"].push_back({{"type", type.type}, {"count", type.count}, {"bytes", type.bytes}});
  json["tokenizer"] = describe(checkpoint.tokenizer());
  json["chat_template"] = template_source;
  json["sampling"] = describe(s.sampling);
  if (!s.quantized_as.empty()) json["quantize"] = s.quantized_as;
  json["memory"] = {{"context", context},
                    {"weights_bytes", s.weights_bytes},
                    {"cache_bytes", cache_bytes},
                    {"total_bytes", s.weights_bytes + cache_bytes}};
  const PackedCopy copy = checkpoint.packed_copy(packed_folder().string());
  json["packed_copy"] = {{"state", name(copy.state)}};
  if (copy.state != PackedCopyState::none) {
    json["packed_copy"]["path"] = copy.path;
    json["packed_copy"]["bytes"] = copy.bytes;
  }
  return json;
}

void row(std::string_view name, const std::string& text) {
  print(fmt::format("{} {}\n", bold(fit(name, 14)), text));
}

std::string describe_tokenizer(const Tokenizer& tokenizer) {
  std::string text =
      fmt::format("{}{}{}, {} tokens", tokenizer.family(), tokenizer.pre_tokenizer().empty() ? "" : " ",
                  tokenizer.pre_tokenizer(), shown(tokenizer.vocab_size()));
  const auto token = [&](TokenId id) {
    return fmt::format("{} ({})", visible(tokenizer.bytes(id, true)), id);
  };
  if (tokenizer.bos_id() >= 0)
    text +=
        fmt::format("; BOS {} {}", token(tokenizer.bos_id()), tokenizer.adds_bos() ? "added" : "not added");
  text += "; ends with";
  for (const TokenId id : tokenizer.end_ids()) text += " " + token(id);
  return text;
}

std::string describe(const PackedCopy& copy) {
  if (copy.state == PackedCopyState::none) return "none is kept";
  return fmt::format("{}, {}: {}", amount(copy.bytes),
                     copy.state == PackedCopyState::present ? "kept" : "written at the next start", visible(copy.path));
}

void show_text_side(const Checkpoint& checkpoint) {
  row("tokenizer", describe_tokenizer(checkpoint.tokenizer()));
  const ChatTemplate* chat_template = checkpoint.chat_template();
  row("template", chat_template == nullptr
                      ? "none: completes raw text"
                      : fmt::format("{} characters of Jinja", chat_template->source().size()));
}

void show_weights(const CheckpointSummary& s) {
  row("family",
      fmt::format("{}, {:.1f} M parameters", visible(s.family), static_cast<double>(s.num_parameters) / 1e6));
  row("layers", fmt::format("{} of hidden_size {}, intermediate_size {}", s.num_layers, s.hidden_size,
                            s.intermediate_size));
  row("attention",
      fmt::format("num_heads {}, num_kv_heads {}, head_dim {}{}", s.num_heads, s.num_kv_heads, s.head_dim,
                  s.sliding_window > 0 ? fmt::format(", sliding window {}", s.sliding_window) : ""));
  row("context", fmt::format("{} positions", shown(s.context_length)));
  std::string tensors;
  for (const TensorTypeSummary& type : s.tensor_types)
    tensors +=
        fmt::format("{}{} x {} ({})", tensors.empty() ? "" : ", ", type.count, type.type, amount(type.bytes));
  row("tensors", tensors + (s.quantized_as.empty() ? "" : fmt::format(", quantized at load: {}", s.quantized_as)));
}

void show(const Checkpoint& checkpoint, const CommonOptions& common, int context) {
  const CheckpointSummary& s = checkpoint.summary();
  row("name", visible(s.name));
  if (!s.lacks_weights.empty()) {
    row("file", visible(s.file_format));
    show_text_side(checkpoint);
    row("weights", "none: " + visible(s.lacks_weights));
    return;
  }
  row("file", fmt::format("{}, {}", visible(s.file_format), amount(s.file_bytes)));
  show_weights(s);
  show_text_side(checkpoint);
  std::string sampling;
  const Json defaults = describe(s.sampling);
  for (const auto& [key, value] : defaults.items())
    sampling += fmt::format("{}{} {:g}", sampling.empty() ? "" : ", ", key, value.get<double>());
  row("sampling", sampling.empty() ? "no defaults of its own" : sampling);
  const std::uint64_t cache_bytes = cache_bytes_of(checkpoint, common, context);
  row("memory", fmt::format("{} weights + {} cache for {} positions = {}", amount(s.weights_bytes),
                            amount(cache_bytes), shown(context), amount(s.weights_bytes + cache_bytes)));
  row("packed copy", describe(checkpoint.packed_copy(packed_folder().string())));
}

}  // namespace

int inspect_command(Arguments arguments) {
  CommandLine line("inspect", "Says what a model file holds and the memory it needs; reads only headers.");
  CommonOptions common;
  bool machine = false;
  common.add_to(line, false);
  line.flag("--machine", machine,
            "Say what this machine has and what would be chosen; needs no MODEL (its peaks read as many bytes as one has)");
  if (!line.parse(arguments)) return 0;
  if (machine) return inspect_machine(common), 0;
  if (common.model.empty())
    throw Error(ErrorKind::usage, "[options] MODEL: expected one, or --machine, got neither");
  const auto checkpoint = open_checkpoint(common);
  const int context =
      common.engine.context > 0 ? common.engine.context : checkpoint->summary().context_length;
  if (common.json) {
    print(dump_line(to_json(*checkpoint, common, context)));
  } else {
    show(*checkpoint, common, context);
  }
  return 0;
}

}  // namespace couplet::cli
