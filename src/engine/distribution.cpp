#include "engine/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/exact_math.h"

namespace couplet::engine {
namespace {

// Candidates this many nats below the best are rarely looked at: the first band that a ranking gathers.
constexpr float kFirstBand = 8;
// Bias and penalties keep a logit within this, so that differences stay finite.
constexpr float kGreatestShaped = 1e37F;

void set_shaped(float& logit, float value) { logit = std::clamp(value, -kGreatestShaped, kGreatestShaped); }

}  // namespace

Distribution::Distribution(const kernels::KernelTable& kernels, int vocab_size)
    : kernels_(&kernels),
      vocab_size_(vocab_size),
      own_ranking_(vocab_size),
      shaped_(static_cast<std::size_t>(vocab_size)),
      counts_(static_cast<std::size_t>(vocab_size)),
      ranking_(vocab_size),
      scaled_(static_cast<std::size_t>(vocab_size)),
      masses_(static_cast<std::size_t>(vocab_size)) {}

bool Distribution::assign(std::span<const float> logits, const SamplingOptions& options, const History& history) {
  COUPLET_CHECK(logits.size() == static_cast<std::size_t>(vocab_size_));
  bool finite = true;
  own_ = logits_ = logits;
  own_best_ = best_ = best_of(own_, finite);
  own_sum_ = 0;
  if (!finite) return false;
  const bool penalizes_reply = options.presence_penalty != 0 || options.frequency_penalty != 0;
  if (!options.logit_bias.empty() || options.repetition_penalty != 1 || penalizes_reply) {
    shape(options, history);
    logits_ = shaped_;
    best_ = best_of(logits_, finite);
  }
  temperature_ = options.temperature < kGreedyBelow ? 0 : options.temperature;
  num_masses_ = 0;
  if (is_greedy()) {
    num_kept_ = 1;
    kept_mass_ = 1;
    last_kept_ = best_;
  } else {
    ranking_.reset(logits_, best_.logit, kFirstBand * temperature_);
    truncate(options);
  }
  return true;
}

Candidate Distribution::best_of(std::span<const float> logits, bool& finite) const {
  const TokenId id = kernels_->argmax(logits.data(), vocab_size_, &finite);
  return {logits[static_cast<std::size_t>(id)], id};
}

void Distribution::shape(const SamplingOptions& options, const History& history) {
  std::ranges::copy(own_, shaped_.begin());
  const auto logit = [this](TokenId id) -> float& { return shaped_[static_cast<std::size_t>(id)]; };
  const auto count = [this](TokenId id) -> std::uint32_t& { return counts_[static_cast<std::size_t>(id)]; };

  for (const auto& [id, bias] : options.logit_bias) set_shaped(logit(id), logit(id) + bias);

  if (options.repetition_penalty != 1) {
    const float penalty = options.repetition_penalty;
    for (const auto tokens : {history.prompt, history.reply})
      for (const TokenId id : tokens)
        if (count(id)++ == 0) set_shaped(logit(id), logit(id) > 0 ? logit(id) / penalty : logit(id) * penalty);
    for (const auto tokens : {history.prompt, history.reply})
      for (const TokenId id : tokens) count(id) = 0;
  }

  if (options.presence_penalty != 0 || options.frequency_penalty != 0) {
    for (const TokenId id : history.reply) ++count(id);
    for (const TokenId id : history.reply) {
      if (count(id) == 0) continue;  // done at its first place
      const float penalty = options.presence_penalty + options.frequency_penalty * static_cast<float>(count(id));
      set_shaped(logit(id), logit(id) - penalty);
      count(id) = 0;
    }
  }
}

void Distribution::truncate(const SamplingOptions& options) {
  int kept = options.top_k > 0 ? std::min(options.top_k, vocab_size_) : vocab_size_;
  if (options.top_p < 1) {
    const double all = kept < vocab_size_ ? mass_of_best(kept) : mass_of_all();
    kept = count_with_mass(static_cast<double>(options.top_p) * all, kept);
  }
  if (options.min_p > 0) {
    int likely = 1;  // the best's weight is 1
    while (likely < kept && weight(scaled(ranking_.at(likely).logit)) >= static_cast<double>(options.min_p)) ++likely;
    kept = likely;
  }
  num_kept_ = kept;
  kept_mass_ = kept < vocab_size_ ? mass_of_best(kept) : mass_of_all();
  if (kept < vocab_size_) last_kept_ = ranking_.at(kept - 1);
}

// The fewest best candidates whose weights reach `mass`, at most `limit`.
int Distribution::count_with_mass(double mass, int limit) {
  int count = 1;
  while (count < limit && mass_of_best(count) < mass) ++count;
  return count;
}

TokenId Distribution::pick(double u) {
  if (num_kept_ == 1) return best_.id;
  const double target = u * kept_mass_;
  TokenId last_likely = best_.id;
  double before = 0;
  for (int rank = 0; rank < num_kept_; ++rank) {
    const double mass = mass_of_best(rank + 1);
    if (mass > before) last_likely = ranking_.at(rank).id;
    if (mass > target) break;
    before = mass;
  }
  // Rounding can leave the target above the sum by rank: then it is the last that can be drawn at all.
  return last_likely;
}

bool Distribution::is_kept(TokenId id) const {
  if (num_kept_ == vocab_size_) return true;
  return !ranks_before(last_kept_, {logits_[static_cast<std::size_t>(id)], id});
}

double Distribution::probability(TokenId id) const {
  if (!is_kept(id)) return 0;
  return is_greedy() ? 1 : weight(scaled(logits_[static_cast<std::size_t>(id)])) / kept_mass_;
}

// Sum of the weights of the best `count` candidates, in their order (rule 9).
double Distribution::mass_of_best(int count) {
  for (; num_masses_ < count; ++num_masses_) {
    const auto n = static_cast<std::size_t>(num_masses_);
    masses_[n] = (n > 0 ? masses_[n - 1] : 0) + weight(scaled(ranking_.at(num_masses_).logit));
  }
  return masses_[static_cast<std::size_t>(count - 1)];
}

// Sum of all weights by ascending id (rule 9): the normalizer.
double Distribution::mass_of_all() {
  if (temperature_ == 1) {  // the same differences, so the same bits
    if (logits_.data() == own_.data()) return own_sum();
    return kernels_->sum_exp(logits_.data(), vocab_size_, best_.logit, nullptr);
  }
  for (std::size_t id = 0; id < scaled_.size(); ++id) scaled_[id] = scaled(logits_[id]);
  return kernels_->sum_exp(scaled_.data(), vocab_size_, 0, nullptr);
}

double Distribution::own_sum() {
  if (own_sum_ == 0) own_sum_ = kernels_->sum_exp(own_.data(), vocab_size_, own_best_.logit, nullptr);
  return own_sum_;
}

// -sum(p ln p) = ln S - sum(w ln w) / S, with w = exp(logit - best) and S the sum of w, by ascending id.
double Distribution::own_entropy() {
  double weighted = 0;
  own_sum_ = kernels_->sum_exp(own_.data(), vocab_size_, own_best_.logit, &weighted);
  return exact_log(own_sum_) - weighted / own_sum_;
}

void Distribution::describe(TokenId id, bool measure, int num_alternatives, TokenChoice& choice) {
  const bool forced = choice.forced;
  auto alternatives = std::move(choice.alternatives);  // keeps its room
  alternatives.clear();
  choice = {};
  choice.id = id;
  choice.forced = forced;
  choice.measured = measure || num_alternatives > 0;
  choice.alternatives = std::move(alternatives);
  if (!choice.measured) return;

  choice.entropy = static_cast<float>(own_entropy());
  const double log_sum = exact_log(own_sum());
  const auto own_log_probability = [&](float logit) {
    return static_cast<float>((static_cast<double>(logit) - static_cast<double>(own_best_.logit)) - log_sum);
  };
  const auto index = static_cast<std::size_t>(id);
  choice.log_probability = own_log_probability(own_[index]);
  choice.num_kept = static_cast<std::uint32_t>(num_kept_);
  if (!is_kept(id))
    choice.shaped_log_probability = -std::numeric_limits<float>::infinity();
  else if (!is_greedy())
    choice.shaped_log_probability =
        static_cast<float>(static_cast<double>(scaled(logits_[index])) - exact_log(kept_mass_));

  own_ranking_.reset(own_, own_best_.logit, kFirstBand);
  for (int rank = 0; rank < std::min(num_alternatives, vocab_size_); ++rank) {
    const Candidate& candidate = own_ranking_.at(rank);
    choice.alternatives.push_back({candidate.id, own_log_probability(candidate.logit)});
  }
}

}  // namespace couplet::engine
