#include "server/reply_figures.h"

#include <algorithm>
#include <cmath>

#include "story/ledger_json.h"

namespace couplet::server {
namespace {

constexpr Clock::time_point kNever{};

double to_thousandths(double value) { return std::round(value * 1000) / 1000; }

double ms_between(Clock::time_point from, Clock::time_point to) {
  if (from == kNever || to == kNever || to < from) return 0;
  return to_thousandths(std::chrono::duration<double, std::milli>(to - from).count());
}

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return from == kNever || to == kNever ? -1 : std::chrono::duration<double>(to - from).count();
}

double ratio(double amount, double of) { return of > 0 ? to_thousandths(amount / of) : 0; }

}  // namespace

void ReplyFigures::begin(std::vector<int> prompt_tokens, int num_choices) {
  prompt_tokens_ = std::move(prompt_tokens);
  num_choices_ = static_cast<std::size_t>(num_choices);
  choices_.resize(prompt_tokens_.size() * num_choices_);
}

void ReplyFigures::note(const StepPart& part, bool counts) {
  Choice& choice = choices_[static_cast<std::size_t>(part.choice)];
  choice.cached += part.step.num_cached;
  if (part.step.num_rows > 0 && first_step_ == kNever) first_step_ = part.began;
  if (part.step.num_rows > 0 && part.step.stage == Stage::prefill) {
    choice.prefilled += part.step.num_rows;
    last_prefill_ = part.ended;
  }
  if (counts) choice.completion += 1;
  if (part.token >= 0 && first_token_ == kNever) first_token_ = part.ended;
  last_step_ = part.ended;
}

int ReplyFigures::prompt_tokens() const {
  int sum = 0;
  for (const int tokens : prompt_tokens_) sum += tokens;
  return sum;
}

// Each prompt's first choice tells what was there before this request; the others may find what that one left.
int ReplyFigures::cached_tokens() const {
  int sum = 0;
  for (std::size_t i = 0; i < choices_.size(); i += num_choices_) sum += choices_[i].cached;
  return sum;
}

Json ReplyFigures::usage() const {
  int completion = 0;
  for (const Choice& choice : choices_) completion += choice.completion;
  return {{"prompt_tokens", prompt_tokens()},
          {"completion_tokens", completion},
          {"total_tokens", prompt_tokens() + completion},
          {"prompt_tokens_details", {{"cached_tokens", cached_tokens()}}}};
}

Json ReplyFigures::timings() const {
  int prefilled = 0, completion = 0, decoded = 0;
  for (const Choice& choice : choices_) {
    prefilled += choice.prefilled;
    completion += choice.completion;
    decoded += std::max(choice.completion - 1, 0);  // the first comes from prefill
  }
  const double prompt_ms = ms_between(first_step_, last_prefill_);
  const double predicted_ms = ms_between(first_token_, last_step_);
  return {{"cache_n", cached_tokens()},
          {"prompt_n", prefilled},
          {"prompt_ms", prompt_ms},
          {"prompt_per_token_ms", ratio(prompt_ms, prefilled)},
          {"prompt_per_second", ratio(1000 * prefilled, prompt_ms)},
          {"predicted_n", completion},
          {"predicted_ms", predicted_ms},
          {"predicted_per_token_ms", ratio(predicted_ms, decoded)},
          {"predicted_per_second", ratio(1000 * decoded, predicted_ms)},
          {"queue_ms", ms_between(submitted_, first_step_)},
          {"ttft_ms", ms_between(received_, first_token_)}};
}

Json ReplyFigures::progress(const StepPart& part) const {
  const auto index = static_cast<std::size_t>(part.choice);
  const int total = prompt_tokens_[index / num_choices_];
  return {{"total", total},
          {"cache", choices_[index].cached},
          {"processed", std::min(part.step.first_position + part.step.num_rows, total)},
          {"time_ms", ms_between(first_step_, part.ended)}};
}

RequestFigures ReplyFigures::request_figures() const {
  RequestFigures figures;
  figures.prompt_tokens = prompt_tokens();
  figures.cached_tokens = cached_tokens();
  for (const Choice& choice : choices_) figures.completion_tokens += choice.completion;
  figures.queue_s = seconds_between(submitted_, first_step_);
  figures.prefill_s = seconds_between(first_step_, first_token_);
  figures.decode_s = seconds_between(first_token_, last_step_);
  figures.ttft_s = seconds_between(received_, first_token_);
  figures.total_s = seconds_between(received_, Clock::now());
  return figures;
}

Json ledger_entry(const StepPart& part, const ServedModel& model) {
  Json entry = story::ledger_entry(*part.record, part.step, model.machine, model.tokenizer());
  entry["began_ms"] = ms_between(model.loaded, part.began);
  return entry;
}

}  // namespace couplet::server
