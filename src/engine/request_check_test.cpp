#include "engine/request_check.h"

#include <gtest/gtest.h>

#include <limits>

namespace couplet::engine {
namespace {

constexpr int kVocab = 49152;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::string check_sampling(const SamplingOptions& options) { return check(options, {}, kVocab); }
std::string check_stop(const StopOptions& options) { return check({}, options, kVocab); }

// One line that names the option.
void expect_refused(const std::string& refusal, const std::string& option) {
  EXPECT_TRUE(refusal.starts_with(option)) << refusal;
  EXPECT_NE(refusal.find("expected"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("got"), std::string::npos) << refusal;
  EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
}

TEST(RequestCheck, DefaultsAndEdgesPass) {
  EXPECT_EQ(check({}, {}, kVocab), "");
  EXPECT_EQ(check_sampling({.temperature = 0, .top_k = 1, .top_p = 1, .min_p = 0}), "");
  EXPECT_EQ(check_sampling({.temperature = 1e-40F, .top_k = -1, .top_p = 1e-40F, .min_p = 1}), "");
  EXPECT_EQ(check_sampling({.temperature = 3e38F, .top_k = 1000000000}), "");
  EXPECT_EQ(check_sampling({.presence_penalty = -2, .frequency_penalty = 2}), "");
  EXPECT_EQ(check_sampling({.logit_bias = {{0, -1e30F}, {kVocab - 1, 100}}}), "");
  EXPECT_EQ(check_stop({.max_tokens = 0, .texts = {"\n", "\U0001F60A"}, .ids = {0, kVocab - 1}}), "");
}

TEST(RequestCheck, NumbersOutOfRange) {
  for (const float bad : {-1.0F, -1e-40F, kNan, kInf}) expect_refused(check_sampling({.temperature = bad}), "temperature");
  for (const int bad : {-2, INT32_MIN}) expect_refused(check_sampling({.top_k = bad}), "top_k");
  for (const float bad : {0.0F, -0.5F, 1.001F, kNan}) expect_refused(check_sampling({.top_p = bad}), "top_p");
  for (const float bad : {-0.1F, 1.001F, kNan}) expect_refused(check_sampling({.min_p = bad}), "min_p");
  for (const float bad : {0.0F, -1.0F, kInf, kNan})
    expect_refused(check_sampling({.repetition_penalty = bad}), "repetition_penalty");
  for (const float bad : {-2.01F, 2.01F, kNan}) {
    expect_refused(check_sampling({.presence_penalty = bad}), "presence_penalty");
    expect_refused(check_sampling({.frequency_penalty = bad}), "frequency_penalty");
  }
}

TEST(RequestCheck, LogitBias) {
  for (const TokenId bad : {kVocab, -1, INT32_MAX}) expect_refused(check_sampling({.logit_bias = {{bad, 1}}}), "logit_bias");
  for (const float bad : {static_cast<float>(1e308), 2e30F, -kInf, kNan})
    expect_refused(check_sampling({.logit_bias = {{1, 1}, {5, bad}}}), "logit_bias of id 5");
  SamplingOptions many;
  many.logit_bias.assign(kVocab + 1, {0, 1.0F});
  expect_refused(check_sampling(many), "logit_bias");
}

TEST(RequestCheck, Stops) {
  EXPECT_EQ(check_stop({.ids = {151645}}), "stop id: expected an id from 0 to 49151, got 151645");
  expect_refused(check_stop({.ids = {1, -1}}), "stop id");
  expect_refused(check_stop({.texts = {"a", ""}}), "stop text 1");
  expect_refused(check_stop({.texts = {std::string(kMaxStopBytes + 1, 'a')}}), "stop text 0");
  expect_refused(check_stop({.texts = std::vector<std::string>(kMaxStopTexts + 1, "a")}), "stop texts");
  // Part of a character could cut one in the reply.
  for (const char* bad : {"\x9F\x98", "\xF0\x9F", "a\xFF", "\xC0\x80", "\xED\xA0\x80"})
    expect_refused(check_stop({.texts = {bad}}), "stop text 0");
  expect_refused(check_stop({.max_tokens = -2}), "max_tokens");
}

}  // namespace
}  // namespace couplet::engine
