#include "options.h"

#include <gtest/gtest.h>

#include "couplet/error.h"

namespace couplet::cli {
namespace {

// Reads `arguments` as the sampling options of a command; the message of what is refused.
std::string refusal(const std::vector<std::string>& arguments, SamplingArguments& options) {
  CommandLine line("test", "");
  options.add_to(line);
  try {
    line.parse(arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

// A model with 100 tokens that recommends nothing.
CheckpointSummary plain_model() {
  CheckpointSummary model;
  model.vocab_size = 100;
  return model;
}

SamplingArguments accepted(const std::vector<std::string>& arguments) {
  SamplingArguments options;
  EXPECT_EQ(refusal(arguments, options), "");
  return options;
}

TEST(Options, EveryBadValueIsNamedWithWhatWasExpected) {
  const std::vector<std::vector<std::string>> cases = {{"--max-tokens", "-1"},
                                                       {"--max-tokens", "1.5"},
                                                       {"--max-tokens", ""},
                                                       {"--max-tokens", "99999999999"},
                                                       {"--temperature", "-0.1"},
                                                       {"--temperature", "nan"},
                                                       {"--temperature", "inf"},
                                                       {"--temperature", "1x"},
                                                       {"--top-k", "-1"},
                                                       {"--top-p", "0"},
                                                       {"--top-p", "1.01"},
                                                       {"--min-p", "2"},
                                                       {"--repetition-penalty", "0"},
                                                       {"--presence-penalty", "2.1"},
                                                       {"--frequency-penalty", "-3"},
                                                       {"--logit-bias", "5"},
                                                       {"--logit-bias", "-1=2"},
                                                       {"--logit-bias", "abc=2"},
                                                       {"--logit-bias", "5=1e308"},
                                                       {"--logit-bias", "5=nan"},
                                                       {"--logit-bias", "99999999999=1"},
                                                       {"--stop", ""},
                                                       {"--seed", "-1"},
                                                       {"--seed", "18446744073709551616"},
                                                       {"--logprobs", "65"},
                                                       {"--logprobs", "-1"}};
  for (const auto& arguments : cases) {
    SamplingArguments options;
    const std::string message = refusal(arguments, options);
    EXPECT_NE(message.find(arguments[0]), std::string::npos)
        << arguments[0] << " " << arguments[1] << ": " << message;
    EXPECT_NE(message.find("expected"), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(Options, ValuesAreTaken) {
  const SamplingArguments options = accepted({"--max-tokens",
                                              "0",
                                              "--temperature=0.5",
                                              "--top-k",
                                              "7",
                                              "--top-p",
                                              "1",
                                              "--min-p",
                                              "0",
                                              "--seed",
                                              "18446744073709551615",
                                              "--logit-bias",
                                              "5=-1.5",
                                              "--logit-bias",
                                              "6=2",
                                              "--stop",
                                              "a",
                                              "--stop",
                                              "[b]",
                                              "--stop",
                                              "--x",
                                              "--ignore-eos",
                                              "--logprobs",
                                              "3",
                                              "--presence-penalty",
                                              "-2"});
  EXPECT_EQ(options.stop.max_tokens, 0);
  EXPECT_EQ(options.stop.texts, (std::vector<std::string>{"a", "[b]", "--x"}));
  EXPECT_TRUE(options.stop.ignore_end);
  EXPECT_EQ(options.logprobs, 3);
  const SamplingOptions resolved = options.resolve(plain_model());
  EXPECT_EQ(resolved.temperature, 0.5F);
  EXPECT_EQ(resolved.top_k, 7);
  EXPECT_EQ(resolved.top_p, 1);
  EXPECT_EQ(resolved.presence_penalty, -2);
  EXPECT_EQ(resolved.seed, 18446744073709551615U);
  EXPECT_FALSE(options.seed_was_drawn(resolved));
  EXPECT_EQ(resolved.logit_bias, (std::vector<std::pair<TokenId, float>>{{5, -1.5F}, {6, 2.0F}}));
}

TEST(Options, DefaultsAreTheDocumentedOnesAndTheSeedIsDrawn) {
  const SamplingArguments options = accepted({});
  const SamplingOptions resolved = options.resolve(plain_model());
  EXPECT_EQ(resolved.temperature, 0.8F);
  EXPECT_EQ(resolved.top_p, 0.95F);
  EXPECT_TRUE(options.seed_was_drawn(resolved));
  EXPECT_NE(resolved.seed, options.resolve(plain_model()).seed);
  EXPECT_FALSE(options.seed_was_drawn(accepted({"--temperature", "0"}).resolve(plain_model())));
}

TEST(Options, TheModelsOwnDefaultsComeFirstAndWhatIsGivenBeforeThem) {
  CheckpointSummary model = plain_model();
  model.sampling.temperature = 0.3F;
  model.sampling.top_k = 40;
  const SamplingOptions own = accepted({}).resolve(model);
  EXPECT_EQ(own.temperature, 0.3F);
  EXPECT_EQ(own.top_k, 40);
  EXPECT_EQ(own.top_p, 1);
  const SamplingOptions given = accepted({"--temperature", "0", "--top-k", "0"}).resolve(model);
  EXPECT_EQ(given.temperature, 0);
  EXPECT_EQ(given.top_k, 0);
}

TEST(Options, ABiasOutsideTheVocabularyIsRefused) {
  const SamplingArguments options = accepted({"--logit-bias", "100=1"});
  EXPECT_THROW(options.resolve(plain_model()), Error);
  CheckpointSummary larger = plain_model();
  larger.vocab_size = 101;
  EXPECT_NO_THROW(options.resolve(larger));
}

TEST(Options, AnOptionGivenTwiceOrUnknownIsRefused) {
  SamplingArguments options;
  EXPECT_NE(refusal({"--seed", "1", "--seed", "2"}, options), "");
  EXPECT_NE(refusal({"--sed", "1"}, options), "");
  EXPECT_NE(refusal({"--seed"}, options), "");
  EXPECT_NE(refusal({"stray"}, options), "");
}

TEST(Options, APositionalMayBeAnythingBehindTwoDashes) {
  CommandLine line("test", "");
  std::string model;
  std::optional<std::string> prompt;
  line.positional("MODEL", model, "");
  line.positional("PROMPT", prompt, "");
  const std::vector<std::string> arguments = {"--", "m", "--what?"};
  ASSERT_TRUE(line.parse(arguments));
  EXPECT_EQ(model, "m");
  EXPECT_EQ(prompt, "--what?");
}

TEST(Options, PositionalsTakeDashesBracketsAndNothing) {
  for (const char* text : {"-", "", "[1, 2]", "a b", "run", "%%", "\"q\"", "'", "{}"}) {
    CommandLine line("test", "");
    std::string model;
    std::optional<std::string> prompt;
    line.positional("MODEL", model, "");
    line.positional("PROMPT", prompt, "");
    const std::vector<std::string> arguments = {"m", text};
    ASSERT_TRUE(line.parse(arguments)) << text;
    EXPECT_EQ(prompt, text);
  }
}

TEST(Options, ListsAreReadWhole) {
  EXPECT_EQ(parse_list("--x", "1,20,300", 1, 1000), (std::vector<int>{1, 20, 300}));
  for (const char* text : {"", ",", "1,", ",1", "1,,2", "1, 2", "0", "1001", "a"})
    EXPECT_THROW(parse_list("--x", text, 1, 1000), Error) << text;
}

TEST(Options, TheFirstByteThatIsNoUtf8IsFound) {
  EXPECT_EQ(find_invalid_utf8("“ok” \xf0\x9f\x98\x8a"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("ab\xff"), 2U);
  EXPECT_EQ(find_invalid_utf8("\xf0\x9f"), 0U);
  EXPECT_EQ(find_invalid_utf8("a\xc0\x80"), 1U);
  EXPECT_THROW(prompt_text("a\xff"), Error);
  EXPECT_THROW(prompt_text(""), Error);
  EXPECT_EQ(prompt_text("a\n"), "a\n");
}

}  // namespace
}  // namespace couplet::cli
