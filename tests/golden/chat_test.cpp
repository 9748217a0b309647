// Every conversation that transformers rendered, byte for byte: with five models' own templates, and with one small
// template a construct (tools/make_template_golden.py).

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "couplet/chat_template.h"
#include "couplet/error.h"

namespace couplet {
namespace {

using Json = nlohmann::ordered_json;  // the order of keys is part of what a template prints

const std::string kData = COUPLET_SOURCE_DIR "/tests/data/";

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<Json> read_lines(const std::string& path) {
  std::istringstream file(read_file(path));
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

ChatTemplateTokens tokens_of(const Json& line) {
  const Json& special = line.at("special");
  return {special.value("bos_token", ""), special.value("eos_token", ""), "", ""};
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
    if (!ChatTemplate::available()) GTEST_SKIP() << "built without Rust";
  }
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

// What the engine does otherwise than Jinja2. A case that has become equal must leave this list.
const std::set<std::string> kKnownDifferences = {
    "tools items",       // lists and dicts print as JSON, not as Python's repr
    "list printed",      //
    "dict printed",      //
    "content printed",   //
    "floats printed",    // 1e20 prints its digits
    "tojson numbers",    // 1e-7, not 1e-07
    "tojson to ascii",   // of tojson's options only indent is known
    "tojson sorted",     //
    "tojson separators", //
    "partition",         // not among the methods of text: an error
    "string percent",    // text has no % operator: an error
};

TEST_F(ChatGolden, Constructs) {
  const std::vector<Json> lines = read_lines(kData + "template_constructs.jsonl");
  EXPECT_GT(lines.size(), 130U);
  std::set<std::string> differ;
  for (const Json& line : lines) {
    const ChatTemplate chat(line.at("template"), tokens_of(line));
    const Rendered rendered = render(chat, line.at("conversation"));
    bool same = !rendered.error.empty();  // "fails": in words of its own
    if (line.contains("text")) same = rendered.error.empty() && rendered.text == line.value("text", "");
    if (line.contains("error")) same = rendered.error == "[template] " + std::string(line.at("error"));
    if (same) continue;
    differ.insert(line.at("case"));
    if (!kKnownDifferences.contains(line.at("case"))) {
      ADD_FAILURE() << line.dump(2) << "\ngot text " << rendered.text << "\ngot error " << rendered.error;
    }
  }
  EXPECT_EQ(differ, kKnownDifferences);
}

}  // namespace
}  // namespace couplet
