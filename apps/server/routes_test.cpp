// The routes on a tiny model and a real engine, without sockets.

#include "server/routes.h"

#include <algorithm>
#include <set>
#include <thread>

#include "server/routes_testing.h"

namespace couplet::server {
namespace {

std::string joined(const std::vector<Json>& events, const char* what, int index = 0) {
  std::string text;
  for (const Json& event : events)
    for (const Json& choice : event.value("choices", Json::array()))
      if (choice["index"] == index) text += what[0] == 'd' ? choice["delta"].value("content", "") : choice.value("text", "");
  return text;
}

TEST_F(RoutesTest, HasTheSmallRoutes) {
  EXPECT_EQ(ask("GET", "/health")->head.body, R"({"status":"ok"})");
  EXPECT_EQ(ask("HEAD", "/v1/health")->head.status, 200);
  const Json models = Json::parse(ask("GET", "/v1/models")->head.body);
  EXPECT_EQ(models["object"], "list");
  EXPECT_EQ(models["data"][0]["id"], "tiny");
  EXPECT_EQ(models["data"][0]["max_model_len"], 700);
  EXPECT_EQ(models["data"][0]["owned_by"], "couplet");
  EXPECT_EQ(Json::parse(ask("GET", "/v1/models/tiny")->head.body), models["data"][0]);
  const auto other = ask("GET", "/v1/models/other");
  EXPECT_EQ(other->head.status, 404);
  EXPECT_EQ(Json::parse(other->head.body)["error"]["code"], "model_not_found");
  EXPECT_EQ(ask("GET", "/metrics")->head.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(ask("GET", "/version")->head.body.find("numerics_version"), std::string::npos);
  EXPECT_EQ(ask("GET", "/")->head.content_type, "text/html; charset=utf-8");
}

TEST_F(RoutesTest, SaysWhatItHasNot) {
  const auto wrong_method = ask("DELETE", "/v1/chat/completions");
  EXPECT_EQ(wrong_method->head.status, 405);
  EXPECT_EQ(wrong_method->head.headers, (std::vector<std::pair<std::string, std::string>>{{"allow", "POST"}}));
  EXPECT_EQ(ask("POST", "/v1/models")->head.headers[0].second, "GET, HEAD");
  EXPECT_EQ(ask("POST", "/v1/responses")->head.status, 404);
  EXPECT_NE(ask("POST", "/v1/embeddings")->head.body.find("not supported in this version"), std::string::npos);
  const Json unknown = Json::parse(ask("GET", "/nowhere")->head.body);
  EXPECT_EQ(unknown["error"]["code"], "unknown_url");
  EXPECT_EQ(ask("GET", "/v1/models/")->head.status, 404);
}

TEST_F(RoutesTest, AnswersAConversationAsTheEngineAlone) {
  const Json reply = post("/v1/chat/completions", chat_body("Hello"));
  EXPECT_TRUE(reply["id"].get<std::string>().starts_with("chatcmpl-"));
  EXPECT_EQ(reply["object"], "chat.completion");
  EXPECT_EQ(reply["model"], "tiny");
  const Json& choice = reply["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_TRUE(choice["logprobs"].is_null());
  const int completion = reply["usage"]["completion_tokens"];
  EXPECT_EQ(choice["finish_reason"], completion == 12 ? "length" : "stop");
  const std::string prompt = "[user]Hello\n[assistant]";
  EXPECT_EQ(reply["usage"]["prompt_tokens"], prompt.size());  // a vocabulary of bytes
  EXPECT_EQ(post("/apply-template", chat_body("Hello"))["prompt"], prompt);
}

TEST_F(RoutesTest, SeedsChoicesAndStreamsGiveTheSameTexts) {
  Json body = chat_body("Tell");
  body.update({{"n", 3}, {"seed", 42}, {"temperature", 1.5}, {"max_tokens", 40}, {"logprobs", true}, {"top_logprobs", 2}});
  const Json whole = post("/v1/chat/completions", body);
  body["stream_options"] = {{"include_usage", true}};
  const std::vector<Json> events = stream("/v1/chat/completions", body);
  std::set<std::string> texts;
  for (int i = 0; i < 3; ++i) {
    const Json& choice = whole["choices"][static_cast<std::size_t>(i)];
    EXPECT_EQ(joined(events, "delta", i), choice["message"]["content"].get<std::string>());
    texts.insert(choice["message"]["content"].get<std::string>());
    Json tokens = Json::array();
    int num_roles = 0;
    std::vector<std::string> reasons;
    for (const Json& event : events) {
      for (const Json& chunk : event["choices"]) {
        if (chunk["index"] != i) continue;
        num_roles += chunk["delta"].contains("role") ? 1 : 0;
        EXPECT_TRUE(reasons.empty()) << "a chunk after the last";
        if (chunk["finish_reason"].is_string()) reasons.push_back(chunk["finish_reason"]);
        if (chunk["logprobs"].is_object())
          for (const Json& token : chunk["logprobs"]["content"]) tokens.push_back(token);
      }
    }
    EXPECT_EQ(num_roles, 1);
    EXPECT_EQ(reasons, std::vector<std::string>{choice["finish_reason"]});
    EXPECT_EQ(tokens, choice["logprobs"]["content"]);
    std::string bytes;
    for (const Json& token : tokens) {
      EXPECT_EQ(token["top_logprobs"].size(), 2U);
      EXPECT_LE(token["logprob"], 0);
      if (token["bytes"].is_array())
        for (const Json& byte : token["bytes"]) bytes += static_cast<char>(byte.get<int>());
    }
    EXPECT_EQ(Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace), choice["message"]["content"].dump());
  }
  EXPECT_EQ(texts.size(), 3U);
  // Usage once, last, with no choices; null before.
  EXPECT_EQ(events.back()["choices"], Json::array());
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], whole["usage"]["completion_tokens"]);
  for (std::size_t i = 0; i + 1 < events.size(); ++i) EXPECT_TRUE(events[i]["usage"].is_null() && events[i]["choices"].size() == 1U);
  for (const Json& event : events) EXPECT_EQ(event["id"], events[0]["id"]);
}

TEST_F(RoutesTest, GivesNoUsageThatNobodyAskedFor) {
  for (const Json& event : stream("/v1/chat/completions", chat_body("Hi"))) {
    EXPECT_FALSE(event.contains("usage"));
    EXPECT_EQ(event["choices"].size(), 1U);
  }
}

TEST_F(RoutesTest, EndsWhereItIsTold) {
  Json body = {{"prompt", "abc"}, {"temperature", 0}, {"max_tokens", 30}, {"ignore_eos", true}};
  const std::string all = post("/v1/completions", body)["choices"][0]["text"];
  for (const int limit : {0, 1, 2}) {
    body["max_tokens"] = limit;
    const Json reply = post("/v1/completions", body);
    EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(reply["usage"]["completion_tokens"], limit);
  }
  body["max_completion_tokens"] = 3;
  EXPECT_EQ(post("/v1/completions", body)["usage"]["completion_tokens"], 3) << "the newer field counts";
  body.erase("max_completion_tokens");
  body["max_tokens"] = 30;
  // A stop inside the reply: nothing of it is shown, streamed or not.
  std::size_t cut = all.size() / 2;
  while ((static_cast<unsigned char>(all[cut]) & 0xC0) == 0x80) ++cut;
  body["stop"] = Json::array({"not there", all.substr(cut, 6)});
  while (body["stop"][1].get<std::string>().size() > 4 && (static_cast<unsigned char>(all[cut + body["stop"][1].get<std::string>().size()]) & 0xC0) == 0x80)
    body["stop"][1] = all.substr(cut, body["stop"][1].get<std::string>().size() - 1);
  const Json stopped = post("/v1/completions", body);
  EXPECT_EQ(stopped["choices"][0]["finish_reason"], "stop");
  const std::string shown = stopped["choices"][0]["text"];
  EXPECT_EQ(shown, all.substr(0, all.find(body["stop"][1].get<std::string>())));
  EXPECT_EQ(joined(stream("/v1/completions", body), "text"), shown);
}

TEST_F(RoutesTest, ContextFullIsLength) {
  const Json reply = post("/v1/completions", {{"prompt", std::string(690, 'a')}, {"max_tokens", -1}, {"ignore_eos", true}});
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(reply["usage"]["total_tokens"], 700);
  const Json error = post("/v1/completions", {{"prompt", std::string(701, 'a')}}, 400)["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_NE(error["message"].get<std::string>().find("700 tokens"), std::string::npos);
  EXPECT_NE(error["message"].get<std::string>().find("701 tokens"), std::string::npos);
}

TEST_F(RoutesTest, EchoesAPromptWithItsLogprobs) {
  Json body = {{"prompt", "ab\xc3\xa9"}, {"echo", true}, {"logprobs", 2}, {"max_tokens", 3}, {"temperature", 0}, {"ignore_eos", true}};
  const Json choice = post("/v1/completions", body)["choices"][0];
  const Json& logprobs = choice["logprobs"];
  ASSERT_EQ(logprobs["tokens"].size(), 7U);
  EXPECT_EQ(logprobs["tokens"][2], "bytes:\\xc3");
  EXPECT_EQ(logprobs["tokens"][3], "bytes:\\xa9");
  EXPECT_EQ(logprobs["text_offset"][0], 0);
  EXPECT_EQ(logprobs["text_offset"][2], 2);
  EXPECT_EQ(logprobs["text_offset"][3], 2);
  EXPECT_EQ(logprobs["text_offset"][4], 3);
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
  EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
  for (std::size_t i = 1; i < 7; ++i) {
    EXPECT_LE(logprobs["token_logprobs"][i], 0);
    EXPECT_TRUE(logprobs["top_logprobs"][i].contains(logprobs["tokens"][i].get<std::string>()));
  }
  EXPECT_TRUE(choice["text"].get<std::string>().starts_with("ab\xc3\xa9"));
  const std::vector<Json> events = stream("/v1/completions", body);
  EXPECT_EQ(joined(events, "text"), choice["text"].get<std::string>());
  Json all = {{"tokens", Json::array()}, {"token_logprobs", Json::array()}, {"top_logprobs", Json::array()}, {"text_offset", Json::array()}};
  for (const Json& event : events)
    for (auto& [name, list] : all.items())
      for (const Json& value : event["choices"][0]["logprobs"][name]) list.push_back(value);
  EXPECT_EQ(all, logprobs);
}

TEST_F(RoutesTest, TakesPromptsOfEveryKind) {
  const Json many = post("/v1/completions", {{"prompt", {"ab", Json::array({97, 98, 99})}}, {"n", 2}, {"seed", 7}, {"max_tokens", 8}});
  ASSERT_EQ(many["choices"].size(), 4U);
  EXPECT_EQ(many["usage"]["prompt_tokens"], 5);
  const Json alone = post("/v1/completions", {{"prompt", Json::array({97, 98, 99})}, {"n", 2}, {"seed", 7}, {"max_tokens", 8}});
  EXPECT_EQ(alone["choices"][1]["text"], many["choices"][3]["text"]);
  EXPECT_EQ(many["choices"][3]["index"], 3);
}

TEST_F(RoutesTest, TellsStagesWhenAsked) {
  Json body = chat_body(std::string(300, 'x'));
  body.update({{"timings", true}, {"ledger", true}, {"return_progress", true}, {"return_token_ids", true}, {"ignore_eos", true}});
  const Json whole = post("/v1/chat/completions", body);
  EXPECT_EQ(whole["timings"]["prompt_n"], whole["usage"]["prompt_tokens"]);
  EXPECT_EQ(whole["timings"]["predicted_n"], 12);
  EXPECT_EQ(whole["prompt_token_ids"].size(), whole["usage"]["prompt_tokens"].get<std::size_t>());
  const Json& choice = whole["choices"][0];
  EXPECT_EQ(choice["token_ids"].size(), 12U);
  const Json& ledger = choice["ledger"];
  ASSERT_EQ(ledger.size(), 12U);
  EXPECT_EQ(ledger[0]["stage"], "prefill");
  EXPECT_EQ(ledger[11]["stage"], "decode");
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(ledger[i]["choice"]["id"], choice["token_ids"][i]);
    EXPECT_EQ(ledger[i]["choice"]["top"].size(), 5U);
    EXPECT_GT(ledger[i]["integer_operations"], 0);
    EXPECT_EQ(ledger[i]["whole_step"]["sequences"], 1);
    if (i > 0) {
      EXPECT_GE(ledger[i]["began_ms"], ledger[i - 1]["began_ms"]);
    }
  }
  const std::vector<Json> events = stream("/v1/chat/completions", body);
  EXPECT_EQ(events[0]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(events[1]["prompt_progress"]["total"], whole["usage"]["prompt_tokens"]);
  EXPECT_EQ(events[1]["prompt_progress"]["processed"], whole["usage"]["prompt_tokens"]);
  EXPECT_GT(events[1]["prompt_progress"]["cache"], 0);  // the first request left it
  EXPECT_TRUE(events.back().contains("timings"));
  std::size_t num_entries = 0;
  for (const Json& event : events) num_entries += event["choices"][0]["ledger"].size();
  EXPECT_EQ(num_entries, 12U);
}

TEST_F(RoutesTest, ThePageNamesWhatMayRunOnIt) {
  const HttpReply page = ask("GET", "/")->head;
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_TRUE(page.body.starts_with("<!doctype html>"));
  EXPECT_NE(page.body.find("default-src 'none'; connect-src 'self'"), std::string::npos);
  EXPECT_EQ(page.body.find("https://"), std::string::npos);  // it needs nobody else
}

TEST_F(RoutesTest, CountsCachedTokens) {
  const Json body = chat_body(std::string(100, 'y'));
  EXPECT_EQ(post("/v1/chat/completions", body)["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  const Json again = post("/v1/chat/completions", body);
  EXPECT_GE(again["usage"]["prompt_tokens_details"]["cached_tokens"], 96);
}

TEST_F(RoutesTest, AClientThatLeavesIsCancelled) {
  for (const bool after_text : {false, true}) {
    Json body = chat_body("Go on");
    body.update({{"stream", true}, {"max_tokens", -1}, {"ignore_eos", true}});
    const auto exchange = send("POST", "/v1/chat/completions", body.dump());
    if (after_text) run_until([&] { return exchange->stream.size() > 1000; });
    exchange->leave();
    EXPECT_EQ(host_->num_groups(), 0);
    while (engine_->has_work()) std::this_thread::yield();  // the cancelled sequence ends with the step that runs
    EXPECT_EQ(exchange->stream.find("[DONE]"), std::string::npos);
  }
}

TEST_F(RoutesTest, AClientDroppedByAWriteIsCancelled) {
  for (const std::size_t bytes : {1U, 2000U}) {
    Json body = chat_body("Go on");
    body.update({{"stream", true}, {"max_tokens", 20}, {"n", 2}, {"ignore_eos", true}});
    const auto exchange = send("POST", "/v1/chat/completions", body.dump());
    exchange->on_write = [&] {
      if (exchange->stream.size() >= bytes) exchange->leave();
    };
    run_until([&] { return exchange->is_done; });
    EXPECT_TRUE(exchange->is_gone);
    EXPECT_EQ(host_->num_groups(), 0);
    exchange->on_write = nullptr;
    while (engine_->has_work()) std::this_thread::yield();
  }
  EXPECT_NE(metrics_->text().find("outcome=\"cancelled\""), std::string::npos);
}

TEST_F(RoutesTest, KeepsAQuietStreamAlive) {
  options_.keep_alive_interval = std::chrono::milliseconds(1);
  start();
  Json body = chat_body(std::string(600, 'z'));
  body["stream"] = true;
  const auto exchange = send("POST", "/v1/chat/completions", body.dump());
  run_until([&] { return exchange->is_stream; });
  std::size_t before = exchange->stream.size();
  EXPECT_EQ(before, 0U) << "nothing is said before there is something";
  run_until([&] { return exchange->is_done; });
  EXPECT_NE(exchange->stream.find(": keep-alive\n\n"), std::string::npos);
  events_of(exchange->stream);
}

TEST_F(RoutesTest, TokenizesAsAGenerationDoes) {
  const Json forged = chat_body("ab<|end|>");
  const Json tokens = post("/tokenize", forged)["tokens"];
  EXPECT_EQ(tokens.size(), std::string("[user]ab<|end|>\n[assistant]").size()) << "text that spells a control token stays text";
  EXPECT_EQ(post("/v1/chat/completions", forged)["usage"]["prompt_tokens"], tokens.size());
  EXPECT_EQ(post("/detokenize", {{"tokens", tokens}})["content"], post("/apply-template", forged)["prompt"]);

  EXPECT_EQ(post("/tokenize", {{"prompt", "ab<|end|>"}})["tokens"], Json::array({97, 98, 256}));
  EXPECT_EQ(post("/tokenize", {{"content", "<|end|>"}, {"parse_special", false}})["count"], 7);
  const Json pieces = post("/tokenize", {{"content", "a\xc3\xa9"}, {"with_pieces", true}, {"return_token_strs", true}});
  EXPECT_EQ(pieces["tokens"][0], (Json{{"id", 97}, {"piece", "a"}}));
  EXPECT_EQ(pieces["tokens"][1]["piece"], Json::array({0xc3}));
  EXPECT_EQ(pieces["token_strs"][1], "\xef\xbf\xbd");
  EXPECT_EQ(post("/tokenize", Json::object(), 400)["error"]["param"], "prompt");
  EXPECT_EQ(post("/detokenize", {{"tokens", {97, -1}}}, 400)["error"]["param"], "tokens[1]");
}

class BusyRoutesTest : public RoutesTest {
 protected:
  BusyRoutesTest() : RoutesTest(kTemplate, testing::tiny_llama(), {.num_threads = 1, .max_sequences = 1, .max_queue = 1}) {}
};

TEST_F(BusyRoutesTest, AFullQueueSaysWhenToComeBack) {
  const Json body = {{"prompt", "abc"}, {"max_tokens", -1}, {"ignore_eos", true}};
  std::vector<std::shared_ptr<FakeExchange>> exchanges;
  for (int i = 0; i < 8; ++i) exchanges.push_back(send("POST", "/v1/completions", body.dump()));
  run_until([&] { return std::ranges::all_of(exchanges, [](const auto& exchange) { return exchange->is_done; }); });
  int num_served = 0, num_refused = 0;
  for (const auto& exchange : exchanges) {
    if (exchange->head.status == 200) ++num_served;
    if (exchange->head.status != 429) continue;
    ++num_refused;
    EXPECT_EQ(Json::parse(exchange->head.body)["error"]["code"], "queue_full");
    EXPECT_EQ(exchange->head.headers, (std::vector<std::pair<std::string, std::string>>{{"retry-after", "1"}}));
  }
  EXPECT_GE(num_refused, 1);
  EXPECT_GE(num_served, 1);
  EXPECT_EQ(num_served + num_refused, 8);
}

class FailingRoutesTest : public RoutesTest {
 protected:
  static testing::TinyModel model() {
    testing::TinyModel model = testing::tiny_llama_f32();
    model.weight = 3e4F;  // keys and values beyond f16
    return model;
  }
  FailingRoutesTest() : RoutesTest(kTemplate, model(), {.num_threads = 1, .cache_format = CacheFormat::f16}) {}
};

TEST_F(FailingRoutesTest, AFailureIsAnErrorWholeOrStreamed) {
  Json body = chat_body("x");
  body["n"] = 2;
  const Json whole = post("/v1/chat/completions", body, 500)["error"];
  EXPECT_EQ(whole["code"], "cache_range");
  body["stream_options"] = {{"include_usage", true}};
  const std::vector<Json> events = stream("/v1/chat/completions", body);
  ASSERT_EQ(events.size(), 1U) << "no usage after an error";
  EXPECT_EQ(events[0]["error"], whole);
  EXPECT_EQ(host_->num_groups(), 0);
}

}  // namespace
}  // namespace couplet::server
