#include "engine/open_checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "couplet/error.h"
#include "tests/property/tiny_model.h"

namespace couplet {
namespace {

class SamplingDefaultsTest : public ::testing::Test {
 protected:
  SamplingDefaults read(const std::function<void(formats::GgufBuilder&)>& add_keys) {
    formats::GgufBuilder gguf = testing::TinyModelWriter(testing::TinyModel{}).builder();
    add_keys(gguf);
    gguf.write(path_);
    return Checkpoint::open(path_)->summary().sampling;
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::filesystem::path path_ =
      ::testing::TempDir() + "couplet_defaults_" + std::to_string(::getpid()) + ".gguf";
};

TEST_F(SamplingDefaultsTest, AreWhatTheFileSays) {
  const SamplingDefaults none = read([](auto&) {});
  EXPECT_FALSE(none.temperature || none.top_p || none.min_p || none.repetition_penalty || none.top_k);
  const SamplingDefaults some = read([](formats::GgufBuilder& gguf) {
    gguf.add("general.sampling.temp", 0.6F).add("general.sampling.top_k", std::int32_t{20});
  });
  EXPECT_EQ(some.temperature, 0.6F);
  EXPECT_EQ(some.top_k, 20);
  EXPECT_FALSE(some.top_p || some.min_p || some.repetition_penalty);
}

TEST_F(SamplingDefaultsTest, ThatMakeNoSenseAreRefused) {
  for (const char* key : {"temp", "top_p", "min_p", "penalty_repeat"}) {
    for (const float value : {-1.0F, NAN, INFINITY}) {
      EXPECT_THROW(read([&](auto& gguf) { gguf.add(std::string("general.sampling.") + key, value); }), Error)
          << key << value;
    }
  }
  EXPECT_THROW(read([](auto& gguf) { gguf.add("general.sampling.top_k", std::int32_t{-2}); }), Error);
  EXPECT_THROW(read([](auto& gguf) { gguf.add("general.sampling.temp", "hot"); }), Error);
}

}  // namespace
}  // namespace couplet
