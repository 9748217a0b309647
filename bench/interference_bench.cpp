// What a long prompt costs those who are being answered, and they it: four streams decode, alone and beside a prompt of
// 4,000 tokens, which also runs alone, all in turn. Then eight streams together. Prints ratios: the targets are a p99 of
// time between tokens of at most twice the idle one and a first token within twice its time alone (1.3 times with a
// target of 20 ms). Usage: interference_bench [MODEL.gguf [rounds
// [prompt_tokens [threads]]]]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "couplet/engine.h"

namespace {

using namespace couplet;
using Clock = std::chrono::steady_clock;

constexpr int kStreams = 4;
constexpr int kStreamPrompt = 64;
constexpr int kManyStreams = 8;
constexpr int kManyTokens = 256;  // each
constexpr int kManyPrompt = 16;

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

class Bench {
 public:
  Bench(const std::shared_ptr<const Checkpoint>& checkpoint, int prompt_tokens, int num_threads, double itl_target_ms)
      : prompt_tokens_(prompt_tokens) {
    EngineOptions options;
    options.context = prompt_tokens + 4096;
    options.num_threads = num_threads;
    options.itl_target_ms = itl_target_ms;
    engine_ = Engine::load(checkpoint, options);
  }

  void round() {
    time_alone();
    for (int i = 0; i < kStreams; ++i) submit(kStreamPrompt, prompt_tokens_ + 2048);
    while (engine_->last_step().num_decode_rows < kStreams) step(nullptr);
    decode(idle_);
    time_loaded();
    decode(idle_);
    for (const auto& [id, last] : last_token_) engine_->cancel(id);
    while (engine_->has_work()) step(nullptr);
  }

  // Tokens per second of all streams, their prompts not counted.
  double many_streams() {
    for (int i = 0; i < kManyStreams; ++i) submit(kManyPrompt, kManyTokens);
    while (engine_->last_step().num_decode_rows < kManyStreams) step(nullptr);
    const auto began = Clock::now();
    int tokens = 0;
    while (engine_->has_work()) {
      step(nullptr);
      tokens += engine_->last_step().num_decode_rows;
    }
    return tokens / ms_between(began, Clock::now()) * 1e3;
  }

  void report(const char* name) const {
    const double idle_99 = percentile(idle_, 0.99), loaded_99 = percentile(loaded_, 0.99);
    const double alone = percentile(alone_ms_, 0.5), beside = percentile(beside_ms_, 0.5);
    std::printf("%-14s between tokens, ms: idle p50 %6.2f p99 %6.2f, loaded p50 %6.2f p99 %6.2f; p99 ratio %.2f, p50 ratio %.2f\n",
                name, percentile(idle_, 0.5), idle_99, percentile(loaded_, 0.5), loaded_99, loaded_99 / idle_99,
                percentile(loaded_, 0.5) / percentile(idle_, 0.5));
    std::printf("%-14s first token, ms: alone %.0f, beside %d streams %.0f; ratio %.2f; rows a step p10 %.0f p50 %.0f p90 %.0f\n",
                name, alone, kStreams, beside, beside / alone, percentile(rows_, 0.1), percentile(rows_, 0.5), percentile(rows_, 0.9));
  }

 private:
  std::vector<TokenId> tokens(int count) {
    std::vector<TokenId> ids;
    const auto vocab_size = static_cast<std::uint32_t>(engine_->checkpoint().tokenizer().vocab_size());
    for (int i = 0; i < count; ++i) {
      random_ = random_ * 1664525U + 1013904223U;
      ids.push_back(static_cast<TokenId>((random_ >> 8) % vocab_size));
    }
    return ids;
  }

  RequestId submit(int num_prompt, int max_tokens) {
    Request request;
    request.prompt = tokens(num_prompt);
    request.sampling.temperature = 0;
    request.stop.max_tokens = max_tokens;
    request.stop.ignore_end = true;
    const SubmitResult result = engine_->submit(std::move(request));
    if (!result) {
      std::fprintf(stderr, "%s\n", result.refusal.c_str());
      std::exit(1);
    }
    return result.id;
  }

  // Times between the tokens of each stream go to `gaps`; returns whether `awaited` got its first token.
  bool step(std::vector<double>* gaps, RequestId awaited = 0) {
    bool came = false;
    const auto events = engine_->step();
    const auto now = Clock::now();
    for (const Event& event : events) {
      came |= event.id == awaited;
      const auto last = last_token_.find(event.id);
      if (event.stop != StopReason::none) {
        last_token_.erase(event.id);
      } else if (last == last_token_.end()) {
        last_token_[event.id] = now;
      } else {
        if (gaps != nullptr && event.id != awaited) gaps->push_back(ms_between(last->second, now));
        last->second = now;
      }
    }
    return came;
  }

  void decode(std::vector<double>& gaps) {
    for (int i = 0; i < 150; ++i) step(&gaps);
  }

  void time_alone() {
    const RequestId id = submit(prompt_tokens_, 1);
    const auto began = Clock::now();
    while (!step(nullptr, id)) {
    }
    alone_ms_.push_back(ms_between(began, Clock::now()));
  }

  void time_loaded() {
    const RequestId id = submit(prompt_tokens_, 1);
    const auto began = Clock::now();
    while (!step(&loaded_, id)) rows_.push_back(engine_->last_step().num_prefill_rows);
    beside_ms_.push_back(ms_between(began, Clock::now()));
  }

  int prompt_tokens_;
  std::unique_ptr<Engine> engine_;
  std::uint32_t random_ = 1;
  std::map<RequestId, Clock::time_point> last_token_;
  std::vector<double> idle_, loaded_, alone_ms_, beside_ms_, rows_;
};

}  // namespace

int main(int argc, char** argv) {
  const char* home = std::getenv("HOME");
  const std::string fallback = std::string(home != nullptr ? home : ".") + "/.cache/couplet/smollm2.gguf";
  const auto checkpoint = Checkpoint::open(std::filesystem::path(argc > 1 ? argv[1] : fallback));
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  const int prompt_tokens = argc > 3 ? std::atoi(argv[3]) : 4000;
  const int num_threads = argc > 4 ? std::atoi(argv[4]) : 0;
  Bench by_default(checkpoint, prompt_tokens, num_threads, 0), with_target(checkpoint, prompt_tokens, num_threads, 20);
  double tokens_per_s = 0;
  for (int i = 0; i < rounds; ++i) {
    by_default.round();
    with_target.round();
    tokens_per_s = std::max(tokens_per_s, by_default.many_streams());
  }
  by_default.report("default");
  with_target.report("target 20 ms");
  std::printf("%d streams together: %.0f tokens/s\n", kManyStreams, tokens_per_s);
  return 0;
}
