// What the records of steps say of each sequence, on a tiny model.

#include <gtest/gtest.h>

#include <cmath>

#include "couplet/engine.h"
#include "engine/sampler.h"
#include "tests/property/tiny_model.h"

namespace couplet {
namespace {

class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() : file_(testing::tiny_llama()) {}

  Engine& load(EngineOptions options = {}) {
    options.num_threads = 2;
    engine_.reset();
    engine_ = Engine::load(Checkpoint::open(file_.path()), options);
    return *engine_;
  }

  static Request request(int prompt_length, int max_tokens, int first = 1) {
    Request request;
    for (int i = 0; i < prompt_length; ++i) request.prompt.push_back((first + 7 * i) % 200);
    request.sampling.temperature = 0;
    request.stop.max_tokens = max_tokens;
    request.stop.ignore_end = true;
    request.use_prefix_cache = false;
    return request;
  }

  std::vector<StepRecord> run(std::vector<Request> requests) {
    for (Request& each : requests) EXPECT_TRUE(engine_->submit(std::move(each)));
    std::vector<StepRecord> records;
    while (engine_->has_work()) {
      engine_->step();
      records.push_back(engine_->last_step());
    }
    return records;
  }

  testing::TinyModelFile file_;
  std::unique_ptr<Engine> engine_;
};

void expect_sums(const StepRecord& record) {
  SequenceStep sum;
  for (const SequenceStep& part : record.sequences) {
    sum.num_rows += part.num_rows;
    sum.num_logit_rows += part.num_logit_rows;
    sum.matmul_operations += part.matmul_operations;
    sum.attention_operations += part.attention_operations;
    sum.float_operations += part.float_operations;
    sum.weights_bytes += part.weights_bytes;
    sum.cache_read_bytes += part.cache_read_bytes;
    sum.cache_write_bytes += part.cache_write_bytes;
  }
  EXPECT_EQ(sum.num_rows, record.num_prefill_rows + record.num_decode_rows);
  EXPECT_EQ(sum.num_logit_rows, record.num_logit_rows);
  EXPECT_EQ(sum.matmul_operations, record.matmul_operations);
  EXPECT_EQ(sum.attention_operations, record.attention_operations);
  EXPECT_EQ(sum.float_operations, record.float_operations);
  EXPECT_EQ(sum.weights_bytes, record.weights_bytes);
  EXPECT_EQ(sum.cache_read_bytes, record.cache_read_bytes);
  EXPECT_EQ(sum.cache_write_bytes, record.cache_write_bytes);
}

TEST_F(LedgerTest, PartsAddUpToTheStepInBothFormats) {
  std::uint64_t floats[2] = {}, attention[2] = {};
  for (const int f16 : {0, 1}) {
    load({.cache_format = f16 ? CacheFormat::f16 : CacheFormat::q16, .chunk_rows = 13});
    int num_mixed = 0;
    for (const StepRecord& record : run({request(5, 9), request(40, 3), request(17, 6)})) {
      expect_sums(record);
      num_mixed += record.num_prefill_rows > 0 && record.num_decode_rows > 0 ? 1 : 0;
      floats[f16] += record.float_operations;
      attention[f16] += record.attention_operations;
    }
    EXPECT_GT(num_mixed, 0);
  }
  EXPECT_EQ(attention[0], attention[1]);
  EXPECT_EQ(floats[1] - floats[0], attention[1]);  // the rest is that of weights in floats
  EXPECT_GT(floats[0], 0U);
}

TEST_F(LedgerTest, WhatASequenceDidIsTheSameInCompany) {
  load();
  const StepRecord alone = run({request(20, 1)})[0];
  const StepRecord together = run({request(20, 1), request(31, 1, 5)})[0];
  ASSERT_EQ(together.sequences.size(), 2U);
  const SequenceStep &a = alone.sequences[0], &b = together.sequences[0];
  EXPECT_EQ(a.matmul_operations, b.matmul_operations);
  EXPECT_EQ(a.attention_operations, b.attention_operations);
  EXPECT_EQ(a.cache_read_bytes, b.cache_read_bytes);
  EXPECT_GT(a.weights_bytes, b.weights_bytes);  // read once for both
}

TEST_F(LedgerTest, HowATokenCameAbout) {
  load();
  Request drawn = request(6, 3);
  drawn.sampling.temperature = 1;
  drawn.sampling.seed = 9;
  drawn.forced = {33};
  drawn.log_probabilities = true;
  const auto records = run({drawn});
  ASSERT_EQ(records.size(), 3U);
  const auto choice = [&](std::size_t step) { return records[step].sequences[0].choice; };
  EXPECT_TRUE(choice(0).forced && !choice(0).drawn);
  for (const std::size_t step : {1U, 2U}) {
    EXPECT_TRUE(choice(step).drawn && !choice(step).forced);
    EXPECT_EQ(choice(step).draw, engine::uniform(9, 0, static_cast<std::uint32_t>(6 + step)));
  }
  const TokenChoice best = run({request(6, 1)})[0].sequences[0].choice;
  EXPECT_FALSE(best.drawn || best.forced);
}

TEST_F(LedgerTest, ACharacterOfSeveralTokensIsCounted) {
  load();
  Request bytes = request(4, 7);  // the tiny vocabulary's first ids are bytes
  bytes.forced = {'a', 0xC3, 0xA9, 0xF0, 0x9F, 0x98, 0x80};
  std::vector<std::uint32_t> counts;
  for (const StepRecord& record : run({bytes})) counts.push_back(record.sequences[0].choice.text_tokens);
  EXPECT_EQ(counts, (std::vector<std::uint32_t>{1, 0, 2, 0, 0, 0, 4}));
}

TEST_F(LedgerTest, ACallersChoiceIsTakenAndFedBack) {
  load();
  Request own = request(6, 4);
  own.num_alternatives = 3;
  std::vector<TokenId> offered;
  own.on_choice = [&](const TokenChoice& choice) -> TokenId {
    offered.push_back(choice.id);
    if (offered.size() == 1) return choice.alternatives[2].id;
    if (offered.size() == 2) return -1;           // no wish
    return offered.size() == 3 ? 1 << 20 : choice.id;  // none of the vocabulary; the same
  };
  const auto records = run({own});
  const TokenChoice& first = records[0].sequences[0].choice;
  EXPECT_NE(first.id, offered[0]);
  EXPECT_TRUE(first.forced);
  EXPECT_EQ(first.id, first.alternatives[2].id);
  EXPECT_FLOAT_EQ(first.log_probability, first.alternatives[2].log_probability);
  for (const std::size_t step : {1U, 2U, 3U}) {
    EXPECT_EQ(records[step].sequences[0].choice.id, offered[step]);
    EXPECT_FALSE(records[step].sequences[0].choice.forced);
  }
  Request replay = request(6, 4);
  replay.forced = {first.id};
  const auto again = run({replay});
  for (const std::size_t step : {1U, 2U, 3U})
    EXPECT_EQ(again[step].sequences[0].choice.id, records[step].sequences[0].choice.id);
}

}  // namespace
}  // namespace couplet
