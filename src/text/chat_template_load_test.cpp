// A template and its special tokens as a checkpoint carries them.

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "couplet/error.h"
#include "formats/gguf_builder.h"
#include "text/load.h"

namespace couplet::text {
namespace {

// A vocabulary of four tokens, and nothing else.
class FourTokens : public Tokenizer {
 public:
  std::vector<TokenId> tokenize(std::string_view, TokenizeOptions) const override { return {}; }
  std::size_t inexpressible(std::string_view) const override { return 0; }
  int vocab_size() const override { return 4; }
  TokenKind kind(TokenId) const override { return TokenKind::control; }
  std::string_view vocabulary_text(TokenId id) const override {
    return std::array<std::string_view, 4>{"<unk>", "<s>", "</s>", "<pad>"}.at(static_cast<std::size_t>(id));
  }
  std::string bytes(TokenId, bool) const override { return ""; }
  bool adds_bos() const override { return false; }
  TokenId bos_id() const override { return -1; }
  TokenId eos_id() const override { return -1; }
  TokenId unknown_id() const override { return -1; }
  std::span<const TokenId> end_ids() const override { return {}; }
  std::string_view family() const override { return "bpe"; }
  std::string_view pre_tokenizer() const override { return ""; }
};

std::unique_ptr<ChatTemplate> load(const formats::GgufBuilder& builder) {
  const std::vector<std::byte> bytes = builder.build();
  return load_chat_template(*formats::CheckpointFile::parse(bytes), FourTokens());
}

constexpr const char* kShowTokens =
    "{{ bos_token }},{{ eos_token }},{{ unk_token }},{{ sep_token }},{{ pad_token is defined }}";

TEST(LoadChatTemplate, NoneInTheFileIsNone) {
  EXPECT_EQ(load(formats::GgufBuilder().add("general.architecture", "llama")), nullptr);
}

TEST(LoadChatTemplate, KnowsTheFilesSpecialTokens) {
  const auto chat = load(formats::GgufBuilder()
                             .add("tokenizer.chat_template", kShowTokens)
                             .add("tokenizer.ggml.bos_token_id", std::uint32_t{1})
                             .add("tokenizer.ggml.eos_token_id", std::uint32_t{2})
                             .add("tokenizer.ggml.unknown_token_id", std::uint32_t{0})
                             .add("tokenizer.ggml.seperator_token_id", std::uint32_t{3}));
  ASSERT_NE(chat, nullptr);
  EXPECT_EQ(chat->source(), kShowTokens);
  if (!ChatTemplate::available()) return;
  ChatTemplate::set_worker_command(COUPLET_BINARY_DIR "/tests/couplet_template_worker", "template-worker");
  EXPECT_EQ(chat->render(R"({"messages": [{"role": "user"}]})"), "<s>,</s>,<unk>,<pad>,False");
}

TEST(LoadChatTemplate, AConversationWithToolsTakesTheTemplateForThem) {
  const auto both = load(formats::GgufBuilder()
                             .add("tokenizer.chat_template", "plain")
                             .add("tokenizer.chat_template.tool_use", "{{ tools | length }} tools"));
  const auto alone = load(formats::GgufBuilder().add("tokenizer.chat_template.tool_use", "{{ tools | length }} tools"));
  ASSERT_NE(both, nullptr);
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(both->source(), "plain");
  EXPECT_EQ(both->tool_use_source(), "{{ tools | length }} tools");
  if (!ChatTemplate::available()) return;
  ChatTemplate::set_worker_command(COUPLET_BINARY_DIR "/tests/couplet_template_worker", "template-worker");
  constexpr const char* kWith = R"({"messages": [{"role": "user"}], "tools": [{"a": 1}]})";
  constexpr const char* kEmpty = R"({"messages": [{"role": "user"}], "tools": []})";
  constexpr const char* kWithout = R"({"messages": [{"role": "user"}], "tools": null})";
  EXPECT_EQ(both->render(kWith), "1 tools");
  EXPECT_EQ(both->render(kEmpty), "0 tools");  // as transformers chooses: given, though none
  EXPECT_EQ(both->render(kWithout), "plain");
  EXPECT_EQ(alone->render(kWith), "1 tools");
  EXPECT_THROW(alone->render(kWithout), Error);
}

TEST(LoadChatTemplate, AnIdPastTheVocabularyIsRefused) {
  try {
    load(formats::GgufBuilder()
             .add("tokenizer.chat_template", "x")
             .add("tokenizer.ggml.padding_token_id", std::uint32_t{4}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::format);
    EXPECT_STREQ(error.what(), "[template] tokenizer.ggml.padding_token_id: expected an id below 4, got 4");
  }
}

}  // namespace
}  // namespace couplet::text
