#include "formats/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace couplet::formats {
namespace {

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::vector<TensorType> types_with_quantizer() {
  std::vector<TensorType> types;
  for (int type = 0; type < kNumTensorTypes; ++type)
    if (has_quantizer(static_cast<TensorType>(type))) types.push_back(static_cast<TensorType>(type));
  return types;
}

std::vector<std::byte> quantized(TensorType type, const std::vector<float>& values) {
  std::vector<std::byte> out(values.size() / info(type).block_values * info(type).block_bytes);
  EXPECT_TRUE(quantize(type, values.data(), values.size(), out.data())) << info(type).name;
  return out;
}

std::vector<float> there_and_back(TensorType type, const std::vector<float>& values) {
  std::vector<float> back(values.size());
  dequantize(type, quantized(type, values).data(), values.size(), back.data());
  return back;
}

// About normal: the sum of twelve bytes of a counter's hash, from whole numbers alone, so the same on every machine.
std::vector<float> bell(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    int sum = 0;
    for (int i = 0; i < 12; ++i) sum += static_cast<int>((seed = seed * 6364136223846793005U + 1442695040888963407U) >> 56U);
    value = static_cast<float>(sum - 1530) * 0x1p-12F;
  }
  return values;
}

double error_share(const std::vector<float>& values, const std::vector<float>& back) {
  double error = 0, square = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = static_cast<double>(values[i]) - static_cast<double>(back[i]);
    error += difference * difference;
    square += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return std::sqrt(error / square);
}

TEST(Quantize, PlainTypesEqualTheGoldenBlocksToTheBit) {
  std::ifstream golden(COUPLET_SOURCE_DIR "/tests/data/quantize.txt");
  std::set<std::string> seen;
  std::string name, float_hex, block_hex;
  std::uint32_t id;
  while (golden >> name >> id >> float_hex >> block_hex) {
    SCOPED_TRACE(name);
    seen.insert(name);
    const auto type = from_gguf_id(id);
    ASSERT_TRUE(type);
    const auto floats = from_hex(float_hex);
    std::vector<float> values(floats.size() / sizeof(float));
    std::memcpy(values.data(), floats.data(), floats.size());
    EXPECT_EQ(quantized(*type, values), from_hex(block_hex));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"}));
}

// llama.cpp's own quantizers leave 0.297, 0.151, 0.0717, 0.0362 and 0.0178 of such values.
TEST(Quantize, SearchedTypesLeaveLittleError) {
  const std::map<std::string, double> most = {{"Q2_K", 0.2690}, {"Q3_K", 0.1450}, {"Q4_K", 0.0710}, {"Q5_K", 0.0352}, {"Q6_K", 0.0175}};
  const std::vector<float> values = bell(std::size_t{256} * 256, 7);
  for (const TensorType type : types_with_quantizer()) {
    const auto limit = most.find(info(type).name);
    if (limit == most.end()) continue;
    EXPECT_LT(error_share(values, there_and_back(type, values)), limit->second) << limit->first;
  }
}

std::uint64_t fnv(const std::vector<std::byte>& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
  return hash;
}

// The same on every machine and with every compiler: a packed copy and a file of yesterday hold these blocks.
TEST(Quantize, SearchedBlocksAreTheSameEverywhere) {
  const std::map<std::string, std::uint64_t> expected = {
      {"Q2_K", 8565063471568619859U},  {"Q3_K", 3955092102698971635U},
      {"Q4_K", 13951048943406645952U}, {"Q5_K", 10363006190315429829U}, {"Q6_K", 13151718493004736564U}};
  const std::vector<float> values = bell(std::size_t{256} * 64, 8);
  for (const auto& [name, hash] : expected) {
    for (const TensorType type : types_with_quantizer()) {
      if (info(type).name != name) continue;
      EXPECT_EQ(fnv(quantized(type, values)), hash) << name;
    }
  }
}

TEST(Quantize, EveryValueLiesNearItsOwn) {
  for (const TensorType type : types_with_quantizer()) {
    SCOPED_TRACE(info(type).name);
    for (const float size : {0.03F, 1.0F, 1e4F}) {
      std::vector<float> values = bell(256, 9);
      float most = 0;
      for (float& value : values) most = std::max(most, std::abs(value *= size));
      const std::vector<float> back = there_and_back(type, values);
      for (std::size_t i = 0; i < values.size(); ++i) ASSERT_LE(std::abs(values[i] - back[i]), 0.35F * most) << i;
      EXPECT_LT(error_share(values, back), 0.35);
    }
  }
}

TEST(Quantize, BlocksOfOneValue) {
  for (const TensorType type : types_with_quantizer()) {
    SCOPED_TRACE(info(type).name);
    for (const float value : {0.0F, -0.0F, 0.75F, -0.75F}) {
      for (const float back : there_and_back(type, std::vector<float>(256, value))) ASSERT_NEAR(back, value, 0.004F);
    }
    std::vector<float> peak(256, 0.0F);
    peak[77] = -1.5F;
    const std::vector<float> back = there_and_back(type, peak);
    for (std::size_t i = 0; i < peak.size(); ++i) ASSERT_NEAR(back[i], peak[i], 0.02F) << i;
  }
}

// Values that a type's blocks hold lose little more when they are quantized again.
TEST(Quantize, AgainLosesLess) {
  for (const TensorType type : types_with_quantizer()) {
    if (info(type).block_values < 256) continue;
    const std::vector<float> values = bell(256 * 8, 10), once = there_and_back(type, values);
    EXPECT_LT(error_share(once, there_and_back(type, once)), 0.4 * error_share(values, once)) << info(type).name;
  }
}

TEST(Quantize, WhatNoBlockHoldsIsRefused) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const TensorType type : types_with_quantizer()) {
    SCOPED_TRACE(info(type).name);
    std::vector<std::byte> out(256 * sizeof(float));
    for (const float wrong : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), 3e38F, -3e38F}) {
      std::vector<float> values(256, 0.5F);
      values[200] = wrong;
      const bool fits = type == TensorType::f32 && std::isfinite(wrong);
      const bool fits_rounded = type == TensorType::bf16 && std::isfinite(wrong);
      EXPECT_EQ(quantize(type, values.data(), values.size(), out.data()), fits || fits_rounded) << wrong;
    }
  }
}

}  // namespace
}  // namespace couplet::formats
