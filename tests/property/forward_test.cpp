// Prefill and decode are one function: however a sequence's rows are cut into steps, whoever shares a step with it,
// on however many threads and at whatever level, logits and cached bytes are the same bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <random>

#include "cache/page_table.h"
#include "kernels/kernels.h"
#include "kernels/page_layout.h"
#include "model/families/family.h"
#include "model/forward.h"
#include "tests/property/tiny_model.h"

namespace couplet {
namespace {

using kernels::PageFormat;
using testing::TinyModel;
using testing::TinyModelWriter;

struct Loaded {
  explicit Loaded(const TinyModel& tiny) : bytes(TinyModelWriter(tiny).builder().build()) {
    file = formats::CheckpointFile::parse(bytes);
    config = model::read_config(*file);
  }
  std::vector<std::byte> bytes;
  std::unique_ptr<formats::CheckpointFile> file;
  model::ModelConfig config;
};

struct Setting {
  std::string kernels = "";
  int num_threads = 1;
  PageFormat pages = PageFormat::q16;
};

// As an engine pairs them: fine has two planes of activations and of values.
constexpr PageFormat kPageFormats[] = {PageFormat::q16, PageFormat::q16_fine, PageFormat::f16};
int planes_of(PageFormat pages) { return pages == PageFormat::q16_fine ? 2 : 1; }

// All that a sequence leaves behind.
struct Trace {
  std::vector<float> logits;     // [positions, vocab_size]
  std::vector<std::byte> cache;  // every visible key and value, layer by layer, head by head, position by position
  bool operator==(const Trace& other) const {
    return logits.size() == other.logits.size() && cache == other.cache &&
           std::memcmp(logits.data(), other.logits.data(), logits.size() * sizeof(float)) == 0;
  }
};

constexpr int kMaxRows = 640;
constexpr int kMaxSequences = 6;

class Runner {
 public:
  Runner(const Loaded& loaded, const Setting& setting)
      : config_(&loaded.config),
        kernels_(&kernels::select_kernels(setting.kernels)),
        threads_(setting.num_threads),
        weights_(model::load_weights(*loaded.file, loaded.config, threads_, *kernels_)),
        pool_(model::cache_shape(loaded.config, setting.pages), 400),
        forward_(loaded.config, *weights_, *kernels_, threads_, pool_, {kMaxRows, kMaxSequences, planes_of(setting.pages)}) {
    poison_pool();
  }

  // Sequence i runs cuts[i][step] rows in each step until its tokens are done; every row's logits are taken.
  std::vector<Trace> run(const std::vector<std::vector<TokenId>>& sequences, const std::vector<std::vector<int>>& cuts) {
    std::vector<Trace> traces(sequences.size());
    std::vector<std::unique_ptr<cache::PageTable>> tables;
    std::vector<int> done(sequences.size(), 0);
    for (std::size_t i = 0; i < sequences.size(); ++i)
      tables.push_back(std::make_unique<cache::PageTable>(pool_, config_->context_length));
    for (std::size_t step = 0;; ++step) {
      std::vector<TokenId> tokens;
      std::vector<model::SequenceRows> rows;
      std::vector<std::size_t> owners;
      for (std::size_t i = 0; i < sequences.size(); ++i) {
        const int left = static_cast<int>(sequences[i].size()) - done[i];
        const int wanted = step < cuts[i].size() ? cuts[i][step] : left;
        const int num = std::min(wanted, left);
        if (num == 0) continue;
        EXPECT_TRUE(tables[i]->reserve(done[i] + num));
        rows.push_back({static_cast<int>(tokens.size()), num, done[i], tables[i].get(), num});
        tokens.insert(tokens.end(), sequences[i].begin() + done[i], sequences[i].begin() + done[i] + num);
        owners.push_back(i);
      }
      if (std::equal(done.begin(), done.end(), sequences.begin(), [](int n, const auto& s) { return n == static_cast<int>(s.size()); })) break;
      if (rows.empty()) continue;
      forward_.run({tokens, rows});
      collect(rows, owners, traces);
      for (std::size_t r = 0; r < rows.size(); ++r) {
        EXPECT_EQ(forward_.fault(static_cast<int>(r)), model::RowFault::none);
        tables[owners[r]]->append(rows[r].num_rows);
        done[owners[r]] += rows[r].num_rows;
      }
    }
    for (std::size_t i = 0; i < sequences.size(); ++i) traces[i].cache = cached(*tables[i]);
    return traces;
  }
  Trace run_alone(const std::vector<TokenId>& tokens, const std::vector<int>& cuts = {}) {
    return run({tokens}, {cuts}).front();
  }

 private:
  // Stale pages hold NaN everywhere: a kernel that reads an invisible lane shows it.
  void poison_pool() {
    const auto& shape = pool_.shape();
    for (int layer = 0; layer < shape.num_layers; ++layer)
      for (int page = 0; page < pool_.num_pages(); ++page)
        std::fill_n(pool_.page(layer, page, 0), shape.head_bytes() * static_cast<std::size_t>(shape.num_kv_heads),
                    std::byte{0x7e});
  }

  void collect(const std::vector<model::SequenceRows>& rows, const std::vector<std::size_t>& owners,
               std::vector<Trace>& traces) {
    std::vector<std::size_t> owner_of_row;
    for (std::size_t r = 0; r < rows.size(); ++r)
      owner_of_row.insert(owner_of_row.end(), static_cast<std::size_t>(rows[r].num_rows), owners[r]);
    for (int first = 0; first < forward_.num_logit_rows(); first += model::Forward::kHeadRows) {
      const int num = std::min(model::Forward::kHeadRows, forward_.num_logit_rows() - first);
      const model::Rows& logits = forward_.head(first, num);
      for (int r = 0; r < num; ++r) {
        Trace& trace = traces[owner_of_row[static_cast<std::size_t>(first + r)]];
        trace.logits.insert(trace.logits.end(), logits.row(r), logits.row(r) + config_->vocab_size);
      }
    }
  }

  std::vector<std::byte> cached(const cache::PageTable& table) const {
    std::vector<std::byte> bytes;
    for (int layer = 0; layer < config_->num_layers; ++layer)
      for (int head = 0; head < config_->num_kv_heads; ++head)
        for (int position = 0; position < table.num_positions(); ++position) {
          const std::byte* page = pool_.page(layer, table.pages()[static_cast<std::size_t>(position / 16)], head);
          append_slot(page, position % 16, bytes);
        }
    return bytes;
  }

  // What a page holds of one position (kernels/page_layout.h).
  void append_slot(const std::byte* page, int slot, std::vector<std::byte>& bytes) const {
    const auto append = [&](std::ptrdiff_t at, std::ptrdiff_t count) { bytes.insert(bytes.end(), page + at, page + at + count); };
    const int dim = config_->head_dim, padded = kernels::padded16(dim);
    if (pool_.shape().format == PageFormat::f16) {
      for (int d = 0; d < dim; ++d) append(2 * (d * 16 + slot), 2);
      append(2 * (16 + slot) * padded, 2 * dim);
      return;
    }
    const int planes = planes_of(pool_.shape().format);
    const kernels::IntegerPage layout(dim, planes);
    for (int block = 0; block < kernels::IntegerPage::num_blocks(dim); ++block) append(4 * (block * 16 + slot), 4);
    for (int pair = 0; pair < (dim + 1) / 2; ++pair) append(layout.keys + 4 * (pair * 16 + slot), 4);
    append(layout.value_scales + 4 * slot, 4);
    for (int plane = 0; plane < planes; ++plane)
      for (int d = 0; d < dim; ++d)
        append((plane == 0 ? layout.values : layout.second_plane) + slot / 2 * 2 * padded + 2 * d + slot % 2, 1);
  }

  const model::ModelConfig* config_;
  const kernels::KernelTable* kernels_;
  ThreadPool threads_;
  std::unique_ptr<model::Weights> weights_;
  cache::PagePool pool_;
  model::Forward forward_;
};

std::vector<TokenId> random_tokens(int count, std::uint64_t seed, int vocab_size = 517) {
  std::mt19937_64 random(seed);
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i)
    tokens.push_back(static_cast<TokenId>(random() % static_cast<std::uint64_t>(vocab_size)));
  return tokens;
}

std::vector<int> ones(int count) { return std::vector<int>(static_cast<std::size_t>(count), 1); }

struct NamedModel {
  const char* name;
  TinyModel model;
  friend std::ostream& operator<<(std::ostream& out, const NamedModel& m) { return out << m.name; }
};

class ForwardProperty : public ::testing::TestWithParam<NamedModel> {
 protected:
  ForwardProperty() : loaded_(GetParam().model) {}
  Loaded loaded_;
};

TEST_P(ForwardProperty, LogitsDependOnTokensAtAll) {
  Runner runner(loaded_, {});
  const Trace a = runner.run_alone(random_tokens(20, 1)), b = runner.run_alone(random_tokens(20, 2));
  EXPECT_FALSE(a == b);
  EXPECT_TRUE(std::all_of(a.logits.begin(), a.logits.end(), [](float x) { return std::isfinite(x); }));
  EXPECT_NE(a.logits[0], a.logits[1]);
}

TEST_P(ForwardProperty, AnyCutOfThePromptGivesTheSameBits) {
  for (const PageFormat pages : kPageFormats) {
    const int planes = static_cast<int>(pages);
    Runner runner(loaded_, {.pages = pages});
    const auto tokens = random_tokens(600, 3);
    const Trace whole = runner.run_alone(tokens);
    EXPECT_TRUE(whole == runner.run_alone(tokens, {1})) << planes;
    EXPECT_TRUE(whole == runner.run_alone(tokens, {7, 64, 3, 1, 1, 250})) << planes;
    EXPECT_TRUE(whole == runner.run_alone(tokens, {255, 1, 1, 1})) << planes;
    EXPECT_TRUE(whole == runner.run_alone(tokens, {599, 1})) << planes;
  }
}

TEST_P(ForwardProperty, DecodeRowByRowEqualsPrefill) {
  for (const PageFormat pages : kPageFormats) {
    Runner runner(loaded_, {.pages = pages});
    const auto tokens = random_tokens(300, 4);
    const Trace whole = runner.run_alone(tokens);
    EXPECT_TRUE(whole == runner.run_alone(tokens, ones(300)));
    std::vector<int> half = ones(151);
    half[0] = 150;
    EXPECT_TRUE(whole == runner.run_alone(tokens, half));
  }
}

TEST_P(ForwardProperty, StrangersInTheBatchChangeNothing) {
  Runner runner(loaded_, {});
  std::vector<std::vector<TokenId>> sequences;
  for (const int length : {280, 1, 33, 90, 16, 17}) sequences.push_back(random_tokens(length, static_cast<std::uint64_t>(length)));
  const auto together = runner.run(sequences, {{40, 1, 1, 200}, {}, {2, 2, 2}, ones(90), {0, 0, 5}, {17}});
  for (std::size_t i = 0; i < sequences.size(); ++i)
    EXPECT_TRUE(together[i] == runner.run_alone(sequences[i])) << i;
}

TEST_P(ForwardProperty, ThreadsAndLevelsChangeNothing) {
  const auto tokens = random_tokens(70, 5);
  const kernels::KernelTable* levels[8];
  const int num_levels = kernels::runnable_levels(levels);
  ASSERT_GE(num_levels, 1);
  for (const PageFormat pages : kPageFormats) {
    const Trace expected = Runner(loaded_, {"reference", 1, pages}).run_alone(tokens);
    for (int level = 0; level < num_levels; ++level)
      for (const int threads : {1, 2, 5}) {
        Runner runner(loaded_, {levels[level]->name, threads, pages});
        EXPECT_TRUE(expected == runner.run_alone(tokens)) << levels[level]->name << " " << threads;
        EXPECT_TRUE(expected == runner.run_alone(tokens, {30, 1, 1, 1, 7})) << levels[level]->name << " " << threads;
      }
  }
}

TEST_P(ForwardProperty, RandomSchedulesOfRandomBatches) {
  Runner runner(loaded_, {.num_threads = 2});
  std::mt19937_64 random(6);
  for (int round = 0; round < 4; ++round) {
    std::vector<std::vector<TokenId>> sequences;
    std::vector<std::vector<int>> cuts;
    const int num = 1 + static_cast<int>(random() % kMaxSequences);
    for (int i = 0; i < num; ++i) {
      sequences.push_back(random_tokens(1 + static_cast<int>(random() % 100), random()));
      std::vector<int> cut;
      for (int step = 0; step < 40; ++step) cut.push_back(static_cast<int>(random() % (random() % 2 == 0 ? 2 : 20)));
      cuts.push_back(cut);
    }
    const auto together = runner.run(sequences, cuts);
    for (std::size_t i = 0; i < sequences.size(); ++i)
      EXPECT_TRUE(together[i] == runner.run_alone(sequences[i])) << round << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(TinyModels, ForwardProperty,
                         ::testing::Values(NamedModel{"llama", testing::tiny_llama()},
                                           NamedModel{"llama_k", testing::tiny_llama_k()},
                                           NamedModel{"llama_f32", testing::tiny_llama_f32()},
                                           NamedModel{"gemma3", testing::tiny_gemma()}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace couplet
