// The products on one thread: many rows in GOPS beside the level's int8 peak, one row in GB/s of weights beside what the
// machine reads. Usage: matmul_bench [level] [type]

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/peaks.h"

namespace {

using couplet::kernels::KernelTable;
using couplet::kernels::PackedMatrix;
using couplet::kernels::QuantizedRows;
using couplet::kernels::WeightType;

constexpr int kOutputs = 1536, kCols = 1536, kRows = 510;
constexpr std::size_t kStreamBytes = 96U << 20;  // three times this machine's last cache
constexpr const char* kTypes[] = {"f32",  "f16",  "bf16", "q4_0", "q4_1",   "q5_0",   "q5_1",  "q8_0", "q4_k",
                                 "q5_k", "q6_k", "q2_k", "q3_k", "iq4_nl", "iq4_xs", "mxfp4", "coded"};

struct Free {
  void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t(64)); }
};
using Bytes = std::unique_ptr<std::byte, Free>;

Bytes allocate(std::size_t count) {
  Bytes bytes(static_cast<std::byte*>(::operator new(count, std::align_val_t(64))));
  std::memset(bytes.get(), 0x11, count);  // codes and small positive scales alike
  return bytes;
}

// Seconds that this thread has run: a busy neighbour's turns don't count.
double thread_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The best of `rounds` calls.
template <class Function>
double best_seconds(int rounds, Function function) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const double start = thread_seconds();
    function();
    best = std::min(best, thread_seconds() - start);
  }
  return best;
}

struct Peaks {
  double int8_gops, read_gb_per_s;
};

Peaks measure_peaks(const KernelTable& level) {
  const couplet::kernels::PeakLoops& loops = *couplet::kernels::peak_loops(level.name);
  std::uint64_t sink = 0;
  std::uint64_t operations = 0;
  const double dots = best_seconds(5, [&] { operations = loops.int8_dots(4'000'000, &sink); });
  const Bytes bytes = allocate(kStreamBytes);
  const double read = best_seconds(10, [&] { loops.read(bytes.get(), kStreamBytes, &sink); });
  return {static_cast<double>(operations) / dots / 1e9, static_cast<double>(kStreamBytes) / read / 1e9};
}

struct Activations {
  explicit Activations(const KernelTable& level) : values(std::size_t(kRows) * kCols), hi(values.size()), lo(hi), sums(values.size() / 8) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 2654435761U % 1000) - 500.0F;
    scales.resize(values.size() / 16);
    std::vector<std::uint8_t> poisoned(kRows);
    level.quantize(values.data(), kCols, rows(kRows, 2), poisoned.data());
  }
  QuantizedRows rows(int count, int planes) {
    const std::size_t half_scales = scales.size() / 2, half_sums = sums.size() / 2;
    return {count, kCols, kCols, hi.data(), planes == 2 ? lo.data() : nullptr, scales.data(), scales.data() + half_scales,
            sums.data(), planes == 2 ? sums.data() + half_sums : nullptr};
  }
  std::vector<float> values;
  std::vector<std::int8_t> hi, lo;
  std::vector<float> scales;
  std::vector<std::int16_t> sums;
};

void measure(const KernelTable& level, WeightType type, Activations& x, const Peaks& peaks) {
  const std::size_t matrix_bytes = couplet::kernels::row_bytes(type, kCols) * kOutputs;
  const std::size_t copies = kStreamBytes / matrix_bytes + 1;
  const Bytes weights = allocate(matrix_bytes * copies), scratch = allocate(level.scratch_bytes(kCols, 0));
  std::vector<float> out(std::size_t(kRows) * kOutputs);
  const auto matrix = [&](std::size_t copy) {
    return PackedMatrix{type, kOutputs, kCols, matrix_bytes / (kOutputs / 16), weights.get() + copy * matrix_bytes};
  };
  std::printf("%-10s %-6s", level.name, kTypes[static_cast<int>(type)]);
  for (const int planes : {1, 2}) {
    const QuantizedRows many = x.rows(kRows, planes), one = x.rows(1, planes);
    const double many_s = best_seconds(6, [&] {
      level.many_rows(matrix(0), 0, kOutputs / 16, many, out.data(), kOutputs, scratch.get());
    });
    const double one_s = best_seconds(6, [&] {
      for (std::size_t copy = 0; copy < copies; ++copy) {
        level.one_row(matrix(copy), 0, kOutputs / 16, one, out.data(), kOutputs, scratch.get());
      }
    });
    const double gops = 2.0 * kRows * kOutputs * kCols * planes / many_s / 1e9;
    const double gb_per_s = static_cast<double>(matrix_bytes * copies) / one_s / 1e9;
    std::printf("   %d plane%s %6.0f GOPS %3.0f %%  %5.1f GB/s %3.0f %%", planes, planes == 1 ? " " : "s", gops,
                100 * gops / peaks.int8_gops, gb_per_s, 100 * gb_per_s / peaks.read_gb_per_s);
  }
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const KernelTable* levels[8];
  const int count = couplet::kernels::runnable_levels(levels);
  for (int i = 0; i < count; ++i) {
    const bool slow = std::string(levels[i]->name) == "reference";
    if (argc > 1 ? std::string(argv[1]) != levels[i]->name : slow) continue;
    const Peaks peaks = measure_peaks(*levels[i]);
    std::printf("%s: int8 peak %.0f GOPS, reads %.1f GB/s\n", levels[i]->name, peaks.int8_gops, peaks.read_gb_per_s);
    Activations x(*levels[i]);
    for (int type = static_cast<int>(WeightType::q4_0); type < couplet::kernels::kNumWeightTypes; ++type) {
      if (argc > 2 && std::string(argv[2]) != kTypes[type]) continue;
      measure(*levels[i], static_cast<WeightType>(type), x, peaks);
    }
  }
}
