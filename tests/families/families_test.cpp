// Every family against Hugging Face transformers, on tiny models of odd sizes (tools/make_tiny_models.py), and against
// itself in every schedule.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "couplet/error.h"
#include "tests/families/float_cache.h"
#include "tests/families/tiny_files.h"
#include "tests/property/runner.h"

namespace couplet {
namespace {

using testing::Golden;
using testing::make_model;
using kernels::PageFormat;
using testing::kPageFormats;
using testing::Loaded;
using testing::ones;
using testing::random_tokens;
using testing::Runner;
using testing::Trace;

struct Case {
  const char* file;    // under tests/data/families
  const char* family;
  friend std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.file; }
};

constexpr Case kCases[] = {
    {"llama", "llama"},       {"llama_linear", "llama"}, {"llama_dynamic", "llama"}, {"mistral", "llama"},
    {"mixtral", "mixtral"},   {"qwen2", "qwen2"},        {"qwen3", "qwen3"},         {"qwen3moe", "qwen3moe"},
    {"qwen3moe_plain", "qwen3moe"}, {"gemma", "gemma"},  {"gemma2", "gemma2"},       {"gemma3", "gemma3"},
    {"phi3", "phi3"},         {"olmo2", "olmo2"},        {"olmo3", "olmo2"},         {"granite", "granite"},
    {"gpt-oss", "gpt-oss"},   {"deepseek2_lite", "deepseek2"}, {"deepseek2", "deepseek2"}, {"deepseek3", "deepseek2"},
};

class Families : public ::testing::TestWithParam<Case> {
 protected:
  Families() : golden_(GetParam().file), loaded_(make_model(GetParam().file, golden_.model_bytes)) {}
  // The greatest difference of a logit from the exact one at each of the positions, ascending.
  std::vector<double> errors(const testing::Setting& setting) {
    const Trace trace = Runner(loaded_, setting).run_alone(golden_.prompt);
    std::vector<double> errors(golden_.positions.size(), 0.0);
    for (std::size_t i = 0; i < errors.size(); ++i)
      for (std::size_t token = 0; token < golden_.vocab_size; ++token) {
        const double expected = golden_.exact[i * golden_.vocab_size + token];
        const double got = trace.logits[static_cast<std::size_t>(golden_.positions[i]) * golden_.vocab_size + token];
        errors[i] = std::max(errors[i], std::isnan(got) ? HUGE_VAL : std::abs(got - expected));
      }
    std::sort(errors.begin(), errors.end());
    return errors;
  }
  // Room for more than one span of attention: the engine's context is its own choice.
  void widen_context() { loaded_.config.context_length = 600; }

  Golden golden_;
  Loaded loaded_;
};

TEST_P(Families, IsTheFamilyThatTheFileIsOf) {
  EXPECT_STREQ(loaded_.config.family->name, GetParam().family);
}

// Weights are F32, so products are float32 chains in either precision, as in transformers. With a cache of floats nothing
// else is left, and the greatest error is about the one of transformers in float32: 0.8 to 1.7 of it.
TEST_P(Families, LogitsErrAsFloat32Does) {
  const kernels::KernelTable table = testing::with_float_cache(kernels::select_kernels());
  const auto error = errors({.pages = PageFormat::f16, .table = &table, .page_factor = testing::kFloatPageFactor});
  EXPECT_LE(error.back(), 2 * golden_.float32_error);
}

// What the cache rounds. f16 costs what it costs transformers: 0.9 to 1.05 of that. Codes of 14 and 16 bits (fine) are
// finer than f16's 11, but queries are rounded, too: 0.1 to 1.1. Values of 8 bits (fast) have steps of 1/127 of the greatest,
// 16 to 32 times f16's: enough for a router to take another expert at some position, hence the middle one of them.
TEST_P(Families, LogitsErrAsTheCacheRounds) {
  EXPECT_LE(errors({.pages = PageFormat::f16}).back(), 1.2 * golden_.f16_error);
  EXPECT_LE(errors({.pages = PageFormat::q16_fine}).back(), 1.5 * golden_.f16_error);
  const auto fast = errors({.pages = PageFormat::q16});
  EXPECT_LE(fast[fast.size() / 2], 48 * golden_.f16_error);
}

TEST_P(Families, AnyCutOfThePromptGivesTheSameBits) {
  widen_context();
  for (const PageFormat pages : kPageFormats) {
    Runner runner(loaded_, {.num_threads = 2, .pages = pages});
    const auto tokens = random_tokens(pages == PageFormat::q16 ? 270 : 60, 3);
    const Trace whole = runner.run_alone(tokens);
    EXPECT_TRUE(whole == runner.run_alone(tokens, {7, 30, 3, 1, 1}));
    EXPECT_TRUE(whole == runner.run_alone(tokens, {255, 1, 1, 1}));
  }
}

TEST_P(Families, DecodeRowByRowEqualsPrefill) {
  for (const PageFormat pages : kPageFormats) {
    Runner runner(loaded_, {.pages = pages});
    const auto tokens = random_tokens(40, 4);
    EXPECT_TRUE(runner.run_alone(tokens) == runner.run_alone(tokens, ones(40)));
  }
}

TEST_P(Families, StrangersInTheBatchChangeNothing) {
  Runner runner(loaded_, {});
  std::vector<std::vector<TokenId>> sequences;
  for (const int length : {60, 1, 33, 25}) sequences.push_back(random_tokens(length, static_cast<std::uint64_t>(length)));
  const auto together = runner.run(sequences, {{20, 1, 1, 30}, {}, {2, 2, 2}, ones(25)});
  for (std::size_t i = 0; i < sequences.size(); ++i) EXPECT_TRUE(together[i] == runner.run_alone(sequences[i])) << i;
}

TEST_P(Families, ThreadsAndLevelsChangeNothing) {
  const auto tokens = random_tokens(40, 5);
  const kernels::KernelTable* levels[8];
  const int num_levels = kernels::runnable_levels(levels);
  for (const PageFormat pages : kPageFormats) {
    const Trace expected = Runner(loaded_, {"reference", 1, pages}).run_alone(tokens);
    for (int level = 0; level < num_levels; ++level) {
      Runner runner(loaded_, {levels[level]->name, 3, pages});
      EXPECT_TRUE(expected == runner.run_alone(tokens)) << levels[level]->name;
      EXPECT_TRUE(expected == runner.run_alone(tokens, {30, 1, 1, 1, 7})) << levels[level]->name;
    }
  }
}

// Experts in MXFP4, as gpt-oss is released: F32 tensors whose rows allow it become random blocks at the same place; or,
// as_floats, the values of those blocks.
std::vector<std::byte> with_mxfp4_experts(std::vector<std::byte> bytes, bool as_floats) {
  constexpr auto kType = formats::TensorType::mxfp4;
  const formats::TensorTypeInfo& info = formats::info(kType);
  const auto file = formats::CheckpointFile::parse(bytes);
  std::mt19937_64 random(7);
  for (const formats::Tensor& tensor : file->tensors()) {
    if (!tensor.name.ends_with("_exps.weight") || tensor.row_length() % info.block_values != 0) continue;
    const std::size_t values = tensor.bytes.size() / sizeof(float);
    std::vector<std::byte> blocks(values / info.block_values * info.block_bytes);
    for (std::byte& byte : blocks) byte = static_cast<std::byte>(random());
    for (std::size_t at = 0; at < blocks.size(); at += info.block_bytes) blocks[at] = static_cast<std::byte>(120 + random() % 4);
    std::byte* const to = bytes.data() + (tensor.bytes.data() - bytes.data());
    if (as_floats) {
      std::vector<float> floats(values);
      formats::dequantize(kType, blocks.data(), values, floats.data());
      std::memcpy(to, floats.data(), tensor.bytes.size());
      continue;
    }
    std::copy(blocks.begin(), blocks.end(), to);
    const auto* name = reinterpret_cast<const std::byte*>(tensor.name.data());
    const auto in_table = std::search(bytes.begin(), bytes.end(), name, name + tensor.name.size());
    const std::ptrdiff_t type_at = static_cast<std::ptrdiff_t>(tensor.name.size()) + 4 + 3 * 8;  // three dimensions between
    std::memcpy(&*(in_table + type_at), &info.gguf_id, sizeof info.gguf_id);
  }
  return bytes;
}

// The greatest difference of a logit, in parts of the greatest one.
double difference(const Trace& a, const Trace& b) {
  double difference = 0, greatest = 0;
  for (std::size_t i = 0; i < a.logits.size(); ++i) {
    const double x = a.logits[i], y = b.logits[i];
    difference = std::max(difference, std::isnan(x) ? HUGE_VAL : std::abs(x - y));
    greatest = std::max(greatest, std::abs(y));
  }
  return difference / greatest;
}

TEST(Experts, InMxfp4AreThoseOfTheSameWeightsInF32) {
  const Golden golden("gpt-oss");
  const std::vector<std::byte> model = make_model("gpt-oss", golden.model_bytes);
  const Loaded floats(with_mxfp4_experts(model, true)), blocks(with_mxfp4_experts(model, false));
  ASSERT_EQ(blocks.file->find("blk.0.ffn_gate_exps.weight")->type, formats::TensorType::mxfp4);
  const Trace expected = Runner(floats, {.pages = PageFormat::q16_fine}).run_alone(golden.prompt);
  const Trace got = Runner(blocks, {.pages = PageFormat::q16_fine}).run_alone(golden.prompt);
  EXPECT_LT(difference(got, expected), 2e-2);  // as above, where a router's choice may turn
  const Trace plain = Runner(Loaded(model), {.pages = PageFormat::q16_fine}).run_alone(golden.prompt);
  EXPECT_GT(difference(got, plain), 0.1);

  const kernels::KernelTable* levels[8];
  const int num_levels = kernels::runnable_levels(levels);
  for (int level = 0; level < num_levels; ++level) {
    Runner runner(blocks, {levels[level]->name, 2, PageFormat::q16_fine});
    EXPECT_TRUE(got == runner.run_alone(golden.prompt)) << levels[level]->name;
    EXPECT_TRUE(got == runner.run_alone(golden.prompt, {3, 1, 1, 9})) << levels[level]->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, Families, ::testing::ValuesIn(kCases), [](const auto& info) {
  std::string name = info.param.file;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(FamilyList, EveryOneIsTested) {
  for (const model::Family* family : model::families())
    EXPECT_TRUE(std::any_of(std::begin(kCases), std::end(kCases), [&](const Case& c) { return family->name == std::string(c.family); }))
        << family->name;
}

}  // namespace
}  // namespace couplet
