// The price of exactness: the same model, weights and threads with kernels that keep the contract and with some that break it
// (inexact.h), in turn; and one row's products with their outputs shared by two threads, as couplet does it, beside their
// sums shared (split K). Usage: exactness_bench [MODEL.gguf [threads]]

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "base/float_environment.h"
#include "cache/page_table.h"
#include "engine/open_checkpoint.h"
#include "inexact.h"
#include "model/families/family.h"
#include "model/forward.h"

namespace {

using namespace couplet;

constexpr int kRounds = 5;
constexpr int kChunk = 512;   // prompt rows in one step, as the engine has it
constexpr int kSteps = 16;    // of decode, at the same position
constexpr int kDeepest = 2048;

double seconds(const std::function<void()>& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// The best of kRounds of each, in turn.
std::vector<double> best_of(const std::vector<std::function<void()>>& works) {
  std::vector<double> best(works.size(), 1e30);
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < works.size(); ++i) best[i] = std::min(best[i], seconds(works[i]));
  return best;
}

struct Model {
  explicit Model(const std::string& path)
      : file(formats::CheckpointFile::open(path)), config(model::read_config(*file)) {
    config.context_length = kDeepest + kPage;
  }
  static constexpr int kPage = kernels::kPagePositions;
  std::unique_ptr<formats::CheckpointFile> file;
  model::ModelConfig config;
};

// One sequence on one table of kernels.
class Runner {
 public:
  Runner(const Model& model, const model::Weights& weights, const kernels::KernelTable& table, ThreadPool& threads)
      : table_(table),
        pool_(model::cache_shape(model.config, kernels::PageFormat::q16), cache::pages_for(model.config.context_length)),
        pages_(pool_, model.config.context_length),
        forward_(model.config, weights, table_, threads, pool_, {kChunk, 1, 1}),
        tokens_(kDeepest + 1) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) tokens_[i] = static_cast<TokenId>(i * 2654435761U % 30000);
    pages_.reserve(kDeepest + 1);
  }

  void prefill(int length) {
    for (int done = 0; done < length; done += kChunk) run(done, std::min(kChunk, length - done), done + kChunk >= length);
  }
  void decode(int depth) {
    for (int step = 0; step < kSteps; ++step) run(depth, 1, true);
  }
  // Of the last position that ran.
  const std::vector<float>& logits() const { return logits_; }

 private:
  void run(int first, int num, bool needs_logits) {
    const model::SequenceRows rows = {0, num, first, &pages_, needs_logits ? 1 : 0};
    forward_.run({{tokens_.data() + first, static_cast<std::size_t>(num)}, {&rows, 1}});
    if (!needs_logits) return;
    const model::Rows& logits = forward_.head(0, 1);
    logits_.assign(logits.row(0), logits.row(0) + logits.cols);
  }

  kernels::KernelTable table_;
  cache::PagePool pool_;
  cache::PageTable pages_;
  model::Forward forward_;
  std::vector<TokenId> tokens_;
  std::vector<float> logits_;
};

// That the variants compute the same function: the root mean square of what their logits differ by.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i] - b[i]) * static_cast<double>(a[i] - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

struct Variant {
  const char* name;
  kernels::KernelTable table;
  bool only_prefill = false;
};

void measure_model(const Model& model, const model::Weights& weights, ThreadPool& threads) {
  const kernels::KernelTable& exact = kernels::select_kernels("avx512");
  const Variant variants[] = {{"exact", exact},
                              {"fast floats", kernels::inexact::with_fast_floats(exact)},
                              {"one scale a row", kernels::inexact::with_row_scales(exact), true}};
  std::vector<std::unique_ptr<Runner>> runners;
  for (const Variant& variant : variants)
    runners.push_back(std::make_unique<Runner>(model, weights, variant.table, threads));
  std::printf("%-18s %-16s %10s %16s %16s\n", "", "kernels", "tokens/s", "price of exact", "logits off by");
  const auto row = [&](const char* stage, int n, int count, bool is_prefill, const std::function<void(Runner&)>& work) {
    std::vector<std::function<void()>> works;
    for (std::size_t i = 0; i < runners.size(); ++i)
      if (is_prefill || !variants[i].only_prefill) works.push_back([&, i] { work(*runners[i]); });
    const std::vector<double> best = best_of(works);
    for (std::size_t i = 0; i < best.size(); ++i)
      std::printf("%-8s %9d %-16s %10.1f %14.1f %% %16.5f\n", stage, n, variants[i].name, count / best[i],
                  100 * (best[0] / best[i] - 1), difference(runners[0]->logits(), runners[i]->logits()));
  };
  for (const int n : {512, kDeepest}) row("prefill", n, n, true, [n](Runner& runner) { runner.prefill(n); });
  for (const int n : {0, kDeepest}) row("decode", n, kSteps, false, [n](Runner& runner) { runner.decode(n); });
}

// One row through the matrices of a layer after the other, as a decode step does, on two threads.
class OneRow {
 public:
  OneRow(const model::Weights& weights, int widest, ThreadPool& threads)
      : table_(&kernels::select_kernels("avx512")), threads_(&threads), widest_(widest), x_(Floats(widest, 0.5F)) {
    for (const model::LayerWeights& layer : weights.layers)
      for (const kernels::PackedMatrix* m : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down})
        matrices_.push_back(*m);
    for (auto& out : out_) out.resize(static_cast<std::size_t>(widest) + 16);
    hi_.resize(static_cast<std::size_t>(widest) + 64);
    scale_.resize(static_cast<std::size_t>(widest));
    sums_.resize(static_cast<std::size_t>(widest));
    scratch_.resize(table_->scratch_bytes(widest, 64) + 64);
  }

  // Each thread has half of the outputs.
  void share_outputs() {
    for (const kernels::PackedMatrix& m : matrices_) {
      const kernels::QuantizedRows x = quantized(m.cols);
      const int half = m.num_panels() / 2;
      threads_->parallel_for(2, [&](int part, int) {
        product(m, part == 0 ? 0 : half, part == 0 ? half : m.num_panels() - half, x, out_[0].data());
      });
    }
  }

  // Each thread has half of the sums of all outputs; then each adds half of the outputs up.
  void split_sums() {
    for (const kernels::PackedMatrix& m : matrices_) {
      const kernels::QuantizedRows x = quantized(m.cols);
      const int values = kernels::block_values(m.type), half = m.cols / values / 2 * values;
      threads_->parallel_for(2, [&](int part, int) {
        kernels::PackedMatrix mine = m;
        kernels::QuantizedRows row = x;
        mine.cols = row.cols = part == 0 ? half : m.cols - half;
        const std::size_t block_bytes = m.panel_bytes / static_cast<std::size_t>(m.cols / values);
        if (part == 1) {
          mine.panels += block_bytes * static_cast<std::size_t>(half / values);
          row.hi += half;
          row.scale += half / 32;
          row.scaled_sum += half / 32;
          row.sum_hi += half / 16;
        }
        product(mine, 0, m.num_panels(), row, out_[part].data());
      });
      const std::size_t outputs = static_cast<std::size_t>(m.rows);
      threads_->parallel_for(2, [&](int part, int) {
        const std::size_t begin = part == 0 ? 0 : outputs / 2, end = part == 0 ? outputs / 2 : outputs;
        for (std::size_t i = begin; i < end; ++i) out_[0][i] += out_[1][i];
      });
    }
  }

 private:
  using Floats = std::vector<float>;

  kernels::QuantizedRows quantized(int cols) {
    kernels::QuantizedRows rows = {1, cols, (cols + 63) / 64 * 64, hi_.data(), nullptr, scale_.data(), scale_.data() + widest_ / 32,
                                   sums_.data(), nullptr};
    std::uint8_t poisoned = 0;
    table_->quantize(x_.data(), cols, rows, &poisoned);
    return rows;
  }
  void product(const kernels::PackedMatrix& m, int first, int num, const kernels::QuantizedRows& x, float* out) {
    if (num > 0 && kernels::is_quantized(m.type)) table_->one_row(m, first, num, x, out, 0, nullptr);
  }

  const kernels::KernelTable* table_;
  ThreadPool* threads_;
  int widest_;
  Floats x_;
  std::vector<kernels::PackedMatrix> matrices_;
  Floats out_[2];
  std::vector<std::int8_t> hi_;
  std::vector<float> scale_;
  std::vector<std::int16_t> sums_;
  std::vector<std::byte> scratch_;
};

void measure_split(const Model& model, const model::Weights& weights) {
  ThreadPool two(2);
  const int widest = std::max({model.config.hidden_size, model.config.intermediate_size, model.config.num_heads * model.config.head_dim});
  OneRow row(weights, widest, two);
  const std::vector<double> best = best_of({[&] { row.share_outputs(); }, [&] { row.split_sums(); }});
  std::printf("\none row through all layers' products, two threads: outputs shared %.3f ms, sums split %.3f ms: price of exact %.1f %%\n",
              best[0] * 1e3, best[1] * 1e3, 100 * (best[0] / best[1] - 1));
}

std::string default_model() {
  const char* folder = std::getenv("COUPLET_MODELS");
  return (folder ? std::string(folder) : std::string(std::getenv("HOME")) + "/.cache/couplet") + "/smollm2.gguf";
}

}  // namespace

int main(int argc, char** argv) {
  if (!cpu_features().avx512) {
    std::printf("left out: the inexact kernels need AVX-512 with VNNI\n");
    return 0;
  }
  const StandardFloats floats;
  const std::string path = argc > 1 ? argv[1] : default_model();
  if (argc == 1 && !std::filesystem::exists(path)) {
    std::printf("left out: there is no %s\n", path.c_str());
    return 0;
  }
  try {
    const Model model(path);
    ThreadPool threads(argc > 2 ? std::max(1, std::atoi(argv[2])) : usable_cpus());
    const auto weights = model::load_weights(*model.file, model.config, threads, kernels::select_kernels("avx512"));
    std::printf("%s, %d threads; the price is how much faster the inexact kernels are\n", path.c_str(), threads.num_threads());
    measure_model(model, *weights, threads);
    measure_split(model, *weights);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "exactness_bench: %s\n", error.what());
    return 1;
  }
}
