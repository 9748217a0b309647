#pragma once
// A family is one file: what its metadata means, which tensors a layer has, and the layer written straight out.

#include <span>

#include "model/config.h"
#include "model/ops.h"
#include "model/weights.h"

namespace couplet::model {

struct Family {
  const char* name;
  // Fills what the shared part of read_config() could not know: rope, windows, scales.
  void (*configure)(const ConfigReader& reader, ModelConfig& config);
  void (*load_layer)(WeightLoader& loader, int layer, LayerWeights& into);
  // Takes rows.x [rows, hidden_size] through one layer.
  void (*run_layer)(Ops& ops, const LayerWeights& weights, int layer);
  // What general.architecture says; null: the name. Families that share an architecture say which files are theirs.
  const char* architecture = nullptr;
  bool (*suits)(const formats::CheckpointFile& file) = nullptr;
  // Fills what heads are like.
  void (*read_heads)(const ConfigReader& reader, ModelConfig& config) = model::read_heads;
};

extern const Family kLlama, kMixtral, kQwen2, kQwen3, kQwen3Moe, kGemma, kGemma2, kGemma3, kPhi3, kOlmo2, kGranite, kGptOss, kDeepseek2;

std::span<const Family* const> families();

}  // namespace couplet::model
