#include "formats/quant_types.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace couplet::formats {
namespace {

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(QuantTypes, EveryTypeEqualsTheGoldenFloatsToTheBit) {
  std::ifstream golden(COUPLET_SOURCE_DIR "/tests/data/dequantize.txt");
  std::set<TensorType> seen;
  std::string name, block_hex, float_hex;
  std::uint32_t id;
  while (golden >> name >> id >> block_hex >> float_hex) {
    SCOPED_TRACE(name);
    const auto type = from_gguf_id(id);
    ASSERT_TRUE(type);
    seen.insert(*type);
    EXPECT_EQ(info(*type).name, name);
    EXPECT_EQ(gguf_type_name(id), name);

    const auto expected = from_hex(float_hex);
    const std::size_t count = expected.size() / sizeof(float);
    auto blocks = from_hex(block_hex);
    ASSERT_EQ(count % info(*type).block_values, 0u);
    ASSERT_EQ(blocks.size(), count / info(*type).block_values * info(*type).block_bytes);
    for (const std::size_t shift : {0, 1}) {  // file bytes lie at any address
      blocks.insert(blocks.begin(), shift, std::byte{0});
      std::vector<float> floats(count);
      dequantize(*type, blocks.data() + shift, count, floats.data());
      EXPECT_EQ(std::memcmp(floats.data(), expected.data(), expected.size()), 0);
    }
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kNumTensorTypes));
}

TEST(QuantTypes, EveryPointOfEveryGridIsTheGoldenOne) {
  std::ifstream golden(COUPLET_SOURCE_DIR "/tests/data/dequantize_grids.txt");
  std::string name, expected;
  std::uint32_t id;
  std::size_t scale_at, num_blocks, num_types = 0;
  for (; golden >> name >> id >> scale_at >> num_blocks >> expected; ++num_types) {
    const TensorType type = from_gguf_id(id).value();
    const std::size_t block_bytes = info(type).block_bytes;
    std::vector<std::byte> blocks(num_blocks * block_bytes);
    std::uint32_t state = 1;
    for (std::byte& byte : blocks) byte = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
    for (std::size_t at = scale_at; at < blocks.size(); at += block_bytes) blocks[at] = {}, blocks[at + 1] = std::byte{0x3c};
    std::vector<float> floats(num_blocks * 256);
    dequantize(type, blocks.data(), floats.size(), floats.data());
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const float value : floats) hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3;
    EXPECT_EQ(hash, std::stoull(expected, nullptr, 16)) << name;
  }
  EXPECT_EQ(num_types, 6u);
}

TEST(QuantTypes, EveryHalfIsItsValue) {
  for (std::uint32_t half = 0; half < 65'536; ++half) {
    const int exponent = half >> 10 & 31;
    const double fraction = (half & 1023) / 1024.0;
    const auto stored = static_cast<std::uint16_t>(half);
    float value;
    dequantize(TensorType::f16, reinterpret_cast<const std::byte*>(&stored), 1, &value);
    EXPECT_EQ(std::signbit(value), half >> 15 == 1) << half;
    if (exponent == 31) {
      EXPECT_EQ(std::isinf(value), fraction == 0) << half;
      EXPECT_EQ(std::isnan(value), fraction != 0) << half;
    } else {
      const double magnitude =
          exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
      EXPECT_EQ(std::abs(value), magnitude) << half;
    }
  }
}

TEST(QuantTypes, CountZeroWritesNothing) {
  float untouched = 7;
  for (int type = 0; type < kNumTensorTypes; ++type) {
    dequantize(static_cast<TensorType>(type), nullptr, 0, &untouched);
  }
  EXPECT_EQ(untouched, 7);
}

TEST(QuantTypes, NumbersThatAreNotReadHaveNamesOnly) {
  EXPECT_FALSE(from_gguf_id(15));
  EXPECT_EQ(gguf_type_name(15), "Q8_K");
  EXPECT_FALSE(from_gguf_id(40));
  EXPECT_EQ(gguf_type_name(40), "NVFP4");
  EXPECT_FALSE(from_gguf_id(24));
  EXPECT_EQ(gguf_type_name(24), "I8");
  for (const std::uint32_t id : {4u, 5u, 31u, 42u, 0xffffffffu}) {
    EXPECT_FALSE(from_gguf_id(id));
    EXPECT_EQ(gguf_type_name(id), "") << id;
  }
}

}  // namespace
}  // namespace couplet::formats
