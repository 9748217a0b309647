#pragma once
// The tiny models of tests/data/families, which tools/make_tiny_models.py makes: the GGUF file's bytes, and the prompt with
// the logits that transformers gives.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "couplet/tokenizer.h"
#include "formats/checkpoint_file.h"

namespace couplet::testing {

inline std::vector<std::byte> read_data(const std::string& name) {
  const std::string path = std::string(COUPLET_SOURCE_DIR) + "/tests/data/" + name;
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (text.empty()) throw std::runtime_error(path + ": expected a file, found none");
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

// The tool's generate(), of value `i` of the tensor called `name`.
class Generator {
 public:
  explicit Generator(std::string_view name)
      : norm_(name.ends_with("norm.weight")),
        large_((!name.ends_with(".weight") && name.find("exp_probs") == name.npos) || name.find("sinks") != name.npos ||
               name.find("ffn_gate_inp") != name.npos) {
    for (const char c : name) seed_ = (seed_ ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  }
  float value(std::uint64_t i) const {
    std::uint64_t x = i * 0x9E3779B97F4A7C15 + seed_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    x ^= x >> 31;
    const float unit = (static_cast<float>(x >> 56) - 128) / 128;
    return norm_ ? 1 + unit / 2 : large_ ? unit : unit / 8;
  }

 private:
  bool norm_, large_;
  std::uint64_t seed_ = 0xCBF29CE484222325;
};

// The whole GGUF file: what is committed ends with the rope tensors.
inline std::vector<std::byte> make_model(const std::string& name, std::uint64_t size) {
  std::vector<std::byte> bytes = read_data("families/" + name + ".head");
  bytes.resize(size);
  const auto file = formats::CheckpointFile::parse(bytes);
  for (const formats::Tensor& tensor : file->tensors()) {
    if (tensor.name.starts_with("rope")) continue;
    const Generator generator(tensor.name);
    std::byte* const to = bytes.data() + (tensor.bytes.data() - bytes.data());
    for (std::uint64_t i = 0; i < tensor.bytes.size() / sizeof(float); ++i) {
      const float value = generator.value(i);
      std::memcpy(to + i * sizeof(float), &value, sizeof value);
    }
  }
  return bytes;
}

struct Golden {
  explicit Golden(const std::string& name) : bytes(read_data("families/" + name + ".logits")) {
    const auto file = formats::CheckpointFile::parse(bytes);
    model_bytes = file->get_uint("tiny.model_bytes").value();
    const std::vector<std::int64_t> tokens = file->get_ints("tiny.prompt").value();
    for (const std::int64_t token : tokens) prompt.push_back(static_cast<TokenId>(token));
    positions = file->get_ints("tiny.positions").value();
    float32_error = file->get_float("tiny.float32_error").value();
    f16_error = file->get_float("tiny.f16_error").value();
    const formats::Tensor& tensor = *file->find("exact");
    vocab_size = tensor.row_length();
    exact.resize(tensor.bytes.size() / sizeof(float));
    std::memcpy(exact.data(), tensor.bytes.data(), tensor.bytes.size());
  }
  std::vector<std::byte> bytes;
  std::uint64_t model_bytes;
  std::vector<TokenId> prompt;
  std::vector<std::int64_t> positions;
  std::uint64_t vocab_size;
  std::vector<float> exact;  // [positions, vocab_size], of transformers in float64
  double float32_error;      // the greatest of transformers in float32
  double f16_error;          // the greatest of transformers in float64 with keys and values in f16
};

}  // namespace couplet::testing
