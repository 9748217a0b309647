#pragma once
// Small random models as real GGUF files: odd sizes on purpose, every weight type, a vocabulary of bytes. They stand in
// for models of any shape where a test runs a whole model many times.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "formats/gguf_builder.h"

namespace couplet::testing {

struct TinyModel {
  std::string family = "llama";
  int num_layers = 3;
  int hidden_size = 96;
  int intermediate_size = 160;
  int num_heads = 4;
  int num_kv_heads = 2;
  int head_dim = 24;
  int vocab_size = 517;
  int context = 700;
  int window = 0;          // gemma3: every second layer global
  std::vector<formats::TensorType> types = {formats::TensorType::q4_1};  // matrices take them in turn
  std::uint64_t seed = 1;
  float weight = 0.08F;    // about the size of a weight
  bool as_floats = false;  // matrices are written as F32: the values they have as `types`
};

class TinyModelWriter {
 public:
  explicit TinyModelWriter(const TinyModel& model) : model_(model), random_(model.seed) {}

  formats::GgufBuilder builder() {
    formats::GgufBuilder gguf;
    write_metadata(gguf);
    write_vocabulary(gguf);
    const bool gemma = model_.family == "gemma3";
    const int q = model_.num_heads * model_.head_dim, kv = model_.num_kv_heads * model_.head_dim;
    matrix(gguf, "token_embd.weight", model_.vocab_size, model_.hidden_size);
    vector(gguf, "output_norm.weight", model_.hidden_size);
    for (int layer = 0; layer < model_.num_layers; ++layer) {
      const std::string blk = "blk." + std::to_string(layer) + ".";
      vector(gguf, blk + "attn_norm.weight", model_.hidden_size);
      matrix(gguf, blk + "attn_q.weight", q, model_.hidden_size);
      matrix(gguf, blk + "attn_k.weight", kv, model_.hidden_size);
      matrix(gguf, blk + "attn_v.weight", kv, model_.hidden_size);
      matrix(gguf, blk + "attn_output.weight", model_.hidden_size, q);
      vector(gguf, blk + "ffn_norm.weight", model_.hidden_size);
      matrix(gguf, blk + "ffn_gate.weight", model_.intermediate_size, model_.hidden_size);
      matrix(gguf, blk + "ffn_up.weight", model_.intermediate_size, model_.hidden_size);
      matrix(gguf, blk + "ffn_down.weight", model_.hidden_size, model_.intermediate_size);
      if (!gemma) continue;
      vector(gguf, blk + "attn_q_norm.weight", model_.head_dim);
      vector(gguf, blk + "attn_k_norm.weight", model_.head_dim);
      vector(gguf, blk + "post_attention_norm.weight", model_.hidden_size);
      vector(gguf, blk + "post_ffw_norm.weight", model_.hidden_size);
    }
    return gguf;
  }

 private:
  using TensorType = formats::TensorType;

  void write_metadata(formats::GgufBuilder& gguf) {
    const std::string p = model_.family + ".";
    gguf.add("general.architecture", model_.family);
    gguf.add(p + "block_count", static_cast<std::uint32_t>(model_.num_layers));
    gguf.add(p + "embedding_length", static_cast<std::uint32_t>(model_.hidden_size));
    gguf.add(p + "feed_forward_length", static_cast<std::uint32_t>(model_.intermediate_size));
    gguf.add(p + "attention.head_count", static_cast<std::uint32_t>(model_.num_heads));
    gguf.add(p + "attention.head_count_kv", static_cast<std::uint32_t>(model_.num_kv_heads));
    gguf.add(p + "attention.key_length", static_cast<std::uint32_t>(model_.head_dim));
    gguf.add(p + "attention.value_length", static_cast<std::uint32_t>(model_.head_dim));
    gguf.add(p + "context_length", static_cast<std::uint32_t>(model_.context));
    gguf.add(p + "attention.layer_norm_rms_epsilon", 1e-5F);
    if (model_.window > 0) {
      gguf.add(p + "attention.sliding_window", static_cast<std::uint32_t>(model_.window));
      gguf.add(p + "attention.sliding_window_pattern", std::uint32_t{2});
    }
  }

  // Byte-level: the 256 byte symbols, then <|end|>, one merged piece, then words nobody merges into.
  void write_vocabulary(formats::GgufBuilder& gguf) {
    std::vector<std::string> tokens;
    std::vector<std::int32_t> types;
    int extra = 0;
    for (int byte = 0; byte < 256; ++byte) {
      const bool shown = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      tokens.push_back(symbol(shown ? byte : 256 + extra++));
      types.push_back(1);
    }
    tokens.push_back("<|end|>");
    types.push_back(3);
    tokens.push_back("qz");
    types.push_back(1);
    while (static_cast<int>(tokens.size()) < model_.vocab_size) {
      tokens.push_back("word" + std::to_string(tokens.size()));
      types.push_back(1);
    }
    gguf.add("tokenizer.ggml.model", "gpt2");
    gguf.add("tokenizer.ggml.pre", "gpt-2");
    gguf.add("tokenizer.ggml.tokens", tokens);
    gguf.add("tokenizer.ggml.token_type", types);
    gguf.add("tokenizer.ggml.merges", std::vector<std::string>{"q z"});
    gguf.add("tokenizer.ggml.eos_token_id", std::uint32_t{256});
  }

  static std::string symbol(int code_point) {  // below U+0800
    if (code_point < 128) return std::string(1, static_cast<char>(code_point));
    return {static_cast<char>(0xc0 | (code_point >> 6)), static_cast<char>(0x80 | (code_point & 0x3f))};
  }

  void vector(formats::GgufBuilder& gguf, const std::string& name, int size) {
    std::vector<float> values(static_cast<std::size_t>(size));
    std::uniform_real_distribution<float> around_one(0.5F, 1.5F);
    for (float& value : values) value = around_one(random_);
    gguf.add_tensor(name, {static_cast<std::uint64_t>(size)}, values);
  }

  void matrix(formats::GgufBuilder& gguf, const std::string& name, int rows, int cols) {
    const TensorType type = model_.types[num_matrices_++ % model_.types.size()];
    const formats::TensorTypeInfo& info = formats::info(type);
    const std::size_t blocks = static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols) / info.block_values;
    std::vector<std::byte> data(blocks * info.block_bytes);
    for (std::byte& byte : data) byte = static_cast<std::byte>(random_());
    for (std::size_t i = 0; i < blocks; ++i) tame(type, data.data() + i * info.block_bytes);
    const std::vector<std::uint64_t> dims = {static_cast<std::uint64_t>(cols), static_cast<std::uint64_t>(rows)};
    if (!model_.as_floats) return static_cast<void>(gguf.add_tensor(name, type, dims, std::move(data)));
    std::vector<float> values(dims[0] * dims[1]);
    formats::dequantize(type, data.data(), values.size(), values.data());
    gguf.add_tensor(name, dims, values);
  }

  // Gives a block of random bytes scales that make its weights about model_.weight large.
  void tame(TensorType type, std::byte* block) {
    const bool whole = type == TensorType::f32 || type == TensorType::bf16;  // takes any float
    const float w = whole ? model_.weight : std::min(model_.weight, 100.0F);
    std::uniform_real_distribution<float> spread(0.5F, 1.5F);
    const float s = spread(random_);
    switch (type) {
      case TensorType::f32: put_f32(block, w * (2 * s - 2)); break;
      case TensorType::f16: put_f16(block, w * (2 * s - 2)); break;
      case TensorType::bf16: put_bf16(block, w * (2 * s - 2)); break;
      case TensorType::q4_0: put_f16(block, w * s / 5); break;
      case TensorType::q4_1: put_f16(block, w * s / 5), put_f16(block + 2, -w * s * 1.5F); break;
      case TensorType::q5_0: put_f16(block, w * s / 10); break;
      case TensorType::q5_1: put_f16(block, w * s / 10), put_f16(block + 2, -w * s * 1.5F); break;
      case TensorType::q8_0: put_f16(block, w * s / 75); break;
      case TensorType::q4_k: put_f16(block, w * s / 160), put_f16(block + 2, w * s / 20); break;
      case TensorType::q5_k: put_f16(block, w * s / 300), put_f16(block + 2, w * s / 20); break;
      case TensorType::q6_k: put_f16(block + 208, w * s / 500); break;
      case TensorType::q2_k: put_f16(block + 80, w * s / 12), put_f16(block + 82, w * s / 8); break;
      case TensorType::q3_k: put_f16(block + 108, w * s / 40); break;
      case TensorType::iq4_nl: put_f16(block, w * s / 65); break;
      case TensorType::iq4_xs: put_f16(block, w * s / 1200); break;
      case TensorType::mxfp4: block[0] = static_cast<std::byte>(125 + std::ilogb(w * s / 2)); break;
      case TensorType::iq1_s: put_f16(block, w * s / 8); break;
      case TensorType::iq1_m: put_f16_of_iq1_m(block, w * s / 8); break;
      case TensorType::iq2_xxs:
      case TensorType::iq2_xs:
      case TensorType::iq2_s: put_f16(block, w * s / 50); break;
      case TensorType::iq3_xxs:
      case TensorType::iq3_s: put_f16(block, w * s / 130); break;
      case TensorType::tq1_0: put_f16(block + 52, w * s); break;
      case TensorType::tq2_0: put_f16(block + 64, w * s); break;
    }
  }

  static void put_f32(std::byte* at, float value) { std::memcpy(at, &value, 4); }
  static void put_bf16(std::byte* at, float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const auto high = static_cast<std::uint16_t>(bits >> 16);
    std::memcpy(at, &high, 2);
  }
  static void put_f16_of_iq1_m(std::byte* block, float value) {  // a nibble in each of four words
    std::byte half[2];
    put_f16(half, value);
    for (int i = 0; i < 4; ++i) {
      const std::byte nibble = half[i / 2] >> (i % 2 * 4) & std::byte{15};
      block[49 + 2 * i] = (block[49 + 2 * i] & std::byte{15}) | nibble << 4;
    }
  }
  static void put_f16(std::byte* at, float value) {  // cut off
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const int exponent = static_cast<int>((bits >> 23) & 0xff) - 112;
    std::uint16_t half = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
    if (exponent > 0) half = static_cast<std::uint16_t>(half | (exponent << 10) | ((bits >> 13) & 0x3ff));
    if (exponent <= 0) half = static_cast<std::uint16_t>(half | static_cast<std::uint16_t>(std::abs(value) * 0x1p24F));
    std::memcpy(at, &half, 2);
  }

  TinyModel model_;
  std::mt19937_64 random_;
  std::size_t num_matrices_ = 0;
};

// The file, in a folder that goes away with the object.
class TinyModelFile {
 public:
  explicit TinyModelFile(const TinyModel& model, const std::string& name = "tiny") {
    std::string pattern = (std::filesystem::temp_directory_path() / "couplet-tiny-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ / (name + ".gguf");
    TinyModelWriter(model).builder().write(path_);
  }
  ~TinyModelFile() { std::filesystem::remove_all(folder_); }
  TinyModelFile(const TinyModelFile&) = delete;
  TinyModelFile& operator=(const TinyModelFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path folder_;
  std::filesystem::path path_;
};

inline TinyModel tiny_llama() {
  using enum formats::TensorType;
  TinyModel m;
  m.types = {q8_0, q4_0, q4_1, q5_0, q5_1, f16, bf16, q8_0};
  return m;
}
inline TinyModel tiny_llama_k() {  // K-quants need rows of 256
  using enum formats::TensorType;
  TinyModel m;
  m.hidden_size = 256, m.intermediate_size = 512, m.num_heads = 8, m.num_kv_heads = 1, m.head_dim = 32;
  m.types = {q6_k, q4_k, q5_k};
  m.seed = 2;
  return m;
}
inline TinyModel tiny_llama_f32() {
  TinyModel m;
  m.hidden_size = 90, m.intermediate_size = 133, m.num_heads = 3, m.num_kv_heads = 3, m.head_dim = 30;
  m.types = {formats::TensorType::f32};
  m.seed = 3;
  return m;
}
inline TinyModel tiny_gemma() {
  using enum formats::TensorType;
  TinyModel m;
  m.family = "gemma3", m.hidden_size = 96, m.num_heads = 4, m.num_kv_heads = 1, m.head_dim = 40, m.window = 24;
  m.num_layers = 4;
  m.types = {q8_0, q5_0, q4_1};
  m.seed = 4;
  return m;
}

}  // namespace couplet::testing
