// The fields that chat completions and completions have in common: sampling, stops, limits, and how the reply is told.

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>

#include "server/api_error.h"
#include "server/generation_plan.h"
#include "server/token_text.h"

namespace couplet::server {
namespace {

// Within the engine's own bounds; a check before queueing gives the field's name.
constexpr std::size_t kMaxStopTexts = 1024, kMaxStopCharacters = 1024;
constexpr double kMaxTemperature = 2, kMaxPenalty = 2, kMaxBias = 100, kMaxRepetitionPenalty = 1e6;
constexpr int kMaxPriority = 100;
constexpr int kLedgerAlternatives = 5;  // in a ledger, where logprobs ask for no more

std::uint64_t read_seed(const Fields& fields, bool draws) {
  const Json* seed = fields.find("seed");
  // 32 bits are enough to tell replies apart.
  if (seed == nullptr) return draws ? std::random_device{}() : 0;
  if (seed->is_number_unsigned()) return seed->get<std::uint64_t>();
  const std::optional<std::int64_t> number = whole_number(*seed);
  if (!number) refuse_value(fields.path("seed"), "a whole number from -2^63 to 2^64 - 1", *seed);
  return static_cast<std::uint64_t>(*number);
}

void read_logit_bias(const Fields& fields, int vocab_size, SamplingOptions& sampling) {
  const std::optional<Fields> biases = fields.object("logit_bias");
  if (!biases) return;
  for (const auto& [key, value] : biases->json().items()) {
    std::int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || id >= vocab_size)
      refuse_value(fields.path("logit_bias"), fmt::format("token ids from 0 to {} as keys", vocab_size - 1), Json(key));
    // A null here asks for something, so it is read as the number that it is not.
    if (!value.is_number() || !(std::abs(value.get<double>()) <= kMaxBias))
      refuse_value(fmt::format("{}.{}", fields.path("logit_bias"), id), fmt::format("a number from {} to {}", -kMaxBias, kMaxBias), value);
    sampling.logit_bias.emplace_back(static_cast<TokenId>(id), value.get<float>());
  }
}

SamplingOptions read_sampling(const Fields& fields, const ServedModel& model) {
  SamplingOptions sampling = model.defaults;
  const auto take = [&](std::string_view key, double least, double greatest, float& target) {
    if (const auto value = fields.number(key, least, greatest)) target = static_cast<float>(*value);
  };
  take("temperature", 0, kMaxTemperature, sampling.temperature);
  take("top_p", 0, 1, sampling.top_p);
  sampling.top_p = std::max(sampling.top_p, std::numeric_limits<float>::min());  // 0: the best alone
  take("min_p", 0, 1, sampling.min_p);
  take("presence_penalty", -kMaxPenalty, kMaxPenalty, sampling.presence_penalty);
  take("frequency_penalty", -kMaxPenalty, kMaxPenalty, sampling.frequency_penalty);
  for (const char* name : {"repeat_penalty", "repetition_penalty"})  // llama.cpp's name and everybody else's, which wins
    take(name, 1 / kMaxRepetitionPenalty, kMaxRepetitionPenalty, sampling.repetition_penalty);
  if (const auto top_k = fields.integer("top_k", -1, std::numeric_limits<std::int64_t>::max()))
    sampling.top_k = static_cast<int>(std::min<std::int64_t>(*top_k, std::numeric_limits<int>::max()));
  read_logit_bias(fields, model.vocab_size, sampling);
  sampling.seed = read_seed(fields, sampling.temperature > 0);
  return sampling;
}

void read_stop_text(const Json& value, const std::string& path, StopOptions& stop) {
  if (!value.is_string()) refuse_value(path, "a string", value);
  const auto& text = value.get_ref<const std::string&>();
  const std::size_t length = num_characters(text);
  if (length < 1 || length > kMaxStopCharacters)
    refuse_field(path, fmt::format("1 to {} characters", kMaxStopCharacters), std::to_string(length));
  stop.texts.push_back(text);
}

// Of the two fields for it the newer one counts; -1, as other local servers have it, is no limit.
int read_max_tokens(const Fields& fields, const ServedModel& model, int default_max_tokens) {
  const auto read = [&](std::string_view key) {
    const auto limit = fields.integer(key, -1, std::numeric_limits<int>::max());
    if (limit && *limit > model.max_output_tokens && model.options.max_output_tokens > 0)
      refuse_field(fields.path(key), fmt::format("at most {} tokens, this server's limit", model.max_output_tokens), std::to_string(*limit));
    return limit;
  };
  const auto older = read("max_tokens"), newer = read("max_completion_tokens");
  const std::int64_t limit = newer ? *newer : older.value_or(default_max_tokens);
  if (limit < 0) return model.options.max_output_tokens > 0 ? model.max_output_tokens : -1;
  return static_cast<int>(limit);
}

StopOptions read_stop(const Fields& fields, const ServedModel& model, int default_max_tokens) {
  StopOptions stop;
  if (const Json* texts = fields.find("stop")) {
    if (texts->is_array()) {
      if (texts->size() > kMaxStopTexts) refuse_value("stop", fmt::format("at most {} strings", kMaxStopTexts), *texts);
      for (std::size_t i = 0; i < texts->size(); ++i) read_stop_text((*texts)[i], fmt::format("stop[{}]", i), stop);
    } else if (texts->is_string()) {
      read_stop_text(*texts, "stop", stop);
    } else {
      refuse_value("stop", "a string or a list of strings", *texts);
    }
  }
  if (const Json* ids = fields.array("stop_token_ids")) {
    if (ids->size() > kMaxStopTexts) refuse_value("stop_token_ids", fmt::format("at most {} ids", kMaxStopTexts), *ids);
    stop.ids = read_token_ids(*ids, "stop_token_ids", model.vocab_size);
  }
  stop.ignore_end = fields.boolean("ignore_eos").value_or(false);
  stop.max_tokens = read_max_tokens(fields, model, default_max_tokens);
  return stop;
}

ReplyOptions read_reply_options(const Fields& fields) {
  ReplyOptions reply;
  reply.stream = fields.boolean("stream").value_or(false);
  if (const auto options = fields.object("stream_options")) {
    reply.include_usage = options->boolean("include_usage").value_or(false);
    options->boolean("include_obfuscation");
  }
  reply.token_ids = fields.boolean("return_token_ids").value_or(false);
  reply.timings_per_token = fields.boolean("timings_per_token").value_or(false);
  reply.timings = fields.boolean("timings").value_or(false) || reply.timings_per_token;
  reply.progress = fields.boolean("return_progress").value_or(false);
  reply.ledger = fields.boolean("ledger").value_or(false);
  if (const std::string* tier = fields.text("service_tier")) reply.service_tier = *tier;
  return reply;
}

}  // namespace

SharedFields read_shared_fields(const Fields& fields, const ServedModel& model, int default_max_tokens) {
  if (const std::string* name = fields.text("model")) model.require(*name, "model");
  refuse_unsupported_fields(fields);
  SharedFields shared;
  shared.request.sampling = read_sampling(fields, model);
  shared.request.stop = read_stop(fields, model, default_max_tokens);
  shared.request.use_prefix_cache = fields.boolean("cache_prompt").value_or(true);
  shared.request.priority = static_cast<int>(fields.integer("priority", -kMaxPriority, kMaxPriority).value_or(0));
  if (const std::string* salt = fields.text("cache_salt"))
    shared.request.cache_salt = salt->empty() ? 0 : XXH3_64bits(salt->data(), salt->size()) | 1;  // 0 is that of no salt
  shared.num_choices = static_cast<int>(fields.integer("n", 1, model.options.max_choices).value_or(1));
  shared.reply = read_reply_options(fields);
  return shared;
}

GenerationPlan make_plan(SharedFields shared, std::vector<Prompt> prompts, const ServedModel& model, const std::string& param) {
  GenerationPlan plan;
  plan.reply = shared.reply;
  plan.num_choices = shared.num_choices;
  shared.request.log_probabilities = plan.reply.logprobs || plan.reply.ledger;
  shared.request.num_alternatives = std::max(plan.reply.num_alternatives, plan.reply.ledger ? kLedgerAlternatives : 0);
  plan.prompts = std::move(prompts);
  for (std::size_t p = 0; p < plan.prompts.size(); ++p) {
    const std::string path = plan.prompts.size() > 1 ? fmt::format("{}[{}]", param, p) : param;
    const std::vector<TokenId>& ids = plan.prompts[p].ids;
    if (ids.empty()) refuse_field(path, "at least one token", "none");
    if (ids.size() > static_cast<std::size_t>(model.max_prompt_tokens))
      throw ApiError(fmt::format("{}: expected at most {} tokens, the {}, got {} tokens", path, model.max_prompt_tokens,
                                 model.max_prompt_tokens < model.info.context ? "server's limit" : "model's context", ids.size()),
                     path, "context_length_exceeded");
    for (int choice = 0; choice < plan.num_choices; ++choice) {
      Request& request = plan.requests.emplace_back(shared.request);
      request.prompt = ids;
      request.sampling.choice = static_cast<std::uint32_t>(choice);
      if (!plan.reply.echo || !plan.reply.logprobs) continue;
      auto gathered = std::make_shared<PromptLogprobs>(ids, plan.reply.num_alternatives);
      request.on_logits = [gathered](int position, std::span<const float> logits) { gathered->take(position, logits); };
      plan.prompt_logprobs.push_back(std::move(gathered));
    }
  }
  return plan;
}

}  // namespace couplet::server
