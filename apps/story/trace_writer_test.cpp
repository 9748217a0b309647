#include "story/trace_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/property/tiny_model.h"

namespace couplet::story {
namespace {

using Json = nlohmann::json;
constexpr std::string_view kParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

class TraceWriterTest : public ::testing::Test {
 protected:
  TraceWriterTest() : model_(testing::tiny_llama()) {
    engine_ = Engine::load(Checkpoint::open(model_.path()), {.num_threads = 2, .chunk_rows = 16});
    path_ = std::filesystem::path(::testing::TempDir()) / (std::to_string(::getpid()) + ".trace.json");
  }
  ~TraceWriterTest() override { std::filesystem::remove(path_); }

  RequestId submit(int prompt_length, int max_tokens) {
    Request request;
    for (int i = 0; i < prompt_length; ++i) request.prompt.push_back(i % 100);
    request.sampling.temperature = 0;
    request.stop.max_tokens = max_tokens;
    request.stop.ignore_end = true;
    return engine_->submit(std::move(request)).id;
  }

  void step(TraceWriter& trace) {
    const auto events = engine_->step();
    trace.step(engine_->last_step(), events);
  }

  // Fails unless it is whole JSON, as it has to be at any moment.
  Json read() const {
    std::ifstream file(path_);
    return Json::parse(file);
  }

  static std::vector<Json> slices(const Json& trace, const std::string& category) {
    std::vector<Json> found;
    for (const Json& event : trace["traceEvents"])
      if (event["ph"] == "X" && event["cat"] == category) found.push_back(event);
    return found;
  }

  testing::TinyModelFile model_;
  std::unique_ptr<Engine> engine_;
  std::filesystem::path path_;
};

TEST_F(TraceWriterTest, IsWholeAfterEachStepAndAddsUp) {
  TraceWriter trace(path_, *engine_);
  EXPECT_EQ(read()["otherData"]["threads"], 2);
  const RequestId one = submit(40, 5), other = submit(9, 3);
  trace.submitted(one, 40, kParent);
  trace.submitted(other, 9, "00-nonsense");
  std::uint64_t operations = 0;
  std::size_t num_steps = 0;
  while (engine_->has_work()) {
    step(trace);
    const StepRecord& record = engine_->last_step();
    operations += record.matmul_operations + record.attention_operations;
    EXPECT_EQ(slices(read(), "step").size(), ++num_steps);
  }
  EXPECT_EQ(trace.problem(), "");
  const Json all = read();
  std::uint64_t by_step = 0, by_part = 0;
  for (const Json& slice : slices(all, "step")) by_step += slice["args"]["operations"].get<std::uint64_t>();
  std::map<std::string, int> rows;
  for (const char* stage : {"prefill", "decode"})
    for (const Json& slice : slices(all, stage)) {
      EXPECT_EQ(slice["name"], stage);
      rows[stage] += slice["args"]["rows"].get<int>();
      by_part += slice["args"]["integer_operations"].get<std::uint64_t>() + slice["args"]["float_operations"].get<std::uint64_t>();
    }
  EXPECT_EQ(by_step, operations);
  EXPECT_EQ(by_part, operations);
  EXPECT_EQ(rows["prefill"], 49);
  EXPECT_EQ(rows["decode"], 4 + 2);
  const auto waits = slices(all, "queue");
  ASSERT_EQ(waits.size(), 2U);
  for (const Json& wait : waits) {
    const bool is_one = wait["tid"] == one;
    EXPECT_EQ(wait["args"]["prompt_tokens"], is_one ? 40 : 9);
    EXPECT_EQ(wait["args"].value("traceparent", ""), is_one ? kParent : "");
  }
}

TEST_F(TraceWriterTest, SlicesOfALaneDoNotOverlap) {
  TraceWriter trace(path_, *engine_);
  for (const RequestId id : {submit(40, 5), submit(9, 8)}) trace.submitted(id, 1);
  while (engine_->has_work()) step(trace);
  std::map<std::uint64_t, double> ends;
  const Json all = read();
  for (const Json& event : all["traceEvents"]) {
    if (event["ph"] != "X") continue;
    double& end = ends[event["tid"].get<std::uint64_t>()];
    EXPECT_GE(event["ts"].get<double>(), end - 1e-6);
    EXPECT_GE(event["dur"].get<double>(), 0);
    end = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_EQ(ends.size(), 3U);  // the steps and two sequences
}

TEST_F(TraceWriterTest, CountersAndStopsAreThere) {
  TraceWriter trace(path_, *engine_);
  const RequestId id = submit(4, 2);
  trace.submitted(id, 4);
  while (engine_->has_work()) step(trace);
  std::map<std::string, int> counters;
  std::string stop;
  const Json all = read();
  for (const Json& event : all["traceEvents"]) {
    if (event["ph"] == "C") ++counters[event["name"].get<std::string>()];
    if (event["ph"] == "i") stop = event["name"].get<std::string>();
  }
  EXPECT_EQ(counters, (std::map<std::string, int>{{"rows", 2}, {"sequences", 2}, {"pages", 2}}));
  EXPECT_EQ(stop, "max_tokens");
}

TEST_F(TraceWriterTest, WhatCanNotBeWrittenIsSaid) {
  EXPECT_THROW(TraceWriter("/dev/null", *engine_), Error);  // no place to go back to
  EXPECT_THROW(TraceWriter("/nowhere/at/all", *engine_), Error);
}

TEST(Traceparent, OnlyTheW3CsFormIsTaken) {
  EXPECT_TRUE(is_traceparent(kParent));
  EXPECT_FALSE(is_traceparent(""));
  EXPECT_FALSE(is_traceparent("01" + std::string(kParent.substr(2))));
  EXPECT_FALSE(is_traceparent(std::string(kParent) + "0"));
  std::string upper(kParent);
  upper[4] = 'A';
  EXPECT_FALSE(is_traceparent(upper));
  EXPECT_FALSE(is_traceparent("00-00000000000000000000000000000000-b7ad6b7169203331-01"));
  EXPECT_FALSE(is_traceparent("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"));
}

}  // namespace
}  // namespace couplet::story
