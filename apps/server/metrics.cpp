#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace couplet::server {
namespace {

using prometheus::Counter, prometheus::Gauge, prometheus::Histogram, prometheus::Labels, prometheus::Registry;
using Buckets = Histogram::BucketBoundaries;

// From a step of a small model to the reply of a large one, on processors.
const Buckets kStepSeconds = {0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.125, 0.25, 0.5, 1, 2.5, 5};
const Buckets kRequestSeconds = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320};
const Buckets kStepRows = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

// One figure under all the names that somebody reads.
template <class Metric>
class Names {
 public:
  void add(Metric& metric) { metrics_.push_back(&metric); }
  void increment(double by) const {
    for (Metric* metric : metrics_) metric->Increment(by);
  }
  void set(double value) const {
    for (Metric* metric : metrics_) metric->Set(value);
  }
  void observe(double value) const {
    for (Metric* metric : metrics_) metric->Observe(value);
  }

 private:
  std::vector<Metric*> metrics_;
};

void increment_to(Counter& counter, double total) {
  if (total > counter.Value()) counter.Increment(total - counter.Value());
}

}  // namespace

struct Metrics::State {
  State(const std::string& model_name, const EngineInfo& info)
      : own{{"model", model_name}}, vllm{{"model_name", model_name}, {"engine", "0"}} {
    add_stages();
    add_engine();
    add_requests();
    add_llama_cpp();
    gauge("couplet_info", "What this server runs, as labels",
          {{"model", model_name},
           {"version", COUPLET_VERSION},
           {"kernels", info.kernels},
           {"numerics_version", std::to_string(info.numerics_version)},
           {"threads", std::to_string(info.num_threads)}})
        .Set(1);
  }

  Counter& counter(const std::string& name, const std::string& help, const Labels& labels) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
  }
  Gauge& gauge(const std::string& name, const std::string& help, const Labels& labels) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels);
  }
  Histogram& histogram(const std::string& name, const std::string& help, const Labels& labels, const Buckets& buckets) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(labels, buckets);
  }
  Labels own_with(const std::string& label, const std::string& value) const {
    Labels labels = own;
    labels[label] = value;
    return labels;
  }

  void add_stages();
  void add_engine();
  void add_requests();
  void add_llama_cpp();

  mutable Registry registry;
  Labels own, vllm;

  // Steps.
  Names<Counter> prefill_tokens, generated_tokens, cached_tokens, preemptions;
  Counter *decode_rows = nullptr, *prompt_tokens = nullptr;
  Counter *matmul_operations = nullptr, *attention_operations = nullptr;
  Counter *weights_bytes = nullptr, *cache_read_bytes = nullptr, *cache_write_bytes = nullptr;
  Histogram *prefill_step = nullptr, *decode_step = nullptr, *mixed_step = nullptr;
  Names<Histogram> step_rows, inter_token;
  Names<Gauge> running, waiting, cache_usage;
  Gauge *pages_total = nullptr, *pages_used = nullptr, *pages_in_tree = nullptr, *prefill_budget = nullptr;
  std::vector<Counter*> prefix_queried, prefix_hit;

  // Requests.
  Names<Histogram> queue, prefill, decode, ttft, total;
  prometheus::Family<Counter>* requests = nullptr;
  prometheus::Family<Counter>* http_requests = nullptr;
  prometheus::Family<Counter>* finished = nullptr;
  Counter* cancels = nullptr;

  // llama.cpp's names that are not another figure's.
  Counter *steps = nullptr, *prompt_seconds = nullptr, *predicted_seconds = nullptr;
  Gauge *prompt_rate = nullptr, *predicted_rate = nullptr, *sequences_a_step = nullptr, *most_tokens = nullptr;
  double prompt_tokens_run = 0, tokens_predicted = 0;  // of ended requests
  std::atomic<double> rows_sum{0};
};

void Metrics::State::add_stages() {
  prefill_tokens.add(counter("couplet_prefill_tokens_total", "Prompt tokens run, cached ones not counted", own));
  prefill_tokens.add(counter("llamacpp:prompt_tokens_total", "Prompt tokens run", {}));
  generated_tokens.add(counter("couplet_generated_tokens_total", "Tokens chosen", own));
  generated_tokens.add(counter("vllm:generation_tokens_total", "Tokens generated", vllm));
  generated_tokens.add(counter("llamacpp:tokens_predicted_total", "Tokens generated", {}));
  cached_tokens.add(counter("couplet_cached_tokens_total", "Prompt tokens taken from the prefix cache", own));
  prompt_tokens = &counter("vllm:prompt_tokens_total", "Prompt tokens, run or cached", vllm);
  decode_rows = &counter("couplet_decode_tokens_total", "Tokens fed back, one row each", own);
  const auto by_stage = [&](const char* stage) {
    return &histogram("couplet_step_seconds", "Time of a step, by the stages in it", own_with("stage", stage), kStepSeconds);
  };
  prefill_step = by_stage("prefill");
  decode_step = by_stage("decode");
  mixed_step = by_stage("mixed");
  step_rows.add(histogram("couplet_step_rows", "Rows of a step", own, kStepRows));
  step_rows.add(histogram("vllm:iteration_tokens_total", "Tokens of an engine step", vllm, kStepRows));
  inter_token.add(histogram("couplet_inter_token_seconds", "Between two tokens of one sequence", own, kStepSeconds));
  inter_token.add(histogram("vllm:inter_token_latency_seconds", "Between two tokens of one sequence", vllm, kStepSeconds));
  const auto operations = [&](const char* kind) {
    return &counter("couplet_operations_total", "Two a multiply-add", own_with("kind", kind));
  };
  matmul_operations = operations("matmul");
  attention_operations = operations("attention");
  const auto bytes = [&](const char* kind) {
    return &counter("couplet_memory_bytes_total", "Bytes of weights and cache that steps went through", own_with("kind", kind));
  };
  weights_bytes = bytes("weights_read");
  cache_read_bytes = bytes("cache_read");
  cache_write_bytes = bytes("cache_written");
}

void Metrics::State::add_engine() {
  running.add(gauge("couplet_sequences_running", "Sequences in prefill or decode", own));
  running.add(gauge("vllm:num_requests_running", "Requests running", vllm));
  running.add(gauge("llamacpp:requests_processing", "Requests running", {}));
  waiting.add(gauge("couplet_sequences_waiting", "Sequences that wait for their turn", own));
  waiting.add(gauge("vllm:num_requests_waiting", "Requests waiting", vllm));
  waiting.add(gauge("llamacpp:requests_deferred", "Requests waiting", {}));
  pages_total = &gauge("couplet_cache_pages", "Pages of the cache, 16 positions each", own);
  pages_used = &gauge("couplet_cache_pages_used", "Pages that sequences or the prefix tree hold", own);
  pages_in_tree = &gauge("couplet_cache_pages_in_tree", "Pages that the prefix tree holds", own);
  prefill_budget = &gauge("couplet_prefill_budget_rows", "Prompt rows that the last step was allowed", own);
  cache_usage.add(gauge("vllm:kv_cache_usage_perc", "Share of the cache in use, 0 to 1", vllm));
  preemptions.add(counter("couplet_preemptions_total", "Sequences that gave their pages back and start over", own));
  preemptions.add(counter("vllm:num_preemptions_total", "Preemptions", vllm));
  prefix_queried = {&counter("couplet_prefix_queried_tokens_total", "Prompt tokens looked up in the prefix tree", own),
                    &counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up", vllm)};
  prefix_hit = {&counter("couplet_prefix_hit_tokens_total", "Prompt tokens found in the prefix tree", own),
                &counter("vllm:prefix_cache_hits_total", "Prompt tokens found", vllm)};
}

void Metrics::State::add_requests() {
  const auto add = [&](Names<Histogram>& names, const std::string& name, const std::string& vllm_name, const std::string& help) {
    names.add(histogram("couplet_" + name + "_seconds", help, own, kRequestSeconds));
    names.add(histogram("vllm:" + vllm_name + "_seconds", help, vllm, kRequestSeconds));
  };
  add(queue, "queue", "request_queue_time", "From being queued to the first row");
  add(prefill, "prefill", "request_prefill_time", "From the first row to the first token");
  add(decode, "decode", "request_decode_time", "From the first token to the last");
  add(ttft, "time_to_first_token", "time_to_first_token", "From the request's arrival to its first token");
  add(total, "request", "e2e_request_latency", "From the request's arrival to its last token");
  requests = &prometheus::BuildCounter().Name("couplet_requests_total").Help("Requests for text that ended").Labels(own)
                  .Register(registry);
  http_requests = &prometheus::BuildCounter().Name("couplet_http_requests_total").Help("HTTP requests answered").Labels(own)
                       .Register(registry);
  finished = &prometheus::BuildCounter().Name("vllm:request_success_total").Help("Requests finished, by reason").Labels(vllm)
                  .Register(registry);
  cancels = &counter("couplet_cancels_total", "Requests whose client left", own);
}

void Metrics::State::add_llama_cpp() {
  steps = &counter("llamacpp:n_decode_total", "Steps of the engine", {});
  prompt_seconds = &counter("llamacpp:prompt_seconds_total", "Time in prefill, summed over requests", {});
  predicted_seconds = &counter("llamacpp:tokens_predicted_seconds_total", "Time in decode, summed over requests", {});
  prompt_rate = &gauge("llamacpp:prompt_tokens_seconds", "Prompt tokens a second of prefill", {});
  predicted_rate = &gauge("llamacpp:predicted_tokens_seconds", "Tokens a second of decode", {});
  sequences_a_step = &gauge("llamacpp:n_busy_slots_per_decode", "Sequences in a step, on average", {});
  most_tokens = &gauge("llamacpp:n_tokens_max", "Most tokens that one sequence came to", {});
}

Metrics::Metrics(const std::string& model_name, const EngineInfo& info) : state_(std::make_unique<State>(model_name, info)) {
  const std::uint64_t bytes = info.cache_bytes;
  state_->gauge("couplet_cache_bytes", "Bytes of the cache, touched only where used", state_->own).Set(static_cast<double>(bytes));
  Labels labels = state_->vllm;
  labels["block_size"] = "16";
  labels["enable_prefix_caching"] = "True";
  state_->gauge("vllm:cache_config_info", "The cache, as labels", labels).Set(1);
}

Metrics::~Metrics() = default;

void Metrics::observe_step(const StepRecord& record) {
  State& s = *state_;
  int chosen = 0, cached = 0, longest = 0;
  for (const SequenceStep& step : record.sequences) {
    chosen += step.choice.id >= 0 ? 1 : 0;
    cached += step.num_cached;
    longest = std::max(longest, step.first_position + step.num_rows);
  }
  s.running.set(record.num_running);
  s.waiting.set(record.num_waiting);
  s.pages_total->Set(record.pages_total);
  s.pages_used->Set(record.pages_used);
  s.pages_in_tree->Set(record.pages_in_tree);
  s.prefill_budget->Set(record.prefill_budget);
  if (record.pages_total > 0) s.cache_usage.set(static_cast<double>(record.pages_used) / record.pages_total);
  s.preemptions.increment(record.num_preempted);
  for (Counter* counter : s.prefix_queried) increment_to(*counter, static_cast<double>(record.prefix_queried_tokens));
  for (Counter* counter : s.prefix_hit) increment_to(*counter, static_cast<double>(record.prefix_hit_tokens));
  const int rows = record.num_prefill_rows + record.num_decode_rows;
  if (rows == 0) return;
  s.prefill_tokens.increment(record.num_prefill_rows);
  s.decode_rows->Increment(record.num_decode_rows);
  s.generated_tokens.increment(chosen);
  s.cached_tokens.increment(cached);
  s.prompt_tokens->Increment(record.num_prefill_rows + cached);
  s.matmul_operations->Increment(static_cast<double>(record.matmul_operations));
  s.attention_operations->Increment(static_cast<double>(record.attention_operations));
  s.weights_bytes->Increment(static_cast<double>(record.weights_bytes));
  s.cache_read_bytes->Increment(static_cast<double>(record.cache_read_bytes));
  s.cache_write_bytes->Increment(static_cast<double>(record.cache_write_bytes));
  Histogram* const by_stage = record.num_decode_rows == 0 ? s.prefill_step : record.num_prefill_rows == 0 ? s.decode_step : s.mixed_step;
  by_stage->Observe(record.step_ms / 1e3);
  s.step_rows.observe(rows);
  s.steps->Increment();
  s.rows_sum = s.rows_sum + static_cast<double>(record.sequences.size());
  s.sequences_a_step->Set(s.rows_sum / s.steps->Value());
  s.most_tokens->Set(std::max(s.most_tokens->Value(), static_cast<double>(longest)));
}

void Metrics::observe_inter_token(double seconds) { state_->inter_token.observe(seconds); }

void Metrics::observe_request(const RequestFigures& figures) {
  State& s = *state_;
  const auto observe = [](const Names<Histogram>& names, double seconds) {
    if (seconds >= 0) names.observe(seconds);
  };
  observe(s.queue, figures.queue_s);
  observe(s.prefill, figures.prefill_s);
  observe(s.decode, figures.decode_s);
  observe(s.ttft, figures.ttft_s);
  observe(s.total, figures.total_s);
  s.requests->Add({{"route", figures.route}, {"status", std::to_string(figures.status)}, {"outcome", figures.outcome}}).Increment();
  if (figures.outcome == "cancelled") s.cancels->Increment();
  if (figures.outcome == "stop" || figures.outcome == "length")
    s.finished->Add({{"finished_reason", figures.outcome}}).Increment();
  if (figures.prefill_s > 0) {
    s.prompt_seconds->Increment(figures.prefill_s);
    s.prompt_tokens_run += figures.prompt_tokens - figures.cached_tokens;
    s.prompt_rate->Set(s.prompt_tokens_run / s.prompt_seconds->Value());
  }
  if (figures.decode_s > 0) {
    s.predicted_seconds->Increment(figures.decode_s);
    s.tokens_predicted += figures.completion_tokens;
    s.predicted_rate->Set(s.tokens_predicted / s.predicted_seconds->Value());
  }
}

void Metrics::observe_http(const std::string& route, int status) {
  state_->http_requests->Add({{"route", route}, {"status", std::to_string(status)}}).Increment();
}

std::string Metrics::text() const { return prometheus::TextSerializer().Serialize(state_->registry.Collect()); }

}  // namespace couplet::server
