// The engine under many requests: the queue's bound, who shares which pages, and what the step record says of it all.

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <map>
#include <random>
#include <thread>

#include "engine/engine_impl.h"
#include "tests/property/tiny_model.h"

namespace couplet::engine {
namespace {

class ServingTest : public ::testing::Test {
 protected:
  EngineImpl& load(EngineOptions options = {}) {
    options.num_threads = 2;
    engine_.reset();
    engine_ = Engine::load(Checkpoint::open(file_.path()), options);
    return dynamic_cast<EngineImpl&>(*engine_);
  }

  static Request greedy(int num_prompt, std::uint64_t seed, int max_tokens) {
    Request request;
    std::mt19937_64 random(seed);
    for (int i = 0; i < num_prompt; ++i) request.prompt.push_back(static_cast<TokenId>(random() % 517));
    request.sampling.temperature = 0;
    request.stop.max_tokens = max_tokens;
    request.stop.ignore_end = true;
    return request;
  }
  RequestId submit(Request request) {
    const SubmitResult result = engine_->submit(std::move(request));
    EXPECT_TRUE(result) << result.refusal;
    return result.id;
  }
  const StepRecord& step() {
    for (const Event& event : engine_->step()) {
      if (event.token >= 0) replies_[event.id].push_back(event.token);
      if (event.stop != StopReason::none) stops_[event.id] = event.stop;
    }
    for (const SequenceStep& part : engine_->last_step().sequences) {
      cached_[part.id] += part.num_cached;
      rows_[part.id] += part.num_rows;
    }
    return engine_->last_step();
  }
  void finish() {
    while (engine_->has_work()) step();
  }

  testing::TinyModelFile file_{testing::tiny_llama()};
  std::unique_ptr<Engine> engine_;
  std::map<RequestId, std::vector<TokenId>> replies_;
  std::map<RequestId, StopReason> stops_;
  std::map<RequestId, int> cached_, rows_;
};

TEST_F(ServingTest, TheQueueIsBounded) {
  load({.max_sequences = 2, .max_queue = 3});
  for (int i = 0; i < 3; ++i) submit(greedy(20, 1, 30));
  SubmitResult refused = engine_->submit(greedy(20, 1, 30));
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused.kind, Refusal::queue_full);
  EXPECT_EQ(refused.refusal, "queue: expected fewer than 3 requests waiting, got 3");
  step();  // two start
  for (int i = 0; i < 2; ++i) submit(greedy(20, 1, 30));
  EXPECT_EQ(engine_->submit(greedy(20, 1, 30)).kind, Refusal::queue_full);
  EXPECT_EQ(engine_->submit(greedy(0, 1, 30)).kind, Refusal::invalid);  // what can't be run is told first
  finish();
  EXPECT_EQ(stops_.size(), 5U);
  EXPECT_TRUE(engine_->submit(greedy(20, 1, 30)));
}

TEST_F(ServingTest, WhatIsCancelledInTheQueueMakesRoomAndNeverStarts) {
  load({.max_sequences = 1, .max_queue = 2});
  submit(greedy(20, 1, 30));
  step();
  const RequestId second = submit(greedy(20, 2, 30)), third = submit(greedy(20, 3, 30));
  engine_->cancel(second);
  step();
  EXPECT_EQ(stops_.at(second), StopReason::cancelled);
  submit(greedy(20, 4, 30));
  EXPECT_EQ(engine_->submit(greedy(20, 5, 30)).kind, Refusal::queue_full);
  engine_->cancel(third);
  finish();
  EXPECT_FALSE(rows_.contains(second));
  EXPECT_FALSE(rows_.contains(third));
  EXPECT_TRUE(replies_[second].empty());
}

TEST_F(ServingTest, TheQueueIsCountedRightFromManyThreads) {
  load({.max_sequences = 2, .max_queue = 5});
  std::atomic<int> accepted = 0, refused = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> clients;
  for (std::uint64_t c = 0; c < 4; ++c)
    clients.emplace_back([&, c] {
      for (std::uint64_t i = 0; i < 100; ++i) {
        const SubmitResult result = engine_->submit(greedy(5, c * 1000 + i, 2));
        (result ? accepted : refused) += 1;
        EXPECT_EQ(result.kind, result ? Refusal::none : Refusal::queue_full);
        if (result && i % 3 == 0) engine_->cancel(result.id);
      }
    });
  std::thread ender([&] {
    for (std::thread& client : clients) client.join();
    done = true;
  });
  while (!done.load() || engine_->has_work()) EXPECT_LE(step().num_waiting, 5);
  ender.join();
  EXPECT_EQ(accepted + refused, 400);
  EXPECT_EQ(stops_.size(), static_cast<std::size_t>(accepted));
  for (int i = 0; i < 5; ++i) submit(greedy(5, 1, 2));  // nothing was counted that isn't there
  EXPECT_FALSE(engine_->submit(greedy(5, 1, 2)));
  finish();
}

TEST_F(ServingTest, SaltsShareNoPage) {
  load();
  const auto salted = [](std::uint64_t salt) {
    Request request = greedy(100, 7, 5);
    request.cache_salt = salt;
    return request;
  };
  const RequestId first = submit(salted(1));
  finish();
  const RequestId other = submit(salted(2)), same = submit(salted(1));
  finish();
  EXPECT_EQ(cached_[first], 0);
  EXPECT_EQ(cached_[other], 0);
  EXPECT_EQ(cached_[same], 96);
  EXPECT_EQ(replies_[first], replies_[same]);
  EXPECT_EQ(replies_[first], replies_[other]);
}

TEST_F(ServingTest, ALongPromptsPagesAreThereForOthersWhileItRuns) {
  load({.chunk_rows = 16});
  const RequestId slow = submit(greedy(400, 7, 3));
  for (int i = 0; i < 10; ++i) step();
  Request same = greedy(400, 7, 3);
  same.prompt.resize(170);
  const RequestId quick = submit(same);
  finish();
  EXPECT_EQ(cached_[quick], 160);
  EXPECT_EQ(rows_[quick], 10 + 2);
  EXPECT_EQ(cached_[slow], 0);
  const auto beside = replies_[quick];
  load();
  replies_.clear();
  const RequestId alone = submit(same);
  finish();
  EXPECT_EQ(replies_[alone], beside);
}

TEST_F(ServingTest, ChoicesOfOnePromptComputeItOnceAndAnswerAsAlone) {
  load({.chunk_rows = 32});
  std::vector<RequestId> ids;
  for (std::uint32_t choice = 0; choice < 5; ++choice) {
    Request request = greedy(300, 9, 8);
    request.sampling.temperature = 1;
    request.sampling.choice = choice;
    ids.push_back(submit(request));
  }
  finish();
  int rows = 0;
  for (const RequestId id : ids) {
    rows += rows_[id] - 7;  // the reply's
    EXPECT_EQ(rows_[id] - 7 + cached_[id], 300);
  }
  EXPECT_EQ(rows, 288 + 5 * 12);
  const auto together = replies_;
  for (std::uint32_t choice = 0; choice < 5; ++choice) {
    load();
    Request request = greedy(300, 9, 8);
    request.sampling.temperature = 1;
    request.sampling.choice = choice;
    const RequestId alone = submit(request);
    replies_.clear();
    finish();
    EXPECT_EQ(replies_[alone], together.at(ids[choice])) << choice;
  }
}

TEST_F(ServingTest, TheRecordSaysWhoRunsAndWhatTheCacheHolds) {
  const EngineImpl& engine = load({.chunk_rows = 64, .max_sequences = 2});
  std::vector<RequestId> ids;
  for (std::uint64_t i = 0; i < 4; ++i) ids.push_back(submit(greedy(40, i, 20)));
  const StepRecord& record = step();
  EXPECT_EQ(record.num_running, 2);
  EXPECT_EQ(record.num_waiting, 2);
  EXPECT_EQ(record.num_preempted, 0);
  EXPECT_EQ(record.pages_total, engine.pages().num_pages());
  EXPECT_EQ(record.pages_used, 3 + 2);  // 40 rows and 24
  EXPECT_EQ(record.pages_in_tree, 2 + 1);
  EXPECT_EQ(record.prefill_budget, 64);
  EXPECT_EQ(record.prefix_queried_tokens, 80U);
  EXPECT_EQ(record.prefix_hit_tokens, 0U);
  // A step that only cancels has nothing to run, and tells the truth all the same.
  for (const RequestId id : ids) engine_->cancel(id);
  step();
  EXPECT_TRUE(record.sequences.empty());
  EXPECT_EQ(record.num_running, 0);
  EXPECT_EQ(record.num_waiting, 0);
  EXPECT_EQ(record.pages_used, 3);
  EXPECT_EQ(record.pages_in_tree, 3);
  submit(greedy(40, 0, 1));
  step();
  EXPECT_EQ(record.prefix_queried_tokens, 120U);
  EXPECT_EQ(record.prefix_hit_tokens, 32U);
  finish();
  EXPECT_EQ(record.num_running, 0);
}

TEST_F(ServingTest, PreemptionsAreCountedInTheirStep) {
  const std::uint64_t page_bytes = load().pages().shape().page_bytes();
  const EngineImpl& engine = load({.context = 256, .cache_bytes = 20 * page_bytes});
  for (std::uint64_t i = 0; i < 4; ++i) submit(greedy(40, 10 + i, 150));
  int preempted = 0, budget = 0;
  while (engine_->has_work()) {
    const StepRecord& record = step();
    preempted += record.num_preempted;
    budget = std::max(budget, record.prefill_budget);
    EXPECT_LE(record.pages_used, 20);
    EXPECT_LE(record.num_prefill_rows, record.prefill_budget);
  }
  EXPECT_GT(preempted, 0);
  EXPECT_EQ(preempted, engine.num_preemptions());
  EXPECT_EQ(budget, 256);
}

TEST_F(ServingTest, OptionsOfTheQueueAndTheTargetAreChecked) {
  const auto message = [&](EngineOptions options) -> std::string {
    try {
      Engine::load(Checkpoint::open(file_.path()), options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({.max_queue = -1}), "[engine] max_queue: expected 0 to 1048576, got -1");
  EXPECT_NE(message({.itl_target_ms = -1}), "");
  EXPECT_NE(message({.itl_target_ms = std::numeric_limits<double>::quiet_NaN()}), "");
}

}  // namespace
}  // namespace couplet::engine
