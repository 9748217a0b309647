// The published description against the server: each field's bounds are the ones that requests are held to, and each path is there.

#include "server/openapi.h"

#include <gtest/gtest.h>

#include "server/api_error.h"
#include "server/chat_request.h"
#include "server/completion_request.h"
#include "server/routes_testing.h"

namespace couplet::server {
namespace {

class OpenApiTest : public RoutesTest {
 protected:
  OpenApiTest() : model_(*engine_, options_), document_(Json::parse(openapi_json(model_))) {}

  // What a value of a field is refused for; "" where it is taken.
  std::string refusal_of(const std::string& schema, const std::string& field, const Json& value) const {
    Json body = schema == "ChatRequest" ? chat_body("x") : Json{{"prompt", "x"}};
    if (field == "top_logprobs") body["logprobs"] = true;
    if (field == "best_of") body["n"] = value;
    if (field == "continue_final_message") body["add_generation_prompt"] = false;
    body[field] = value;
    try {
      schema == "ChatRequest" ? read_chat_request(body, model_) : read_completion_request(body, model_);
    } catch (const ApiError& error) {
      return error.param().empty() ? error.what() : error.param();
    }
    return "";
  }

  void expect_bounds(const std::string& schema, const std::string& field, const Json& rule) const {
    const auto refused = [&](const Json& value) { EXPECT_EQ(refusal_of(schema, field, value), field) << value; };
    const auto taken = [&](const Json& value) { EXPECT_EQ(refusal_of(schema, field, value), "") << field << " " << value; };
    const Json types = rule["type"].is_array() ? rule["type"] : Json::array({rule["type"]});
    const bool may_be_null = std::find(types.begin(), types.end(), "null") != types.end();
    if (may_be_null) taken(nullptr);
    const std::string type = types[0];
    if (type == "null") return refused(Json::object());
    if (type == "boolean") {
      refused("true");
      for (const bool value : {true, false}) {
        const bool is_allowed = !rule.contains("enum") || rule["enum"][0] == value;
        is_allowed ? taken(value) : refused(value);
      }
    } else if (type == "number" || type == "integer") {
      refused("1");
      taken(rule["minimum"]);
      taken(rule["maximum"]);
      refused(rule["minimum"].get<double>() * (rule["minimum"] < 0 ? 2 : 0.5) - (rule["minimum"] == 0 || rule["minimum"] == 1 ? 1 : 0));
      refused(rule["maximum"].get<double>() * (rule["maximum"] > 0 ? 2 : 0.5) + 1);
      if (type == "integer") refused(0.5);
    } else if (type == "string") {
      refused(1);
      if (rule.contains("enum")) taken(rule["enum"][0]), refused("bogus");
      if (rule.contains("maxLength")) refused("x");
    } else if (type == "array") {
      refused("x");
      if (rule.value("maxItems", 1) == 0) taken(Json::array()), refused(Json::array({1}));
    } else if (type == "object") {
      refused("x");
      refused(Json::array());
    }
  }

  ServedModel model_;
  Json document_;
};

TEST_F(OpenApiTest, FieldsAreHeldToItsBounds) {
  for (const std::string schema : {"ChatRequest", "CompletionRequest"}) {
    int num_fields = 0;
    for (const auto& [field, rule] : document_["components"]["schemas"][schema]["properties"].items()) {
      if (!rule.contains("type") || field == "model" || field == "messages" || field == "best_of") continue;  // their own tests
      expect_bounds(schema, field, rule);
      ++num_fields;
    }
    EXPECT_GT(num_fields, 60);
  }
}

void find_references(const Json& json, std::vector<std::string>& references) {
  if (!json.is_structured()) return;
  for (const auto& [key, inner] : json.items()) {
    if (key == "$ref") references.push_back(inner);
    find_references(inner, references);
  }
}

TEST_F(OpenApiTest, IsWhole) {
  std::vector<std::string> references;
  find_references(document_, references);
  EXPECT_GT(references.size(), 50U);
  for (const std::string& reference : references)
    EXPECT_TRUE(document_.contains(Json::json_pointer(reference.substr(1)))) << reference;
  EXPECT_EQ(document_.dump().find("\"{"), std::string::npos) << "a bound that was not filled in";
  EXPECT_EQ(ask("GET", "/openapi.json")->head.body, dump(document_));
}

TEST_F(OpenApiTest, EachPathIsThere) {
  for (const auto& [path, operations] : document_["paths"].items()) {
    for (const auto& [method, operation] : operations.items()) {
      const std::string at = path == "/v1/models/{id}" ? "/v1/models/tiny" : path;
      const int status = ask(method == "get" ? "GET" : "POST", at)->head.status;
      EXPECT_EQ(status, method == "get" ? 200 : 400) << path;
    }
  }
}

}  // namespace
}  // namespace couplet::server
