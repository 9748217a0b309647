#include "formats/quantize_mix.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "couplet/error.h"
#include "formats/gguf.h"
#include "formats/gguf_builder.h"

namespace couplet::formats {
namespace {

// A "model" line of tests/data/mixes.txt.
struct Shape {
  std::string name, architecture;
  std::uint64_t layers, hidden, inner, heads, kv_heads, head_dim, vocabulary, tied, experts, fused;
};
std::istream& operator>>(std::istream& in, Shape& s) {
  return in >> s.name >> s.architecture >> s.layers >> s.hidden >> s.inner >> s.heads >> s.kv_heads >> s.head_dim >>
         s.vocabulary >> s.tied >> s.experts >> s.fused;
}

// The names and shapes of its tensors, all F32 of no data; as tools/make_mix_golden.py has them.
std::vector<Tensor> tensors_of(const Shape& s, std::vector<std::string>& names) {
  std::vector<Tensor> tensors;
  const auto add = [&](std::string name, std::vector<std::uint64_t> dims) {
    Tensor tensor{.name = {}, .type = TensorType::f32, .dims = {1, 1, 1, 1}, .num_dims = static_cast<int>(dims.size()), .bytes = {}};
    std::copy(dims.begin(), dims.end(), tensor.dims.begin());
    tensors.push_back(tensor);
    names.push_back(std::move(name));
  };
  add("token_embd.weight", {s.hidden, s.vocabulary});
  add("output_norm.weight", {s.hidden});
  if (!s.tied) add("output.weight", {s.hidden, s.vocabulary});
  for (std::uint64_t layer = 0; layer < s.layers; ++layer) {
    const std::string block = "blk." + std::to_string(layer) + ".";
    add(block + "attn_norm.weight", {s.hidden});
    add(block + "ffn_norm.weight", {s.hidden});
    add(block + "attn_output.weight", {s.heads * s.head_dim, s.hidden});
    if (s.fused) {
      add(block + "attn_qkv.weight", {s.hidden, (s.heads + 2 * s.kv_heads) * s.head_dim});
      add(block + "ffn_up.weight", {s.hidden, 2 * s.inner});
      add(block + "ffn_down.weight", {s.inner, s.hidden});
      continue;
    }
    add(block + "attn_q.weight", {s.hidden, s.heads * s.head_dim});
    add(block + "attn_k.weight", {s.hidden, s.kv_heads * s.head_dim});
    add(block + "attn_v.weight", {s.hidden, s.kv_heads * s.head_dim});
    if (s.experts) add(block + "ffn_gate_inp.weight", {s.hidden, s.experts});
    for (const std::string part : {"gate", "up", "down"}) {
      std::vector<std::uint64_t> dims = part == "down" ? std::vector{s.inner, s.hidden} : std::vector{s.hidden, s.inner};
      if (s.experts) dims.push_back(s.experts);
      add(block + "ffn_" + part + (s.experts ? "_exps.weight" : ".weight"), dims);
    }
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].name = names[i];
  return tensors;
}

std::vector<std::byte> header_of(const Shape& s) {
  GgufBuilder gguf;
  gguf.add("general.architecture", s.architecture);
  gguf.add(s.architecture + ".block_count", static_cast<std::uint32_t>(s.layers));
  gguf.add(s.architecture + ".attention.head_count", static_cast<std::uint32_t>(s.heads));
  gguf.add(s.architecture + ".attention.head_count_kv", static_cast<std::uint32_t>(s.kv_heads));
  if (s.experts) gguf.add(s.architecture + ".expert_count", static_cast<std::uint32_t>(s.experts));
  if (!s.tied) gguf.add_tensor("output.weight", TensorType::f32, {1, 1});
  return gguf.build();
}

using Types = std::map<std::string, std::string>;  // by "model mix name", a type a layer

// Those that differ from the mix's own type, as the golden file has them.
void add_types(const Shape& shape, const Mix& mix, Types& types) {
  const auto header = header_of(shape);
  const GgufFile file(header);
  const MixRules rules(file, mix);
  std::vector<std::string> names;
  Types all;
  std::map<std::string, bool> differs;
  for (const Tensor& tensor : tensors_of(shape, names)) {
    const std::string name(tensor.name), kind = name.starts_with("blk.") ? name.substr(name.find('.', 4) + 1) : name;
    const std::string type = info(rules.type_of(tensor)).name;
    const bool is_plain = kind.ends_with("_norm.weight") || kind.starts_with("ffn_gate_inp");
    std::string& row = all[shape.name + " " + std::string(mix.name) + " " + kind];
    row += (row.empty() ? "" : " ") + type;
    if (type != (is_plain ? "F32" : info(mix.type).name)) differs[shape.name + " " + std::string(mix.name) + " " + kind] = true;
  }
  for (const auto& [key, row] : all)
    if (differs[key]) types[key] = row;
}

TEST(QuantizeMix, EveryTensorGetsTheTypeThatItHasInLlamaCppsFiles) {
  std::ifstream golden(COUPLET_SOURCE_DIR "/tests/data/mixes.txt");
  Types expected, got;
  int num_models = 0;
  for (std::string line; std::getline(golden, line);) {
    std::istringstream words(line);
    std::string model, mix, kind, types;
    words >> model;
    if (model == "model") {
      Shape shape;
      ASSERT_TRUE(words >> shape) << line;
      ++num_models;
      for (const Mix& one : all_mixes())
        if (one.name != "f32") add_types(shape, one, got);
      continue;
    }
    words >> mix >> kind >> std::ws;
    std::getline(words, types);
    const auto known = std::ranges::any_of(all_mixes(), [&](const Mix& one) { return one.name == mix; });
    if (known) expected[model + " " + mix + " " + kind] = types;
  }
  EXPECT_EQ(num_models, 10);
  EXPECT_EQ(got, expected);
}

TEST(QuantizeMix, WhatIsNoMatrixStaysFloat) {
  Shape shape{"m", "llama", 4, 256, 256, 4, 2, 64, 64, 0, 0, 0};
  const auto header = header_of(shape);
  const GgufFile file(header);
  const auto type_of = [&](const char* mix, std::string_view name, TensorType type, int num_dims) {
    return MixRules(file, find_mix(mix)).type_of({.name = name, .type = type, .dims = {256, 4, 1, 1}, .num_dims = num_dims, .bytes = {}});
  };
  EXPECT_EQ(type_of("q4_k_m", "blk.0.attn_q.bias", TensorType::bf16, 1), TensorType::f32);
  EXPECT_EQ(type_of("f16", "blk.0.attn_norm.weight", TensorType::bf16, 1), TensorType::f32);
  EXPECT_EQ(type_of("q4_k_m", "blk.0.ffn_gate_inp.weight", TensorType::bf16, 2), TensorType::f32);
  EXPECT_EQ(type_of("q4_k_m", "blk.0.ffn_gate_inp.weight", TensorType::q8_0, 2), TensorType::q8_0);
  EXPECT_EQ(type_of("as-is", "blk.0.attn_q.weight", TensorType::bf16, 2), TensorType::bf16);
  EXPECT_EQ(type_of("as-is", "blk.0.attn_norm.weight", TensorType::bf16, 1), TensorType::f32);
}

TEST(QuantizeMix, UnknownNamesAreRefusedWithTheKnownOnes) {
  for (const char* name : {"", "q4_k", "Q4_K_M", "q9", "as_is"}) {
    try {
      find_mix(name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(std::string(error.what()).find("q4_k_m"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace couplet::formats
