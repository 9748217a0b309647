#include "server/served_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "server/api_error.h"

namespace couplet::server {
namespace {

std::string name_of(const CheckpointSummary& summary, const ServerOptions& options) {
  if (!options.model_name.empty()) return options.model_name;
  return summary.name.empty() ? summary.family : summary.name;
}

int limit_of(int option, int context) { return option > 0 ? std::min(option, context) : context; }

}  // namespace

ServedModel::ServedModel(const Engine& engine, const ServerOptions& server_options, const MachinePeaks& peaks)
    : checkpoint(engine.checkpoint()), info(engine.info()), options(server_options), machine(peaks) {
  const CheckpointSummary& summary = checkpoint.summary();
  name = name_of(summary, options);
  fingerprint = fmt::format("fp_{}_n{}_{}_{}_{}", checkpoint.weights_id(), info.numerics_version, couplet::name(info.precision),
                            couplet::name(info.cache_format), info.context);
  created = static_cast<std::int64_t>(std::time(nullptr));
  defaults = default_sampling(summary.sampling);
  vocab_size = summary.vocab_size;
  max_prompt_tokens = limit_of(options.max_prompt_tokens, info.context);
  max_output_tokens = limit_of(options.max_output_tokens, info.context);
  const ChatTemplate* chat_template = checkpoint.chat_template();
  has_template = chat_template != nullptr;
  template_knows_developer = has_template && chat_template->source().find("developer") != std::string::npos;
}

void ServedModel::require(const std::string& wanted, const std::string& param) const {
  if (wanted == name) return;
  throw ApiError(fmt::format("model: expected {}, the one that is served here, got {}", shown(name), shown(wanted)), param,
                 "model_not_found", 404);
}

Json ServedModel::card() const {
  const CheckpointSummary& summary = checkpoint.summary();
  return {{"id", name},
          {"object", "model"},
          {"created", created},
          {"owned_by", "couplet"},
          {"max_model_len", info.context},
          {"system_fingerprint", fingerprint},
          {"meta",
           {{"family", summary.family},
            {"n_vocab", summary.vocab_size},
            {"n_ctx_train", summary.context_length},
            {"n_embd", summary.hidden_size},
            {"n_params", summary.num_parameters},
            {"size", summary.file_bytes},
            {"has_chat_template", has_template},
            {"machine",
             {{"kernels", info.kernels},
              {"threads", info.num_threads},
              {"int8_operations_per_s", machine.int8_operations_per_s},
              {"float_operations_per_s", machine.float_operations_per_s},
              {"read_bytes_per_s", machine.read_bytes_per_s}}}}}};
}

}  // namespace couplet::server
