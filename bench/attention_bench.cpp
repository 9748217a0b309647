// Attention over 2,048 positions on one thread: a prefill block of about a hundred queries in G operations a second, one
// row in GB/s of pages read, for each cache format. Usage: attention_bench [level]

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "base/memory.h"
#include "kernels/kernels.h"

namespace {

using namespace couplet::kernels;

constexpr int kSpans = 8, kPages = kSpans * kSpanPages;
constexpr int kSequences = 64;  // their pages together are beyond every cache

double thread_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Function>
double best_seconds(Function function) {
  double best = 1e30;
  for (int round = 0; round < 6; ++round) {
    const double start = thread_seconds();
    function();
    best = std::min(best, thread_seconds() - start);
  }
  return best;
}

class Attention {
 public:
  Attention(const KernelTable& level, PageFormat format, int head_dim, int group)
      : kernels_(level.attention[static_cast<std::size_t>(format)]),
        head_dim_(head_dim),
        group_(group),
        rows_(96 / group),
        page_bytes_(page_bytes(format, head_dim)),
        pages_(page_bytes_ * kPages * kSequences, "pages"),
        scratch_(level.scratch_bytes(0, head_dim), "scratch"),
        queries_(static_cast<std::size_t>(rows_ * group * head_dim)),
        state_(static_cast<std::size_t>(rows_ * group * (padded16(head_dim) + 2))) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> values(-1, 1);
    std::vector<float> page(static_cast<std::size_t>(kPagePositions * head_dim));
    for (float& x : queries_) x = values(random);
    for (float& x : page) x = values(random);
    for (int i = 0; i < kPages * kSequences; ++i)
      kernels_.store_page(page.data(), page.data(), head_dim, kPagePositions, head_dim, 0, page_at(i));
  }

  double prefill_gops() {
    const double seconds = best_seconds([&] { run(0, rows_, kernels_.attend_prefill); });
    return 4e-9 * head_dim_ * rows_ * group_ * kSpans * kSpanPositions / seconds;
  }
  double decode_gb_per_s() {
    const double seconds = best_seconds([&] {
      for (int sequence = 0; sequence < kSequences; ++sequence) run(sequence, 1, kernels_.attend_decode);
    });
    return 1e-9 * static_cast<double>(page_bytes_) * kPages * kSequences / seconds;
  }

 private:
  std::byte* page_at(int index) { return pages_.data() + page_bytes_ * static_cast<std::size_t>(index); }

  void run(int sequence, int rows, void (*attend)(const AttentionSpan&, const AttentionState&, std::byte*)) {
    const int queries = rows * group_;
    const AttentionState state = {state_.data(), state_.data() + queries, state_.data() + 2 * queries};
    const std::byte* pages[kPages];
    for (int i = 0; i < kPages; ++i) pages[i] = page_at(sequence * kPages + i * 37 % kPages);  // in no order
    for (int span = 0; span < kSpans; ++span) {
      AttentionSpan args;
      args.queries = queries_.data();
      args.query_stride = group_ * head_dim_;
      args.num_rows = rows;
      args.group = group_;
      args.head_dim = head_dim_;
      args.first_position = kSpans * kSpanPositions;  // every row sees all
      args.span_begin = span * kSpanPositions;
      args.pages = pages + span * kSpanPages;
      args.ahead = span + 1 < kSpans ? pages + (span + 1) * kSpanPages : nullptr;
      attend(args, state, scratch_.data());
    }
  }

  const AttentionKernels& kernels_;
  int head_dim_, group_, rows_;
  std::size_t page_bytes_;
  couplet::MappedMemory pages_, scratch_;
  std::vector<float> queries_, state_;
};

}  // namespace

int main(int argc, char** argv) {
  const KernelTable& level = select_kernels(argc > 1 ? argv[1] : "");
  constexpr const char* kNames[kNumPageFormats] = {"f16", "q16", "q16 fine"};
  for (const int head_dim : {64, 256}) {
    for (int format = 0; format < kNumPageFormats; ++format) {
      Attention attention(level, static_cast<PageFormat>(format), head_dim, head_dim == 64 ? 3 : 4);
      std::printf("%-10s head_dim %3d  %-8s  prefill %4.0f GOPS  decode %5.1f GB/s\n", level.name, head_dim, kNames[format],
                  attention.prefill_gops(), attention.decode_gb_per_s());
    }
  }
}
