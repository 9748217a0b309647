#pragma once
// The one model that this server has, as its routes see it: names, bounds and defaults that requests are checked against.

#include <chrono>
#include <cstdint>
#include <string>

#include "couplet/engine.h"
#include "couplet/machine.h"
#include "server/json.h"
#include "server/options.h"

namespace couplet::server {

struct ServedModel {
  ServedModel(const Engine& engine, const ServerOptions& options, const MachinePeaks& machine = {});

  const Tokenizer& tokenizer() const { return checkpoint.tokenizer(); }
  // Throws ApiError{404, model_not_found} unless `name` is this model's.
  void require(const std::string& name, const std::string& param) const;
  // An entry of /v1/models.
  Json card() const;

  const Checkpoint& checkpoint;
  const EngineInfo& info;
  const ServerOptions& options;
  const MachinePeaks machine;  // zero: not measured
  std::string name;
  std::string fingerprint;   // of all that fixes an answer: weights, numerics version, precision, cache format, context
  std::int64_t created = 0;  // seconds since 1970: when it was loaded
  const std::chrono::steady_clock::time_point loaded = std::chrono::steady_clock::now();
  SamplingOptions defaults;
  int vocab_size = 0;
  int max_prompt_tokens = 0;
  int max_output_tokens = 0;
  bool has_template = false;
  bool template_knows_developer = false;
};

}  // namespace couplet::server
