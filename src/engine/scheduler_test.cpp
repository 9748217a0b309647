// The scheduler without a model: what it plans is taken as run, in as much time as the test says.

#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "couplet/checkpoint.h"
#include "engine/prefill.h"
#include "tests/property/tiny_model.h"

namespace couplet::engine {
namespace {

constexpr int kPage = kernels::kPagePositions;
constexpr int kContext = 4096;

const Tokenizer& tokenizer() {
  static const testing::TinyModelFile file(testing::tiny_llama());
  static const auto checkpoint = Checkpoint::open(file.path());
  return checkpoint->tokenizer();
}

struct Asked {
  int num_prompt = 100;
  int max_tokens = 1;
  std::uint64_t client = 0;
  int priority = 0;
  std::uint64_t salt = 0;
  int same_as = -1;  // prompts of one number begin alike
};

class World {
 public:
  explicit World(SchedulerLimits limits = {64, 8}, int num_pages = 4096)
      : pool_({.num_layers = 1, .num_kv_heads = 1, .head_dim = 16}, num_pages), tree_(pool_), scheduler_(tree_, pool_, limits) {}

  RequestId submit(const Asked& asked) {
    Request request;
    const int text = asked.same_as >= 0 ? asked.same_as : 1000 + static_cast<int>(next_id_);
    for (int i = 0; i < asked.num_prompt; ++i) request.prompt.push_back((text * 31 + i) % 500);
    request.stop.max_tokens = asked.max_tokens;
    request.client = asked.client;
    request.priority = asked.priority;
    request.cache_salt = asked.salt;
    scheduler_.add(std::make_unique<Sequence>(next_id_, std::move(request), tokenizer(), pool_, kContext));
    return next_id_++;
  }

  // Rows by sequence of one step, which takes 10 ms and `row_ms` for each row of a prompt.
  std::map<RequestId, int> step(double row_ms = 0.5) {
    std::map<RequestId, int> rows;
    std::vector<Sequence*> ended;
    int prompt_rows = 0;
    bool prompts_began = false;
    for (const Planned& planned : scheduler_.plan()) {
      Sequence& s = *planned.sequence;
      rows[s.id] += planned.num_rows;
      computed_[s.id] += planned.num_rows;
      const bool prompt = planned.stage == Stage::prefill;
      prompt_rows += prompt ? planned.num_rows : 0;
      EXPECT_TRUE(prompt || !prompts_began) << "decode comes first";
      prompts_began |= prompt;
      EXPECT_GE(static_cast<int>(s.pages.pages().size()) * kPage, s.num_computed + planned.num_rows);
      s.pages.append(planned.num_rows);
      s.num_computed += planned.num_rows;
      s.num_reached = std::max(s.num_reached, s.num_computed);
      publish_pages(s, tree_);
      cached_[s.id] = s.num_cached;
      if (!planned.reaches_end) continue;
      if (s.num_tokens() < s.max_tokens) s.tokens.push_back(static_cast<TokenId>(s.id % 500));
      if (s.num_tokens() >= s.max_tokens) ended.push_back(&s);
    }
    EXPECT_LE(prompt_rows, scheduler_.row_budget());
    scheduler_.note_step(10 + row_ms * prompt_rows);
    for (Sequence* s : ended) {
      ended_.push_back(s->id);
      scheduler_.remove(s);
    }
    return rows;
  }
  void steps(int num) {
    for (int i = 0; i < num; ++i) step();
  }
  // All that was submitted ends; returns the number of steps.
  int finish(int most = 100000) {
    int num = 0;
    for (; scheduler_.num_running() + scheduler_.num_waiting() > 0; ++num) {
      if (num == most) {
        ADD_FAILURE() << "nothing ends";
        break;
      }
      step();
    }
    return num;
  }
  int finish_one(RequestId id) {
    int num = 0;
    while (std::ranges::find(ended_, id) == ended_.end() && num++ < 100000) step();
    return num;
  }
  void expect_all_pages_back() const { EXPECT_EQ(pool_.used_pages(), pool_.idle_pages()); }

  cache::PagePool pool_;
  cache::PrefixTree tree_;
  Scheduler scheduler_;
  std::map<RequestId, int> computed_, cached_;
  std::vector<RequestId> ended_;
  RequestId next_id_ = 1;
};

TEST(Scheduler, DecodingGoesFirstAndPromptsTakeWhatTheBudgetLeaves) {
  World world;
  const RequestId reply = world.submit({.num_prompt = 10, .max_tokens = 200});
  EXPECT_EQ(world.step(), (std::map<RequestId, int>{{reply, 10}}));
  world.steps(5);
  const RequestId prompt = world.submit({.num_prompt = 300});
  // 10 ms alone, nearly 20 with prompts: that is known after a few steps.
  world.steps(4);
  const auto rows = world.step();
  EXPECT_EQ(rows.at(reply), 1);
  EXPECT_NEAR(rows.at(prompt), (RowBudget::kAim * 20 - 10) / 0.5, 1);
  EXPECT_EQ(world.scheduler_.row_budget(), rows.at(prompt));
  world.finish_one(reply);
  EXPECT_EQ(world.scheduler_.row_budget(), 64);  // nobody decoded in the last step: the whole chunk
}

TEST(Scheduler, TheLowerPriorityStartsAndGoesOnFirst) {
  World world({64, 2});
  const RequestId idle = world.submit({.num_prompt = 300, .priority = 5});
  const RequestId normal = world.submit({.num_prompt = 300});
  const RequestId urgent = world.submit({.num_prompt = 300, .priority = -5});
  world.finish();
  EXPECT_EQ(world.ended_, (std::vector<RequestId>{urgent, normal, idle}));
}

TEST(Scheduler, AHundredRequestsOfOneClientDelayAnothersByItsShareAlone) {
  World world({64, 4});
  for (int i = 0; i < 100; ++i) world.submit({.num_prompt = 64, .max_tokens = 10, .client = 1});
  world.steps(7);
  const RequestId single = world.submit({.num_prompt = 64, .max_tokens = 1, .client = 2});
  const std::size_t ended_before = world.ended_.size();
  world.finish_one(single);
  // A place has to come free, and the oldest may have its turn: then it is this one's.
  EXPECT_LE(world.ended_.size() - ended_before, 6U);
  world.finish();
}

TEST(Scheduler, ClientsShareAPromptBudgetEqually) {
  World world({16, 16});
  world.submit({.num_prompt = 4000, .client = 2});
  for (int i = 0; i < 8; ++i) world.submit({.num_prompt = 2000, .client = 1});
  std::map<std::uint64_t, int> rows;
  for (int i = 0; i < 160; ++i)
    for (const auto& [id, num] : world.step()) rows[id == 1 ? 2 : 1] += num;
  EXPECT_EQ(rows[1] + rows[2], 160 * 16);
  EXPECT_NEAR(rows[2], 80 * 16, 80 * 16 / 10);
}

TEST(Scheduler, AShortPromptDoesNotWaitForALongOne) {
  for (const std::uint64_t other : {1U, 2U}) {
    World world({16, 4});
    world.submit({.num_prompt = 3000, .client = 1});
    world.steps(3);
    const RequestId brief = world.submit({.num_prompt = 40, .client = other});
    EXPECT_LE(world.finish_one(brief), 5);
  }
}

TEST(Scheduler, ShortPromptsWithoutEndDoNotStopALongOne) {
  World world({16, 4});
  const RequestId patient = world.submit({.num_prompt = 1000, .client = 1});
  int steps = 0;
  while (world.ended_.empty() || std::ranges::find(world.ended_, patient) == world.ended_.end()) {
    if (world.scheduler_.num_waiting() < 4) world.submit({.num_prompt = 16, .client = 1});
    world.step();
    ASSERT_LE(++steps, 2 * 1000 / 16 * Scheduler::kTurns);
  }
}

TEST(Scheduler, UrgentRequestsWithoutEndDoNotStopTheOthers) {
  World world({64, 2});
  const RequestId patient = world.submit({.num_prompt = 200, .max_tokens = 5, .priority = 100});
  int steps = 0;
  while (std::ranges::find(world.ended_, patient) == world.ended_.end()) {
    while (world.scheduler_.num_waiting() < 4) world.submit({.num_prompt = 60, .max_tokens = 2, .priority = -100});
    world.step();
    ASSERT_LE(++steps, 200);
  }
}

TEST(Scheduler, WhoComesLastWithTheLeastPriorityGivesWay) {
  World world({64, 8}, 12);
  const RequestId urgent = world.submit({.num_prompt = 31, .max_tokens = 130, .priority = -1});
  const RequestId old = world.submit({.num_prompt = 31, .max_tokens = 130});
  const RequestId young = world.submit({.num_prompt = 31, .max_tokens = 130});
  while (world.scheduler_.num_preemptions() == 0) world.step();
  EXPECT_EQ(world.scheduler_.num_waiting(), 1);
  EXPECT_EQ(world.scheduler_.num_unstarted(), 0);
  EXPECT_TRUE(world.step().contains(urgent));
  world.finish();
  EXPECT_EQ(world.ended_, (std::vector<RequestId>{urgent, old, young}));
  world.expect_all_pages_back();
}

TEST(Scheduler, ThePromptThatSeveralHaveIsComputedOnce) {
  World world({24, 16});
  for (int i = 0; i < 6; ++i) world.submit({.num_prompt = 500, .client = i < 3 ? 1U : 2U, .same_as = 7});
  world.finish();
  int computed = 0, cached = 0;
  for (RequestId id = 1; id <= 6; ++id) {
    computed += world.computed_[id];
    cached += world.cached_[id];
    EXPECT_EQ(world.computed_[id] + world.cached_[id], 500);
  }
  EXPECT_EQ(computed, 496 + 6 * 4);  // whole pages once, the last few rows by each
  EXPECT_EQ(cached, 5 * 496);
  EXPECT_EQ(world.scheduler_.queried_tokens(), 6U * 500);
  EXPECT_EQ(world.scheduler_.hit_tokens(), 5U * 496);
  world.expect_all_pages_back();
}

TEST(Scheduler, WhereTheyPartEachGoesOnAlone) {
  World world({24, 16});
  world.submit({.num_prompt = 200, .same_as = 7});
  world.submit({.num_prompt = 320, .same_as = 7});
  world.submit({.num_prompt = 320, .same_as = 8});
  world.finish();
  EXPECT_EQ(world.computed_[1] + world.computed_[2], 320 + 200 - 192);
  EXPECT_EQ(world.computed_[3], 320);
}

TEST(Scheduler, SaltsComputeTheirOwn) {
  World world;
  for (const std::uint64_t salt : {0U, 1U, 2U, 1U}) world.submit({.num_prompt = 160, .salt = salt, .same_as = 7});
  world.finish();
  EXPECT_EQ(world.computed_[1], 160);
  EXPECT_EQ(world.computed_[3], 160);
  EXPECT_EQ(world.computed_[2] + world.computed_[4], 160 + 16);  // the last token's page is each one's own
}

TEST(Scheduler, WhoWaitedForAnothersPagesGoesOnWhenThatOneIsGone) {
  for (const int after : {1, 5, 11}) {
    World world({24, 16});
    const RequestId first = world.submit({.num_prompt = 500, .same_as = 7});
    for (int i = 0; i < 3; ++i) world.submit({.num_prompt = 500, .same_as = 7});
    world.steps(after);
    world.scheduler_.remove(world.scheduler_.find(first));
    world.finish();
    EXPECT_EQ(world.ended_.size(), 3U);
    int computed = 0;
    for (RequestId id = 1; id <= 4; ++id) computed += world.computed_[id];
    EXPECT_LE(computed, 496 + 3 * 4 + kPage - 1);  // what was begun of a page is lost
    world.expect_all_pages_back();
  }
}

TEST(Scheduler, SharersOfAPromptPassThroughAPoolThatIsFarTooSmall) {
  World world({24, 16}, 40);
  for (int i = 0; i < 6; ++i) world.submit({.num_prompt = 500, .max_tokens = 100, .same_as = i % 2});
  world.finish();
  EXPECT_EQ(world.ended_.size(), 6U);
  world.expect_all_pages_back();
}

TEST(Scheduler, ACancelledOneNeverStarts) {
  World world({64, 1});
  world.submit({.max_tokens = 20});
  const RequestId cancelled = world.submit({});
  world.step();
  EXPECT_EQ(world.scheduler_.num_unstarted(), 1);
  world.scheduler_.remove(world.scheduler_.find(cancelled));
  EXPECT_EQ(world.scheduler_.num_unstarted(), 0);
  world.finish();
  EXPECT_FALSE(world.computed_.contains(cancelled));
}

// Requests come and go at random, in pools from roomy to far too small: all end, the pages come back, and nobody who has
// work all the time gets much less than another.
TEST(Scheduler, RandomLivesAllEnd) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto up_to = [&](unsigned most) { return static_cast<int>(random() % (most + 1)); };
    World world({1 + up_to(100), 1 + up_to(7)}, 64 + up_to(200));
    std::set<RequestId> expected;
    for (int turn = 0; turn < 300; ++turn) {
      if (up_to(3) == 0) {
        const RequestId id = world.submit({.num_prompt = 1 + up_to(400), .max_tokens = up_to(60), .client = random() % 4,
                                           .priority = up_to(4) - 2, .salt = random() % 2,
                                           .same_as = up_to(1) == 0 ? -1 : up_to(2)});
        expected.insert(id);
      }
      if (up_to(20) == 0 && !expected.empty()) {
        const RequestId id = *std::next(expected.begin(), up_to(static_cast<unsigned>(expected.size()) - 1));
        if (Sequence* s = world.scheduler_.find(id); s != nullptr) {
          world.scheduler_.remove(s);
          expected.erase(id);
        }
      }
      world.step(0.1 * up_to(20));
    }
    world.finish();
    EXPECT_EQ(std::set<RequestId>(world.ended_.begin(), world.ended_.end()), expected) << "seed " << seed;
    EXPECT_EQ(world.scheduler_.num_unstarted(), 0);
    world.expect_all_pages_back();
    if (::testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(Scheduler, RandomLoadsShareTheEngineEqually) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    World world({32, 6});
    std::map<std::uint64_t, std::vector<RequestId>> of_client;
    std::map<RequestId, std::uint64_t> client_of;
    std::map<std::uint64_t, int> rows;
    for (int turn = 0; turn < 3000; ++turn) {
      for (const std::uint64_t client : {1U, 2U, 3U}) {  // each always has work, the third far more than it is given
        const std::size_t wanted = client == 3 ? 30 : 2;
        auto& own = of_client[client];
        std::erase_if(own, [&](RequestId id) { return world.scheduler_.find(id) == nullptr; });
        while (own.size() < wanted) {
          own.push_back(world.submit({.num_prompt = 20 + static_cast<int>(random() % 200),
                                      .max_tokens = 1 + static_cast<int>(random() % 10), .client = client}));
          client_of[own.back()] = client;
        }
      }
      for (const auto& [id, num] : world.step()) rows[client_of[id]] += num;
    }
    const int all = rows[1] + rows[2] + rows[3];
    for (const std::uint64_t client : {1U, 2U, 3U}) EXPECT_NEAR(rows[client], all / 3, all / 20) << seed << " " << client;
  }
}

}  // namespace
}  // namespace couplet::engine
