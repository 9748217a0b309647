#include "engine/sampler.h"

namespace couplet::engine {
namespace {

constexpr int kPhiloxRounds = 10;
constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;  // the golden ratio
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1

constexpr std::uint32_t low(std::uint64_t product) { return static_cast<std::uint32_t>(product); }
constexpr std::uint32_t high(std::uint64_t product) { return static_cast<std::uint32_t>(product >> 32); }

}  // namespace

std::array<std::uint32_t, 4> philox(const std::array<std::uint32_t, 4>& counter,
                                    const std::array<std::uint32_t, 2>& key) {
  auto [x0, x1, x2, x3] = counter;
  auto [k0, k1] = key;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * x0;
    const std::uint64_t product1 = kMultiplier1 * x2;
    x0 = high(product1) ^ x1 ^ k0;
    x1 = low(product1);
    x2 = high(product0) ^ x3 ^ k1;
    x3 = low(product0);
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return {x0, x1, x2, x3};
}

double uniform(std::uint64_t seed, std::uint32_t choice, std::uint32_t position) {
  const auto words = philox({position, choice, 0, 0}, {low(seed), high(seed)});
  const std::uint64_t bits = (std::uint64_t{words[1]} << 32) | words[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

bool select_token(Distribution& distribution, std::span<const float> logits, const Selection& selection,
                  TokenChoice& choice) {
  // A forced token that nobody measures needs no truncation, only the look for a bad logit: greedy costs just that.
  static const SamplingOptions kGreedy{.temperature = 0};
  const bool measures = selection.measure || selection.num_alternatives > 0;
  choice.forced = selection.forced >= 0;
  const SamplingOptions& options = choice.forced && !measures ? kGreedy : *selection.options;
  if (!distribution.assign(logits, options, selection.history)) {
    choice = {};
    return false;
  }
  const bool drawn = !choice.forced && options.temperature >= kGreedyBelow;
  TokenId id = selection.forced;
  double draw = 0;
  if (id < 0) {
    const std::size_t position = selection.history.prompt.size() + selection.history.reply.size();
    draw = uniform(options.seed, options.choice, static_cast<std::uint32_t>(position));
    id = distribution.pick(draw);
  }
  distribution.describe(id, measures, selection.num_alternatives, choice);
  choice.drawn = drawn;
  choice.draw = drawn ? draw : 0;
  return true;
}

}  // namespace couplet::engine
