// The whole engine on tiny models: what a request is promised, whatever else runs.

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <thread>

#include "couplet/engine.h"
#include "engine/engine_impl.h"
#include "tests/property/tiny_model.h"

namespace couplet {
namespace {

using testing::TinyModel;
using testing::TinyModelFile;

constexpr TokenId kEnd = 256;  // the tiny vocabulary's end token

struct Answer {
  std::vector<TokenId> tokens;
  std::string text;
  StopReason stop = StopReason::none;
  int num_cached = 0;
  std::vector<std::vector<float>> logits;  // by position, where they were asked for
};

class EngineTest : public ::testing::Test {
 protected:
  explicit EngineTest(const TinyModel& model = testing::tiny_llama()) : file_(model) {}

  engine::EngineImpl& load(EngineOptions options = {}) {
    if (options.num_threads == 0) options.num_threads = 2;
    engine_.reset();
    checkpoint_ = Checkpoint::open(file_.path());
    engine_ = Engine::load(checkpoint_, options);
    return dynamic_cast<engine::EngineImpl&>(*engine_);
  }

  static Request greedy(std::vector<TokenId> prompt, int max_tokens) {
    Request request;
    request.prompt = std::move(prompt);
    request.sampling.temperature = 0;
    request.stop.max_tokens = max_tokens;
    request.stop.ignore_end = true;
    return request;
  }

  // Submits all at once and steps until nothing is left.
  std::vector<Answer> run_all(std::vector<Request> requests, bool observe = false) {
    std::vector<Answer> answers(requests.size());
    std::map<RequestId, std::size_t> index;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (observe)
        requests[i].on_logits = [&answers, i](int position, std::span<const float> logits) {
          EXPECT_EQ(static_cast<std::size_t>(position), answers[i].logits.size());
          answers[i].logits.emplace_back(logits.begin(), logits.end());
        };
      const SubmitResult result = engine_->submit(std::move(requests[i]));
      EXPECT_TRUE(result) << result.refusal;
      index[result.id] = i;
    }
    while (engine_->has_work()) step(answers, index);
    return answers;
  }
  Answer run(Request request, bool observe = false) { return run_all({std::move(request)}, observe).front(); }

  void step(std::vector<Answer>& answers, const std::map<RequestId, std::size_t>& index) {
    for (const Event& event : engine_->step()) {
      Answer& answer = answers[index.at(event.id)];
      EXPECT_EQ(answer.stop, StopReason::none) << "an event after the last";
      if (event.token >= 0) answer.tokens.push_back(event.token);
      answer.text += event.text;
      answer.stop = event.stop;
    }
    for (const SequenceStep& part : engine_->last_step().sequences)
      answers[index.at(part.id)].num_cached += part.num_cached;
  }

  static std::vector<TokenId> tokens(int count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<TokenId> ids;
    for (int i = 0; i < count; ++i) ids.push_back(static_cast<TokenId>(random() % 517));
    return ids;
  }

  static void expect_same_logits(const Answer& a, const Answer& b) {
    ASSERT_EQ(a.logits.size(), b.logits.size());
    for (std::size_t i = 0; i < a.logits.size(); ++i)
      ASSERT_EQ(std::memcmp(a.logits[i].data(), b.logits[i].data(), a.logits[i].size() * sizeof(float)), 0) << i;
  }

  TinyModelFile file_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineTest, AnswersWithExactlyTheTokensAskedFor) {
  load();
  for (const int limit : {0, 1, 2, 7}) {
    const Answer answer = run(greedy(tokens(10, 1), limit));
    EXPECT_EQ(answer.tokens.size(), static_cast<std::size_t>(limit));
    EXPECT_EQ(answer.stop, StopReason::max_tokens);
  }
}

TEST_F(EngineTest, ChunksThreadsAndNeighboursChangeNoToken) {
  load();
  const Answer alone = run(greedy(tokens(100, 2), 30), true);
  for (const int chunk : {1, 7, 64}) {
    load({.num_threads = chunk % 3 + 1, .chunk_rows = chunk});
    const auto answers =
        run_all({greedy(tokens(33, 3), 12), greedy(tokens(100, 2), 30), greedy(tokens(5, 4), 60)}, true);
    EXPECT_EQ(answers[1].tokens, alone.tokens);
    expect_same_logits(answers[1], alone);
  }
}

TEST_F(EngineTest, ForcedTokensAreTakenAndTheirLogitsShown) {
  load();
  const auto all = tokens(60, 5);
  const Answer whole = run(greedy(all, 0), true);
  ASSERT_EQ(whole.logits.size(), 60U);
  Request split = greedy({all.begin(), all.begin() + 20}, 40);
  split.forced.assign(all.begin() + 20, all.end());
  const Answer decoded = run(std::move(split), true);
  EXPECT_EQ(decoded.tokens, std::vector<TokenId>(all.begin() + 20, all.end()));
  EXPECT_EQ(decoded.stop, StopReason::max_tokens);
  expect_same_logits(decoded, whole);
}

TEST_F(EngineTest, GreedyReplyFedBackHasEachTokenAsTheBest) {
  load();
  const Answer reply = run(greedy(tokens(20, 6), 25));
  auto all = tokens(20, 6);
  all.insert(all.end(), reply.tokens.begin(), reply.tokens.end());
  const Answer scored = run(greedy(all, 0), true);
  for (std::size_t i = 0; i < reply.tokens.size(); ++i) {
    const auto& row = scored.logits[19 + i];
    EXPECT_EQ(std::max_element(row.begin(), row.end()) - row.begin(), reply.tokens[i]) << i;
  }
}

TEST_F(EngineTest, PrefixCacheChangesTheTimeAlone) {
  load();
  const Answer first = run(greedy(tokens(100, 7), 20));
  EXPECT_EQ(first.num_cached, 0);
  const Answer again = run(greedy(tokens(100, 7), 20));
  EXPECT_EQ(again.num_cached, 96);  // whole pages, the last token always runs
  EXPECT_EQ(again.tokens, first.tokens);
  Request cold = greedy(tokens(100, 7), 20);
  cold.use_prefix_cache = false;
  const Answer uncached = run(std::move(cold));
  EXPECT_EQ(uncached.num_cached, 0);
  EXPECT_EQ(uncached.tokens, first.tokens);
  // The reply's pages are known as well: the next turn of a conversation.
  auto turn = tokens(100, 7);
  turn.insert(turn.end(), first.tokens.begin(), first.tokens.end());
  turn.push_back(1);
  EXPECT_EQ(run(greedy(turn, 1)).num_cached, 112);
}

TEST_F(EngineTest, FullyCachedPromptStillComputesItsLastPosition) {
  load();
  const Answer first = run(greedy(tokens(96, 8), 3));
  const Answer again = run(greedy(tokens(96, 8), 3));
  EXPECT_EQ(again.num_cached, 80);
  EXPECT_EQ(again.tokens, first.tokens);
}

TEST_F(EngineTest, PreemptionIsInvisible) {
  engine::EngineImpl& large = load();
  std::vector<Request> requests;
  for (std::uint64_t i = 0; i < 4; ++i) requests.push_back(greedy(tokens(40, 10 + i), 150));
  const auto expected = run_all(requests);
  EXPECT_EQ(large.num_preemptions(), 0);
  const std::uint64_t page_bytes = large.pages().shape().page_bytes();
  engine::EngineImpl& small = load({.context = 256, .cache_bytes = 20 * page_bytes});
  const auto answers = run_all(requests);
  EXPECT_GT(small.num_preemptions(), 0);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].tokens, expected[i].tokens) << i;
    EXPECT_EQ(answers[i].text, expected[i].text) << i;
    EXPECT_EQ(answers[i].stop, StopReason::max_tokens);
  }
}

TEST_F(EngineTest, PreemptedObserversSeeEveryPositionOnce) {
  const std::uint64_t page_bytes = load().pages().shape().page_bytes();
  const auto expected = run_all({greedy(tokens(60, 1), 90), greedy(tokens(61, 2), 90)}, true);
  engine::EngineImpl& small = load({.context = 160, .cache_bytes = 12 * page_bytes});
  const auto answers = run_all({greedy(tokens(60, 1), 90), greedy(tokens(61, 2), 90)}, true);
  EXPECT_GT(small.num_preemptions(), 0);
  for (std::size_t i = 0; i < 2; ++i) expect_same_logits(answers[i], expected[i]);
}

TEST_F(EngineTest, CancelledAnywhereGivesEverythingBack) {
  for (const int percent : {0, 10, 50, 99}) {
    engine::EngineImpl& engine = load({.chunk_rows = 16});
    const SubmitResult result = engine_->submit(greedy(tokens(300, 20), 5));
    const int steps = 300 * percent / 100 / 16;
    for (int i = 0; i < steps; ++i) engine_->step();
    engine_->cancel(result.id);
    const auto events = engine_->step();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].stop, StopReason::cancelled);
    EXPECT_FALSE(engine_->has_work());
    EXPECT_EQ(engine.pages().used_pages(), engine.prefixes().num_nodes());
    EXPECT_EQ(engine.prefixes().num_nodes(), steps);  // whole pages alone entered the tree
    const Answer again = run(greedy(tokens(300, 20), 5));
    EXPECT_EQ(again.num_cached, steps * 16);
    load();
    EXPECT_EQ(again.tokens, run(greedy(tokens(300, 20), 5)).tokens);
  }
}

TEST_F(EngineTest, CancelledInDecodeTellsNoTokenTwice) {
  load();
  const SubmitResult result = engine_->submit(greedy(tokens(20, 1), 50));
  std::vector<TokenId> told;
  for (int i = 0; i < 5; ++i)
    for (const Event& event : engine_->step()) told.push_back(event.token);
  engine_->cancel(result.id);
  const auto events = engine_->step();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].token, -1);
  EXPECT_EQ(events[0].stop, StopReason::cancelled);
  EXPECT_EQ(told, run(greedy(tokens(20, 1), 5)).tokens);
}

TEST_F(EngineTest, AStepWithoutWorkLeavesARecordToo) {
  load();
  run(greedy(tokens(5, 1), 2));
  const std::uint64_t index = engine_->last_step().index;
  EXPECT_TRUE(engine_->step().empty());
  EXPECT_EQ(engine_->last_step().index, index + 1);
  EXPECT_TRUE(engine_->last_step().sequences.empty());
  EXPECT_EQ(engine_->last_step().matmul_operations, 0U);
}

TEST_F(EngineTest, CancelOfTheUnknownAndTheFinishedIsNothing) {
  load();
  engine_->cancel(12345);
  const Answer answer = run(greedy(tokens(5, 1), 2));
  engine_->cancel(1);
  EXPECT_TRUE(engine_->step().empty());
  EXPECT_EQ(answer.tokens.size(), 2U);
}

TEST_F(EngineTest, EndsWhereTheContextIsFullAndServesTheNext) {
  load({.context = 64});
  const Answer full = run(greedy(tokens(20, 1), -1));
  EXPECT_EQ(full.stop, StopReason::context_full);
  EXPECT_EQ(full.tokens.size(), 44U);
  const Answer larger = run(greedy(tokens(20, 1), 1000));
  EXPECT_EQ(larger.stop, StopReason::context_full);
  EXPECT_EQ(larger.tokens, full.tokens);
  EXPECT_EQ(run(greedy(tokens(64, 2), 5)).stop, StopReason::context_full);
  EXPECT_EQ(run(greedy(tokens(20, 3), 3)).tokens.size(), 3U);
}

TEST_F(EngineTest, RefusesWithWhatWasExpectedAndWhatCame) {
  load({.context = 64});
  const auto refusal = [&](Request request) { return engine_->submit(std::move(request)).refusal; };
  EXPECT_EQ(refusal(greedy({}, 1)), "prompt: expected at least one token, got none");
  EXPECT_EQ(refusal(greedy(tokens(65, 1), 1)), "prompt: expected at most 64 tokens, the context, got 65");
  EXPECT_EQ(refusal(greedy({1, 2, -1}, 1)), "prompt[2]: expected a token id from 0 to 516, got -1");
  EXPECT_EQ(refusal(greedy({517}, 1)), "prompt[0]: expected a token id from 0 to 516, got 517");
  Request forced = greedy({1}, 1);
  forced.forced = {3, 2147483647};
  EXPECT_EQ(refusal(forced), "forced[1]: expected a token id from 0 to 516, got 2147483647");
  Request curious = greedy({1}, 1);
  curious.num_alternatives = 65;
  EXPECT_EQ(refusal(curious), "num_alternatives: expected 0 to 64, got 65");
  Request bad_limit = greedy({1}, -2);
  EXPECT_NE(refusal(bad_limit), "");
  EXPECT_FALSE(engine_->has_work());
}

TEST_F(EngineTest, EndIdsStopAndAreNotShown) {
  load();
  Request request = greedy(tokens(8, 1), 10);
  request.forced = {'h' - 33, 'i' - 33, kEnd, 5};  // printable byte c has id c - 33 + the 33 symbols before it
  request.forced[0] = checkpoint_->tokenizer().tokenize("h")[0];
  request.forced[1] = checkpoint_->tokenizer().tokenize("i")[0];
  request.stop.ignore_end = false;
  const Answer answer = run(request);
  EXPECT_EQ(answer.stop, StopReason::end_of_turn);
  EXPECT_EQ(answer.text, "hi");
  EXPECT_EQ(answer.tokens.size(), 3U);
  request.stop.ignore_end = true;
  EXPECT_EQ(run(request).stop, StopReason::max_tokens);
  request.stop.ids = {kEnd};
  EXPECT_EQ(run(request).stop, StopReason::end_of_turn);
}

TEST_F(EngineTest, StopTextsCutAndNothingOfThemIsShown) {
  load();
  Request request = greedy(tokens(8, 1), 6);
  request.forced = checkpoint_->tokenizer().tokenize("abcdef");
  request.stop.texts = {"cd"};
  Answer answer = run(request);
  EXPECT_EQ(answer.stop, StopReason::stop_text);
  EXPECT_EQ(answer.text, "ab");
  EXPECT_EQ(answer.tokens.size(), 4U);
  request.stop.texts = {"efg"};  // the limit falls inside a partial match: nothing is lost
  answer = run(request);
  EXPECT_EQ(answer.stop, StopReason::max_tokens);
  EXPECT_EQ(answer.text, "abcdef");
}

TEST_F(EngineTest, LimitInsideACharacterShowsTheReplacementCharacter) {
  load();
  Request request = greedy(tokens(8, 1), 2);
  request.forced = checkpoint_->tokenizer().tokenize("\xf0\x9f\x98\x8a");
  ASSERT_EQ(request.forced.size(), 4U);
  EXPECT_EQ(run(request).text, "\xef\xbf\xbd");
  request.stop.max_tokens = 4;
  EXPECT_EQ(run(request).text, "\xf0\x9f\x98\x8a");
}

TEST_F(EngineTest, SeedsRepeatAndChoicesDiffer) {
  load();
  const auto sampled = [&](std::uint64_t seed, std::uint32_t choice) {
    Request request = greedy(tokens(8, 1), 24);
    request.sampling.temperature = 1;
    request.sampling.top_p = 1;
    request.sampling.seed = seed;
    request.sampling.choice = choice;
    return run(std::move(request)).tokens;
  };
  EXPECT_EQ(sampled(42, 0), sampled(42, 0));
  EXPECT_NE(sampled(42, 0), sampled(43, 0));
  EXPECT_NE(sampled(42, 0), sampled(42, 1));
}

TEST_F(EngineTest, StepRecordsAddUp) {
  load({.chunk_rows = 32});
  Request request = greedy(tokens(70, 1), 4);
  request.log_probabilities = true;
  request.num_alternatives = 3;
  ASSERT_TRUE(engine_->submit(request));
  int prefill = 0, decode = 0, chosen = 0;
  while (engine_->has_work()) {
    engine_->step();
    const StepRecord& record = engine_->last_step();
    prefill += record.num_prefill_rows;
    decode += record.num_decode_rows;
    ASSERT_EQ(record.sequences.size(), 1U);
    const SequenceStep& part = record.sequences[0];
    EXPECT_EQ(part.stage, part.first_position < 70 ? Stage::prefill : Stage::decode);
    EXPECT_GT(record.matmul_operations, 0U);
    EXPECT_GT(record.weights_bytes, 0U);
    EXPECT_GT(record.cache_read_bytes, 0U);
    EXPECT_GE(record.step_ms, record.forward_ms);
    if (part.choice.id < 0) continue;
    ++chosen;
    ASSERT_EQ(part.choice.alternatives.size(), 3U);
    EXPECT_EQ(part.choice.alternatives[0].id, part.choice.id);  // greedy
    EXPECT_FLOAT_EQ(part.choice.alternatives[0].log_probability, part.choice.log_probability);
    EXPECT_LT(part.choice.log_probability, 0);
  }
  EXPECT_EQ(prefill, 70);
  EXPECT_EQ(decode, 3);
  EXPECT_EQ(chosen, 4);
}

TEST_F(EngineTest, MatmulCountsAreTheShapes) {
  load();
  ASSERT_TRUE(engine_->submit(greedy(tokens(10, 1), 2)));
  engine_->step();
  const TinyModel m = testing::tiny_llama();
  const int q = m.num_heads * m.head_dim, kv = m.num_kv_heads * m.head_dim;
  const int layer = m.hidden_size * (2 * q + 2 * kv + 3 * m.intermediate_size);
  // The head is the embeddings, q8_0: two planes, one row.
  const std::uint64_t expected = 2ULL * 10 * 3 * static_cast<std::uint64_t>(layer) + 2ULL * 2 * 517 * 96;
  EXPECT_EQ(engine_->last_step().matmul_operations, expected);
  const std::uint64_t pairs = 10 * 11 / 2;
  EXPECT_EQ(engine_->last_step().attention_operations, 4 * pairs * static_cast<std::uint64_t>(q) * 3);
}

TEST_F(EngineTest, SubmitAndCancelFromOtherThreads) {
  load();
  std::vector<RequestId> ids(40);
  std::thread submitter([&] {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = engine_->submit(greedy(tokens(5 + static_cast<int>(i), i), 10)).id;
      if (i % 3 == 0) engine_->cancel(ids[i]);
    }
  });
  std::map<RequestId, StopReason> stops;
  const auto drain = [&] {
    for (const Event& event : engine_->step())
      if (event.stop != StopReason::none) stops[event.id] = event.stop;
  };
  while (stops.size() < 20) drain();
  submitter.join();
  while (engine_->has_work()) drain();
  EXPECT_EQ(stops.size(), 40U);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % 3 == 0) continue;  // cancelled
    EXPECT_EQ(stops.at(ids[i]), StopReason::max_tokens) << i;
  }
}

TEST_F(EngineTest, OptionsOutOfRangeAreNamed) {
  const auto message = [&](EngineOptions options) -> std::string {
    try {
      Engine::load(Checkpoint::open(file_.path()), options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({.num_threads = -1}), "[engine] threads: expected 0 to 1024, got -1");
  EXPECT_EQ(message({.context = 701}), "[engine] context: expected 1 to 700, got 701");
  EXPECT_EQ(message({.chunk_rows = 0}), "[engine] chunk_rows: expected 1 to 65536, got 0");
  EXPECT_NE(message({.kernels = "sse9"}), "");
  EXPECT_NE(message({.cache_bytes = 100}), "");
}

class HugeModelTest : public EngineTest {
 protected:
  static TinyModel model() {
    TinyModel m = testing::tiny_llama_f32();
    m.weight = 3e4F;  // keys and values far beyond f16
    return m;
  }
  HugeModelTest() : EngineTest(model()) {}
};

TEST_F(HugeModelTest, ValuesBeyondTheCacheEndTheSequenceWithAnError) {
  engine::EngineImpl& engine = load({.cache_format = CacheFormat::f16});
  const Answer answer = run(greedy(tokens(20, 1), 5));
  EXPECT_EQ(answer.stop, StopReason::cache_range);
  EXPECT_TRUE(answer.tokens.empty());
  EXPECT_EQ(engine.pages().used_pages(), 0);
}

TEST_F(HugeModelTest, IntegerPagesHoldAnyFiniteValue) {
  load();
  const Answer answer = run(greedy(tokens(20, 1), 5));
  EXPECT_EQ(answer.stop, StopReason::max_tokens);
  EXPECT_EQ(answer.tokens.size(), 5U);
}

// The same behind quantized weights, whose own check of activations comes after the cache's.
class HugeQuantizedModelTest : public EngineTest {
 protected:
  static TinyModel model() {
    TinyModel m = testing::tiny_llama();
    m.types.assign(22, formats::TensorType::q8_0);
    m.types[2] = formats::TensorType::f32;  // the first layer's keys
    m.weight = 3e4F;
    return m;
  }
  HugeQuantizedModelTest() : EngineTest(model()) {}
};

TEST_F(HugeQuantizedModelTest, TheFirstFaultIsTheCause) {
  load({.cache_format = CacheFormat::f16});
  const Answer answer = run(greedy(tokens(20, 1), 5));
  EXPECT_EQ(answer.stop, StopReason::cache_range) << name(answer.stop);
}

class InfiniteModelTest : public EngineTest {
 protected:
  static TinyModel model() {
    TinyModel m = testing::tiny_llama();
    m.types.assign(22, formats::TensorType::q8_0);
    m.types[0] = formats::TensorType::f32;  // the embeddings alone are infinite
    m.weight = std::numeric_limits<float>::infinity();
    return m;
  }
  InfiniteModelTest() : EngineTest(model()) {}
};

TEST_F(InfiniteModelTest, WhatIsNotFiniteEndsTheSequenceWithAnError) {
  engine::EngineImpl& engine = load();
  const Answer answer = run(greedy(tokens(20, 1), 5));
  EXPECT_EQ(answer.stop, StopReason::numeric_error) << name(answer.stop);
  EXPECT_TRUE(answer.tokens.empty());
  EXPECT_EQ(engine.pages().used_pages(), 0);
  // Nor is anything of it shown or noted, with a token wanted or without.
  for (const int limit : {0, 5}) {
    const Answer observed = run(greedy(tokens(20, 1), limit), true);
    EXPECT_EQ(observed.stop, StopReason::numeric_error);
    EXPECT_TRUE(observed.logits.empty());
    for (const SequenceStep& part : engine_->last_step().sequences) EXPECT_EQ(part.choice.id, -1);
  }
}

}  // namespace
}  // namespace couplet
