#pragma once
// How a checkpoint turns its queries and keys: base, scaling and its numbers, as the file says them. The scaling is
// resolved once, for the context that is configured at load (docs/numerics.md, rule 1).

#include <cstdint>
#include <vector>

namespace couplet::model {

class ConfigReader;

enum class RopeScaling : std::uint8_t { none, linear, dynamic, yarn, factors };

struct RopeConfig {
  double theta = 10000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;         // how much longer the context became
  int original_context = 0;  // of the training before that
  double magnitude = 1;      // cosines and sines are multiplied by it
  // yarn: dimensions that turn more often than beta_fast times in the original context stay, those below beta_slow are
  // stretched; `whole_range` rounds the range between to whole dimensions.
  double beta_fast = 32, beta_slow = 1;
  bool whole_range = true;
  // factors (llama3, longrope): what each frequency is divided by, up to the original context and beyond it.
  std::vector<float> short_factors, long_factors;
};

// The family's rope keys and tensors, checked. "rope.scaling.type" is none, linear, dynamic, yarn or longrope; llama3
// has no type of its own but a tensor of factors. Throws Error{unsupported} for another type.
RopeConfig read_rope(const ConfigReader& reader, double default_theta, int dims);

// Angle per position of each pair of dimensions: [dims / 2], for an engine with so many positions.
std::vector<double> rope_frequencies(const RopeConfig& rope, int dims, int context);

}  // namespace couplet::model
