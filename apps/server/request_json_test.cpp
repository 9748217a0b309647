// What a client may send and what it may not: each refusal names its field, says what was expected, and repeats no bad byte.

#include <gtest/gtest.h>

#include "server/api_error.h"
#include "server/fields.h"
#include "server/json.h"
#include "server/routes_testing.h"

namespace couplet::server {
namespace {

std::string refusal_of(std::string_view body) {
  try {
    parse_json(body);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    const Json reply = Json::parse(error.reply().body);  // throws where it is no clean UTF-8
    EXPECT_EQ(reply["error"]["type"], "invalid_request_error");
    return error.what();
  }
  return "";
}

TEST(RequestJson, SaysWhereItIsNone) {
  EXPECT_EQ(refusal_of(R"({"a": 1, "b": [1.5e3, "\u0000\ud83d\ude00"]})"), "");
  EXPECT_EQ(refusal_of(""), "[json] the body: expected JSON, got its end too early at byte 1 (line 1, column 1)");
  EXPECT_EQ(refusal_of("{\n  \"a\": tru }"), "[json] the body: expected JSON, got something else at byte 13 (line 2, column 11)");
  EXPECT_EQ(refusal_of("{\"a\": \"\xff\"}"), "[json] the body: expected JSON, got bytes that are no UTF-8 at byte 8 (line 1, column 8)");
  EXPECT_NE(refusal_of("\"\xc0\x80\"").find("no UTF-8"), std::string::npos);
  EXPECT_NE(refusal_of("\"caf\xe9\"").find("no UTF-8"), std::string::npos);
  EXPECT_NE(refusal_of("\"\xed\xa0\x80\"").find("no UTF-8"), std::string::npos);
  EXPECT_NE(refusal_of(R"("\ud800")").find("half a surrogate pair"), std::string::npos);
  EXPECT_NE(refusal_of(R"("\udc00\ud800")").find("half a surrogate pair"), std::string::npos);
  EXPECT_NE(refusal_of("[1e999]").find("beyond the range"), std::string::npos);
  for (const char* bad : {"{", "[1,]", "{\"a\":1,}", "{'a':1}", "NaN", "[1] 2", "{\"a\" 1}", "nul", "\"\n\"", "01", "{1:2}"})
    EXPECT_NE(refusal_of(bad), "") << bad;
}

TEST(RequestJson, BoundsWhatABodyCosts) {
  EXPECT_NE(refusal_of(std::string(1'000'000, '[')).find("at most 64 levels"), std::string::npos);
  EXPECT_EQ(refusal_of(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_NE(refusal_of(std::string(65, '[') + std::string(65, ']')), "");
  std::string many = "[0";
  for (std::size_t i = 1; i < kMaxJsonValues; ++i) many += ",0";
  EXPECT_NE(refusal_of(many + "]").find("values"), std::string::npos);
  std::string keys = "{\"0\":0";
  for (std::size_t i = 1; i < kMaxJsonKeys; ++i) keys += ",\"" + std::to_string(i) + "\":0";
  EXPECT_EQ(refusal_of(keys + "}"), "");
  EXPECT_NE(refusal_of(keys + ",\"x\":0}").find("keys"), std::string::npos);
  EXPECT_EQ(refusal_of(R"({"a": 1, "b": {"a": 2}, "a": 3})"), "[json] the body: expected each key of an object once, got \"a\" twice");
}

TEST(RequestJson, KeepsOrderAndText) {
  const Json json = parse_json(R"({"b": [1, {"z": null, "a": "\u0000x"}], "a": -0.5})");
  EXPECT_EQ(json.dump(), R"({"b":[1,{"z":null,"a":"\u0000x"}],"a":-0.5})");
}

TEST(RequestJson, WritesWhatEveryClientReads) {
  EXPECT_EQ(dump("a\xc2\x85" "b\xe2\x80\xa8" "c\xe2\x80\xa9\xc3\xa9\xe2\x82\xac"), "\"a\\u0085b\\u2028c\\u2029\xc3\xa9\xe2\x82\xac\"");
  EXPECT_EQ(dump("\xff"), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(dump(shortest(-0.1F)), "-0.1");
  EXPECT_EQ(dump(shortest(-0.0F)), "0.0");
  EXPECT_EQ(shown(Json("a\nb")), "\"a\\nb\"");
  EXPECT_EQ(shown(Json(std::string(1000, 'x'))).size(), 43U);
}

struct Refused {
  const char* field;
  const char* value;
  const char* param = nullptr;  // null: the field
};

class RefusedFields : public RoutesTest {
 protected:
  void expect(const std::string& path, const Json& base, const Refused& refused) {
    Json body = base;
    body[refused.field] = Json::parse(refused.value);
    const Json error = post(path, body, 400)["error"];
    EXPECT_EQ(error["param"], refused.param == nullptr ? refused.field : refused.param) << body.dump() << error.dump();
    EXPECT_TRUE(error["code"].is_string());
  }
};

TEST_F(RefusedFields, OfBothProtocols) {
  const Refused table[] = {
      {"temperature", "-0.1"}, {"temperature", "2.1"}, {"temperature", "\"1\""}, {"temperature", "true"}, {"temperature", "[1]"},
      {"top_p", "1.01"}, {"top_p", "-1"}, {"top_k", "-2"}, {"top_k", "1.5"}, {"min_p", "2"},
      {"presence_penalty", "2.5"}, {"frequency_penalty", "-3"}, {"repetition_penalty", "0"}, {"repeat_penalty", "-1"},
      {"seed", "1.5"}, {"seed", "\"1\""}, {"seed", "1e30"}, {"seed", "-9223372036854775809"}, {"seed", "18446744073709551616"},
      {"stop", "\"\"", "stop"}, {"stop", "[\"a\", \"\"]", "stop[1]"}, {"stop", "[1]", "stop[0]"}, {"stop", "1"},
      {"stop_token_ids", "[517]", "stop_token_ids[0]"}, {"stop_token_ids", "[1, -1]", "stop_token_ids[1]"}, {"stop_token_ids", "3"},
      {"logit_bias", "{\"517\": 1}"}, {"logit_bias", "{\"-1\": 1}"}, {"logit_bias", "{\"abc\": 1}"}, {"logit_bias", "{\"1\": 101}", "logit_bias.1"},
      {"logit_bias", "{\"1\": 1e308}", "logit_bias.1"}, {"logit_bias", "{\"1\": \"1\"}", "logit_bias.1"}, {"logit_bias", "{\"1\": null}", "logit_bias.1"},
      {"logit_bias", "[1]"}, {"n", "0"}, {"n", "17"}, {"n", "1.5"}, {"max_tokens", "-2"}, {"max_tokens", "\"5\""}, {"max_completion_tokens", "1.5"},
      {"stream", "1"}, {"stream_options", "true"}, {"stream_options", "{\"include_usage\": 1}", "stream_options.include_usage"},
      {"priority", "101"}, {"cache_salt", "1"}, {"ignore_eos", "0"}, {"model", "1"}, {"timings", "1"}, {"ledger", "{}"},
      {"tools", "[{\"type\": \"function\"}]"}, {"tool_choice", "\"required\""}, {"functions", "[{}]"}, {"response_format", "{\"type\": \"json_object\"}"},
      {"response_format", "{\"type\": \"json_schema\"}"}, {"grammar", "\"root ::= x\""}, {"min_tokens", "1"}, {"prompt_logprobs", "1"},
      {"chat_template", "\"{{ messages }}\""}, {"structured_outputs", "{}"}, {"modalities", "[\"audio\"]"}, {"audio", "{}"}, {"suffix", "\"x\""},
  };
  const Json completion = {{"prompt", "x"}};
  for (const Refused& refused : table) {
    expect("/v1/chat/completions", chat_body("x"), refused);
    expect("/v1/completions", completion, refused);
  }
}

TEST_F(RefusedFields, OfCompletions) {
  const Refused table[] = {
      {"prompt", "\"\""}, {"prompt", "[]"}, {"prompt", "[[]]", "prompt[0]"}, {"prompt", "null"}, {"prompt", "1"}, {"prompt", "{}"},
      {"prompt", "[97, -1]", "prompt[1]"}, {"prompt", "[97, 517]", "prompt[1]"}, {"prompt", "[97, 1.5]", "prompt[1]"},
      {"prompt", "[97, null]", "prompt[1]"}, {"prompt", "[2147483647]", "prompt[0]"}, {"prompt", "[97, \"a\"]", "prompt[1]"},
      {"prompt", "[\"a\", \"\"]", "prompt[1]"}, {"prompt", "[\"a\", [97, -1]]", "prompt[1][1]"}, {"prompt", "[\"a\", 97]", "prompt[1]"},
      {"logprobs", "6"}, {"logprobs", "true"}, {"best_of", "2"}, {"echo", "1"},
  };
  for (const Refused& refused : table) expect("/v1/completions", {{"prompt", "x"}}, refused);
}

TEST_F(RefusedFields, OfConversations) {
  const Refused table[] = {
      {"messages", "[]"}, {"messages", "null"}, {"messages", "{}"}, {"messages", "[1]", "messages[0]"}, {"messages", "[{}]", "messages[0].role"},
      {"messages", R"([{"role": "robot", "content": "x"}])", "messages[0].role"}, {"messages", R"([{"role": "tool", "content": "x"}])", "messages[0].role"},
      {"messages", R"([{"role": "user"}])", "messages[0].content"}, {"messages", R"([{"role": "user", "content": null}])", "messages[0].content"},
      {"messages", R"([{"role": "user", "content": 1}])", "messages[0].content"}, {"messages", R"([{"role": "user", "content": []}])", "messages[0].content"},
      {"messages", R"([{"role": "user", "content": [{"type": "text"}]}])", "messages[0].content[0].text"},
      {"messages", R"([{"role": "user", "content": "x"}, {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url"}]}])", "messages[1].content[1].type"},
      {"messages", R"([{"role": "assistant", "tool_calls": [{}]}])", "messages[0].tool_calls"},
      {"messages", R"([{"role": "user", "content": "x"}, {"role": "user", "content": "y"}])", "messages"},
      {"top_logprobs", "21"}, {"top_logprobs", "1000000"}, {"top_logprobs", "3"}, {"logprobs", "1"}, {"reasoning_effort", "\"huge\""}, {"echo", "true"},
      {"chat_template_kwargs", "[]"}, {"chat_template_kwargs", R"({"messages": []})"}, {"chat_template_kwargs", R"({"chat_template": "x"})"},
      {"continue_final_message", "1"}, {"add_generation_prompt", "\"no\""},
  };
  for (const Refused& refused : table) expect("/v1/chat/completions", chat_body("x"), refused);
  Json body = chat_body("x");
  body.update({{"continue_final_message", true}, {"add_generation_prompt", true}});
  EXPECT_EQ(post("/v1/chat/completions", body, 400)["error"]["param"], "add_generation_prompt");
  body = chat_body("x");
  body["messages"].push_back(body["messages"][0]);
  EXPECT_NE(post("/v1/chat/completions", body, 400)["error"]["message"].get<std::string>().find("roles must alternate"), std::string::npos);
}

TEST_F(RefusedFields, OthersPass) {
  Json body = chat_body("x");
  body.update({{"tools", Json::array()}, {"tool_choice", "none"}, {"functions", nullptr}, {"response_format", {{"type", "text"}}}, {"metadata", {{"a", "b"}}},
               {"store", true}, {"user", "me"}, {"safety_identifier", "x"}, {"frobnicate", {1, 2}}, {"stop", nullptr}, {"max_tokens", nullptr},
               {"top_logprobs", 0}, {"logit_bias", {{"97", -100}, {"98", 100.0}}}, {"temperature", 1e-40}, {"top_p", 0}, {"top_k", 1000000000},
               {"seed", -1}, {"service_tier", "auto"}, {"n", 1.0}, {"stream_options", nullptr}, {"chat_template_kwargs", {{"tone", "dry"}}}, {"reasoning_effort", "low"}});
  EXPECT_EQ(post("/v1/chat/completions", body)["service_tier"], "default");
  EXPECT_EQ(post("/apply-template", body)["prompt"], "[user]x\n(dry)[assistant]");
  body["seed"] = std::uint64_t{18446744073709551615U};
  post("/v1/chat/completions", body);
  body["model"] = "gpt-4";
  EXPECT_EQ(post("/v1/chat/completions", body, 404)["error"]["code"], "model_not_found");
}

TEST_F(RefusedFields, ConversationsAreReadAsTheTemplateTakesThem) {
  Json body = {{"messages", {{{"role", "developer"}, {"content", {{{"type", "text"}, {"text", "be"}}, {{"type", "text"}, {"text", "brief"}}}}},
                             {{"role", "user"}, {"content", "x"}},
                             {{"role", "assistant"}, {"content", nullptr}, {"refusal", "no"}}}},
               {"add_generation_prompt", false}};
  EXPECT_EQ(post("/apply-template", body)["prompt"], "[system]be\nbrief\n[user]x\n[assistant]no\n");
  body["messages"][2] = {{"role", "assistant"}, {"content", "so"}};
  body.erase("add_generation_prompt");
  body["continue_final_message"] = true;
  EXPECT_EQ(post("/apply-template", body)["prompt"], "[system]be\nbrief\n[user]x\n[assistant]so");
}

class WithoutTemplate : public RoutesTest {
 protected:
  WithoutTemplate() : RoutesTest(nullptr) {}
};

TEST_F(WithoutTemplate, AConversationIsRefused) {
  for (const char* path : {"/v1/chat/completions", "/tokenize", "/apply-template"})
    EXPECT_EQ(post(path, chat_body("x"), 400)["error"]["code"], "no_chat_template");
  post("/v1/completions", {{"prompt", "x"}});
}

}  // namespace
}  // namespace couplet::server
