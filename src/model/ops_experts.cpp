#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/exact_math.h"
#include "model/ops.h"

// Experts. The router's logits choose a row's experts; rows are gathered into slots, the slots of one expert side by side,
// so that each expert's weights are read once for all its rows. A row's sum runs in router rank, so neither the grouping
// nor the other rows move a bit (docs/numerics.md, rule 8).

namespace couplet::model {
namespace {

constexpr double kNotChosen = -std::numeric_limits<double>::infinity();

double sigmoid(double x) { return 1 / (1 + exact_exp(-x)); }

}  // namespace

void Ops::experts(const Rows& in, const LayerWeights& weights, Gating gating, const Rows& out) {
  Activations& a = activations_;
  matmul(in, {{&weights.router, &a.router}});
  if (weights.router_bias != nullptr) add_bias(a.router, weights.router_bias);
  choose_experts(weights.expert_bias);
  group_by_expert();
  const auto hidden = static_cast<std::size_t>(in.cols);
  threads_->parallel_for(num_rows_, [&](int row, int) {
    for (int rank = 0; rank < config_->num_used_experts; ++rank)
      std::copy_n(in.row(row), hidden, a.expert_x.row(slot_of_[static_cast<std::size_t>(row * config_->num_used_experts + rank)]));
  });

  PackedMatrix ExpertWeights::*const halves[] = {&ExpertWeights::gate, &ExpertWeights::up};
  const Rows* const half_outs[] = {&a.expert_gate, &a.expert_up};
  multiply_experts(a.expert_x, weights, halves, half_outs);
  add_expert_biases(weights, &ExpertWeights::gate_bias, a.expert_gate);
  add_expert_biases(weights, &ExpertWeights::up_bias, a.expert_up);
  const GateKernel kernel = gate_kernel(gating);
  threads_->parallel_for(num_slots(), [&](int slot, int) {
    kernel(a.expert_gate.row(slot), a.expert_up.row(slot), static_cast<std::size_t>(a.expert_gate.cols));
  });
  PackedMatrix ExpertWeights::*const down[] = {&ExpertWeights::down};
  const Rows* const down_outs[] = {&a.expert_y};
  multiply_experts(a.expert_gate, weights, down, down_outs);
  add_expert_biases(weights, &ExpertWeights::down_bias, a.expert_y);

  threads_->parallel_for(num_rows_, [&](int row, int) {
    std::fill_n(out.row(row), hidden, 0.0F);
    for (int rank = 0; rank < config_->num_used_experts; ++rank) {
      const auto i = static_cast<std::size_t>(row * config_->num_used_experts + rank);
      kernels_->add_scaled(out.row(row), a.expert_y.row(slot_of_[i]), chosen_weights_[i], hidden);
    }
  });
}

// What experts are chosen by: logits, or sigmoids with a bias that counts for nothing else.
void Ops::score_experts(const float* logits, Vector bias, double* scores) const {
  for (int e = 0; e < config_->num_experts; ++e) {
    const double logit = static_cast<double>(logits[e]);
    scores[e] = config_->sigmoid_experts ? sigmoid(logit) : logit;
    if (bias != nullptr) scores[e] += static_cast<double>(bias[e]);
  }
}

// A group counts by its best expert or, among sigmoids, by its best two.
void Ops::leave_out_groups(double* scores) const {
  const int size = config_->num_experts / config_->num_expert_groups;
  const auto worth = [&](int group) {
    double best = kNotChosen, second = kNotChosen;
    for (const double* s = scores + group * size; s < scores + (group + 1) * size; ++s) {
      if (*s > best) second = best, best = *s;
      else if (*s > second) second = *s;
    }
    return config_->sigmoid_experts ? best + second : best;
  };
  // One that is left out is worth less from then on, which moves no other across the line.
  for (int group = 0; group < config_->num_expert_groups; ++group) {
    int num_better = 0;
    for (int other = 0; other < config_->num_expert_groups; ++other)
      num_better += worth(other) > worth(group) || (worth(other) == worth(group) && other < group);
    if (num_better >= config_->num_used_groups) std::fill_n(scores + group * size, size, kNotChosen);
  }
}

// The experts of the greatest scores, ties by id. Their weights are in double and rounded once: exp(logit - greatest) or
// the sigmoid, over the sum of the chosen ones', by rank, or of all, by id, times a factor (docs/numerics.md, rule 8).
void Ops::choose_experts(Vector bias) {
  const int used = config_->num_used_experts, num_experts = config_->num_experts;
  threads_->parallel_for(num_rows_, [&](int row, int thread) {
    const float* logits = activations_.router.row(row);
    double* const scores = reinterpret_cast<double*>(scratch(thread));
    score_experts(logits, bias, scores);
    if (config_->num_used_groups < config_->num_expert_groups) leave_out_groups(scores);
    int* chosen = chosen_.data() + row * used;
    for (int rank = 0; rank < used; ++rank) {
      chosen[rank] = static_cast<int>(std::max_element(scores, scores + num_experts) - scores);
      scores[chosen[rank]] = kNotChosen;
    }
    const double greatest = static_cast<double>(logits[chosen[0]]);
    const auto part = [&](int expert) {
      const double logit = static_cast<double>(logits[expert]);
      return config_->sigmoid_experts ? sigmoid(logit) : exact_exp(logit - greatest);
    };
    double sum = 0;
    if (config_->normalize_experts)
      for (int rank = 0; rank < used; ++rank) sum += part(chosen[rank]);
    else if (config_->sigmoid_experts)
      sum = 1;
    else
      for (int expert = 0; expert < num_experts; ++expert) sum += part(expert);
    for (int rank = 0; rank < used; ++rank)
      chosen_weights_[static_cast<std::size_t>(row * used + rank)] =
          static_cast<float>(part(chosen[rank]) / sum * static_cast<double>(config_->expert_scale));
  });
}

void Ops::group_by_expert() {
  std::fill(first_slot_.begin(), first_slot_.end(), 0);
  const auto slots = static_cast<std::size_t>(num_slots());
  for (std::size_t i = 0; i < slots; ++i) ++first_slot_[static_cast<std::size_t>(chosen_[i]) + 1];
  for (std::size_t e = 1; e < first_slot_.size(); ++e) first_slot_[e] += first_slot_[e - 1];
  // first_slot_[e] walks to the end of e's slots, which is where e + 1 began: shifted back afterwards.
  for (std::size_t i = 0; i < slots; ++i) {
    const int slot = first_slot_[static_cast<std::size_t>(chosen_[i])]++;
    slot_of_[i] = slot;
    row_of_slot_[static_cast<std::size_t>(slot)] = static_cast<int>(i) / config_->num_used_experts;
  }
  std::copy_backward(first_slot_.begin(), first_slot_.end() - 1, first_slot_.end());
  first_slot_[0] = 0;
}

void Ops::multiply_experts(const Rows& in, const LayerWeights& weights,
                           std::span<PackedMatrix ExpertWeights::*const> members, std::span<const Rows* const> outs) {
  pieces_.clear();
  for (std::size_t e = 0; e < weights.experts.size(); ++e) {
    const int first = first_slot_[e], num = first_slot_[e + 1] - first;
    if (num == 0) continue;
    for (std::size_t i = 0; i < members.size(); ++i)
      pieces_.push_back({&(weights.experts[e].*members[i]), outs[i], first, num});
  }
  multiply(in, rows_of_slots(num_slots()), pieces_, num_planes_);
}

void Ops::add_expert_biases(const LayerWeights& weights, Vector ExpertWeights::*member, const Rows& rows) {
  for (std::size_t e = 0; e < weights.experts.size(); ++e) {
    const int first = first_slot_[e], num = first_slot_[e + 1] - first;
    if (num == 0 || weights.experts[e].*member == nullptr) continue;
    kernels_->add_bias(rows.row(first), rows.stride, weights.experts[e].*member, num, rows.cols);
  }
}

}  // namespace couplet::model
