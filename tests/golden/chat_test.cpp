// Every conversation that transformers rendered, byte for byte: with models' own templates, and with one small template
// a construct (tools/make_template_golden.py).

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "couplet/chat_prompt.h"
#include "couplet/chat_template.h"
#include "couplet/error.h"
#include "golden_models.h"

namespace couplet {
namespace {

using Json = nlohmann::ordered_json;  // the order of keys is part of what a template prints

const std::string kData = COUPLET_SOURCE_DIR "/tests/data/";

std::vector<Json> read_lines(const std::string& path) {
  std::istringstream file(read_file(path));
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

ChatTemplateTokens tokens_of(const Json& line) {
  const Json& special = line.at("special");
  return {.bos = special.value("bos_token", ""), .eos = special.value("eos_token", "")};
}

struct Rendered {
  std::string text, error;
};

Rendered render(const ChatTemplate& chat, const Json& conversation) {
  try {
    return {chat.render(conversation.dump()), ""};
  } catch (const Error& error) {
    return {"", error.what()};
  }
}

class ChatGolden : public ::testing::Test {
 protected:
  void SetUp() override {
    ChatTemplate::set_worker_command(COUPLET_BINARY_DIR "/tests/couplet_template_worker", "template-worker");
    ChatTemplate::set_clock(1785073530);  // 2026-07-26 13:45:30, as tools/make_template_golden.py sets it
    if (!ChatTemplate::available()) GTEST_SKIP() << "built without Rust";
  }
  void TearDown() override { ChatTemplate::set_clock(std::nullopt); }
};

TEST_F(ChatGolden, ModelsOwnTemplates) {
  const std::vector<Json> lines = read_lines(kData + "chat.jsonl");
  EXPECT_EQ(lines.size(), 40U);
  for (const Json& line : lines) {
    const std::string model = line.at("model");
    SCOPED_TRACE(model + ", " + std::string(line.at("case")));
    const ChatTemplate chat(read_file(kData + "templates/" + model + ".jinja"), tokens_of(line));
    const Rendered rendered = render(chat, {{"messages", line.at("messages")},
                                            {"tools", line.at("tools")},
                                            {"add_generation_prompt", line.at("add_generation_prompt")}});
    EXPECT_EQ(rendered.text, line.value("text", ""));
    EXPECT_EQ(rendered.error, line.contains("error") ? "[template] " + std::string(line.at("error")) : "");
  }
}

// What came of a case in transformers, as the tool writes it: "text", or "error" with what the template refuses in its
// own words, or "fails". "refused" is what we say is not supported.
void expect_same(const Json& line, const Rendered& rendered) {
  if (line.contains("text")) {
    EXPECT_EQ(rendered.error, "");
    EXPECT_EQ(rendered.text, line.value("text", ""));
  } else if (line.contains("error")) {
    std::string error = "[template] " + std::string(line.at("error"));
    std::replace(error.begin(), error.end(), '\n', ' ');  // errors are one line
    EXPECT_EQ(rendered.error, error);
  } else {
    EXPECT_NE(rendered.error, "") << "rendered: " << rendered.text;
    if (line.contains("refused")) {
      EXPECT_NE(rendered.error.find(line.value("refused", "")), std::string::npos) << rendered.error;
    }
  }
}

const ChatTemplateTokens kTokens = {.bos = "<s>", .eos = "</s>"};

TEST_F(ChatGolden, EveryTemplateOverEveryConversation) {
  const Json conversations = Json::parse(read_file(kData + "template_conversations.json"));
  const std::vector<Json> lines = read_lines(kData + "template_chats.jsonl");
  EXPECT_GT(lines.size(), 800U);
  std::map<std::string, ChatTemplate> templates;
  for (const Json& line : lines) {
    const std::string model = line.at("model"), conversation = line.at("conversation");
    SCOPED_TRACE(model + ", " + conversation);
    const auto [chat, is_new] =
        templates.try_emplace(model, read_file(kData + "templates/" + model + ".jinja"), kTokens);
    expect_same(line, render(chat->second, conversations.at(conversation)));
  }
}

// The template writes BOS and the tokenizer adds it: one stands in the prompt. Where neither does, none.
TEST_F(ChatGolden, NoBosTwice) {
  const std::string conversation = R"({"messages": [{"role": "user", "content": "Hi <|begin_of_text|><bos>"}]})";
  const auto prompt = [&](const Tokenizer& tokenizer, const std::string& source, const std::string& bos, bool writes_bos) {
    const ChatTemplate chat(source, {.bos = bos});
    EXPECT_EQ(chat.render(conversation).starts_with(bos), writes_bos);
    return chat_prompt(tokenizer, chat, conversation);
  };
  const auto source_of = [](const std::string& model) { return read_file(kData + "templates/" + model + ".jinja"); };
  for (const auto& [tokenizer, model, bos] :
       {std::tuple(&folder_tokenizer_of("llama3_1"), "llama3_1", "<|begin_of_text|>"),
        std::tuple(&folder_tokenizer_of("gemma3"), "gemma3", "<bos>"), std::tuple(&tokenizer_of("gemma3"), "gemma3", "<bos>")}) {
    SCOPED_TRACE(model);
    ASSERT_TRUE(tokenizer->adds_bos());
    std::string source = source_of(model);
    const std::vector<TokenId> ids = prompt(*tokenizer, source, bos, true);
    EXPECT_EQ(ids.front(), tokenizer->bos_id());
    EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer->bos_id()), 1);
    const std::string name = "bos_token";
    source.replace(source.find(name), name.size(), "''");
    EXPECT_EQ(ids, prompt(*tokenizer, source, bos, false)) << "a template that writes none";
  }
  const Tokenizer& smollm2 = tokenizer_of("smollm2");
  EXPECT_FALSE(smollm2.adds_bos());
  const std::vector<TokenId> turns = prompt(smollm2, source_of("smollm2"), "<|im_start|>", true);
  EXPECT_EQ(std::count(turns.begin(), turns.end(), smollm2.bos_id()), 2);  // <|im_start|>, which begins each turn
}

TEST_F(ChatGolden, Constructs) {
  const Json conversations = Json::parse(read_file(kData + "template_conversations.json"));
  const std::vector<Json> lines = read_lines(kData + "template_constructs.jsonl");
  EXPECT_GT(lines.size(), 1700U);
  for (const Json& line : lines) {
    SCOPED_TRACE(line.at("template").dump());
    const Json& conversation = line.at("conversation");
    const ChatTemplate chat(line.at("template"), kTokens);
    expect_same(line, render(chat, conversation.is_string() ? conversations.at(std::string(conversation)) : conversation));
  }
}

}  // namespace
}  // namespace couplet
