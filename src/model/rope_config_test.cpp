// Rope scalings: what is chosen by the configured context, and how a file that says it wrongly is refused. The numbers
// themselves are compared with transformers' by tests/families.

#include "model/rope_config.h"

#include <gtest/gtest.h>

#include <functional>

#include "couplet/error.h"
#include "formats/gguf_builder.h"
#include "model/config.h"

namespace couplet::model {
namespace {

using formats::GgufBuilder;
using Change = std::function<void(GgufBuilder&)>;

constexpr int kDims = 8;

RopeConfig read(const Change& change) {
  GgufBuilder gguf;
  gguf.add("general.architecture", "llama").add("llama.context_length", std::uint32_t{160});
  change(gguf);
  gguf.add_tensor("token_embd.weight", {4}, {0, 0, 0, 0});
  const std::vector<std::byte> bytes = gguf.build();
  const auto file = formats::CheckpointFile::parse(bytes);
  return read_rope(ConfigReader(*file, "llama"), 10000.0, kDims);
}

std::string refusal(const Change& change) {
  try {
    read(change);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Change scaling(const char* type, float factor) {
  return [=](GgufBuilder& gguf) {
    gguf.add("llama.rope.scaling.type", type).add("llama.rope.scaling.factor", factor);
    gguf.add("llama.rope.scaling.original_context_length", std::uint32_t{40});
  };
}

TEST(RopeConfig, WithoutScalingTheContextChangesNothing) {
  const RopeConfig rope = read([](GgufBuilder&) {});
  const std::vector<double> expected = {1, 0.1, 0.01, 0.001};
  const std::vector<double> got = rope_frequencies(rope, kDims, 160);
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-15) << i;
  EXPECT_EQ(rope_frequencies(rope, kDims, 1 << 20), got);
}

TEST(RopeConfig, LinearDividesAll) {
  const std::vector<double> plain = rope_frequencies(read([](GgufBuilder&) {}), kDims, 160);
  const std::vector<double> got = rope_frequencies(read(scaling("linear", 4)), kDims, 160);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(got[i], plain[i] / 4) << i;
}

TEST(RopeConfig, DynamicGoesByTheConfiguredContext) {
  const RopeConfig rope = read(scaling("dynamic", 2));
  const std::vector<double> plain = rope_frequencies(read([](GgufBuilder&) {}), kDims, 160);
  EXPECT_EQ(rope_frequencies(rope, kDims, 40), plain);
  const std::vector<double> longer = rope_frequencies(rope, kDims, 80);
  EXPECT_EQ(longer[0], plain[0]);
  // theta * 3^(8 / 6), so the last frequency is divided by 3.
  EXPECT_NEAR(longer[3], plain[3] / 3, 1e-15);
}

TEST(RopeConfig, YarnKeepsFastDimensionsAndStretchesSlowOnes) {
  const RopeConfig rope = read(scaling("yarn", 4));
  const std::vector<double> plain = rope_frequencies(read([](GgufBuilder&) {}), kDims, 160);
  const std::vector<double> got = rope_frequencies(rope, kDims, 160);
  EXPECT_EQ(got[0], plain[0]);
  EXPECT_EQ(got[3], plain[3] / 4);
  EXPECT_NEAR(rope.magnitude, 1 + 0.1 * 1.3862943611198906, 1e-15);
}

TEST(RopeConfig, FactorsGoByTheConfiguredContext) {
  const RopeConfig rope = read([](GgufBuilder& gguf) {
    gguf.add("llama.rope.scaling.original_context_length", std::uint32_t{40});
    gguf.add_tensor("rope_factors_short.weight", {4}, {1, 1, 2, 2}).add_tensor("rope_factors_long.weight", {4}, {1, 2, 3, 4});
  });
  const std::vector<double> plain = rope_frequencies(read([](GgufBuilder&) {}), kDims, 160);
  EXPECT_EQ(rope_frequencies(rope, kDims, 40)[3], plain[3] / 2);
  EXPECT_EQ(rope_frequencies(rope, kDims, 41)[3], plain[3] / 4);
  EXPECT_GT(rope.magnitude, 1);
}

TEST(RopeConfig, Llama3HasItsFactorsInATensor) {
  const RopeConfig rope = read([](GgufBuilder& gguf) { gguf.add_tensor("rope_freqs.weight", {4}, {1, 1, 2, 8}); });
  const std::vector<double> plain = rope_frequencies(read([](GgufBuilder&) {}), kDims, 160);
  for (const int context : {10, 1000}) EXPECT_EQ(rope_frequencies(rope, kDims, context)[3], plain[3] / 8);
  EXPECT_EQ(rope.magnitude, 1);
}

struct Lie {
  const char* name;
  Change tell;
  const char* expected;  // in the message
};

const Lie kLies[] = {
    {"unknown_type", scaling("foo", 2),
     "\"llama.rope.scaling.type\": rope scaling \"foo\" is not built in; this engine runs: none, linear, dynamic, yarn, longrope"},
    {"no_factor", [](GgufBuilder& g) { g.add("llama.rope.scaling.type", "yarn"); }, "\"llama.rope.scaling.factor\": expected a number"},
    {"factor_0", scaling("linear", 0), "\"llama.rope.scaling.factor\""},
    {"longrope_without_factors", scaling("longrope", 2), "rope_factors_short.weight"},
    {"one_of_two_factors", [](GgufBuilder& g) { g.add_tensor("rope_factors_long.weight", {4}, {1, 1, 1, 1}); },
     "\"rope_factors_short.weight\": expected it beside the other factors"},
    {"too_few_factors", [](GgufBuilder& g) { g.add_tensor("rope_freqs.weight", {3}, {1, 1, 1}); },
     "\"rope_freqs.weight\": expected 4 F32 values, file says 1 x 3 F32"},
    {"a_factor_of_0", [](GgufBuilder& g) { g.add_tensor("rope_freqs.weight", {4}, {1, 1, 1, 0}); },
     "\"rope_freqs.weight\": expected values from 1 to 1e6"},
    {"two_kinds_at_once",
     [](GgufBuilder& g) {
       scaling("linear", 2)(g);
       g.add_tensor("rope_freqs.weight", {4}, {1, 1, 1, 1});
     },
     "\"rope_freqs.weight\": expected it without \"llama.rope.scaling.type\""},
    {"yarn_of_base_1",
     [](GgufBuilder& g) {
       scaling("yarn", 2)(g);
       g.add("llama.rope.freq_base", 1.0F);
     },
     "\"llama.rope.freq_base\": expected more than 1 with yarn"},
};

class RopeLie : public ::testing::TestWithParam<Lie> {};

TEST_P(RopeLie, IsRefusedByName) {
  const std::string message = refusal(GetParam().tell);
  EXPECT_NE(message.find(GetParam().expected), std::string::npos) << "got: " << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Lies, RopeLie, ::testing::ValuesIn(kLies), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace couplet::model
