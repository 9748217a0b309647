#pragma once
// A family is one file: what its metadata means, which tensors a layer has, and the layer written straight out.

#include <span>

#include "model/config.h"
#include "model/ops.h"
#include "model/weights.h"

namespace couplet::model {

struct Family {
  const char* name;  // as general.architecture spells it
  // Fills what the shared part of read_config() could not know: rope, windows, scales.
  void (*configure)(const ConfigReader& reader, ModelConfig& config);
  void (*load_layer)(WeightLoader& loader, int layer, LayerWeights& into);
  // Takes rows.x [rows, hidden_size] through one layer.
  void (*run_layer)(Ops& ops, const LayerWeights& weights, int layer);
};

extern const Family kLlama;
extern const Family kGemma3;

std::span<const Family* const> families();

}  // namespace couplet::model
