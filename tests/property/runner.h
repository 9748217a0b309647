#pragma once
// Runs a whole model in any schedule and keeps all that a sequence leaves behind, logits and cached bytes, to be compared
// by memcmp.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cache/page_table.h"
#include "kernels/kernels.h"
#include "kernels/page_layout.h"
#include "model/families/family.h"
#include "model/forward.h"
#include "tests/property/tiny_model.h"

namespace couplet::testing {

using kernels::PageFormat;

struct Loaded {
  explicit Loaded(const TinyModel& tiny) : Loaded(TinyModelWriter(tiny).builder().build()) {}
  explicit Loaded(std::vector<std::byte> file_bytes) : bytes(std::move(file_bytes)) {
    file = formats::CheckpointFile::parse(bytes);
    config = model::read_config(*file);
  }
  explicit Loaded(std::unique_ptr<formats::CheckpointFile> opened)
      : file(std::move(opened)), config(model::read_config(*file)) {}
  std::vector<std::byte> bytes;
  std::unique_ptr<formats::CheckpointFile> file;
  model::ModelConfig config;
};

struct Setting {
  std::string kernels = "";
  int num_threads = 1;
  PageFormat pages = PageFormat::q16;
  const kernels::KernelTable* table = nullptr;  // in place of a level's
  int page_factor = 1;                          // pages so many times as large
};

// As an engine pairs them: fine has two planes of activations and of values.
inline constexpr PageFormat kPageFormats[] = {PageFormat::q16, PageFormat::q16_fine, PageFormat::f16};
inline int planes_of(PageFormat pages) { return pages == PageFormat::q16_fine ? 2 : 1; }

// All that a sequence leaves behind.
struct Trace {
  std::vector<float> logits;     // [positions, vocab_size]
  std::vector<std::byte> cache;  // every visible key and value, layer by layer, head by head, position by position
  bool operator==(const Trace& other) const {
    return logits.size() == other.logits.size() && cache == other.cache &&
           std::memcmp(logits.data(), other.logits.data(), logits.size() * sizeof(float)) == 0;
  }
};

inline constexpr int kMaxRows = 640;
inline constexpr int kMaxSequences = 6;

class Runner {
 public:
  Runner(const Loaded& loaded, const Setting& setting)
      : config_(&loaded.config),
        kernels_(setting.table != nullptr ? setting.table : &kernels::select_kernels(setting.kernels)),
        threads_(setting.num_threads),
        weights_(model::load_weights(*loaded.file, loaded.config, threads_, *kernels_)),
        pool_(enlarged(model::cache_shape(loaded.config, setting.pages), setting.page_factor), 400),
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
  static cache::CacheShape enlarged(cache::CacheShape shape, int factor) {
    shape.head_dim *= factor;
    return shape;
  }

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

inline std::vector<TokenId> random_tokens(int count, std::uint64_t seed, int vocab_size = 517) {
  std::mt19937_64 random(seed);
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i)
    tokens.push_back(static_cast<TokenId>(random() % static_cast<std::uint64_t>(vocab_size)));
  return tokens;
}

inline std::vector<int> ones(int count) { return std::vector<int>(static_cast<std::size_t>(count), 1); }

}  // namespace couplet::testing
