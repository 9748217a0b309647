#include "inspect_machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/cpu_features.h"
#include "couplet/machine.h"
#include "generate.h"
#include "session.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Cache {
  int level = 0;
  std::string kind;  // "Data", "Instruction", "Unified"
  std::uint64_t bytes = 0;
  std::string cpus;  // that share it: "0-1"
};

struct Machine {
  std::string cpu;
  std::vector<std::pair<std::string, bool>> features;
  std::vector<KernelLevel> levels;
  std::string chosen, forced;  // forced: what COUPLET_KERNELS says
  int online_cpus = 0, affinity_cpus = 0, num_threads = 0;
  double quota_cpus = 0;
  std::uint64_t memory_bytes = 0, available_bytes = 0;
  std::vector<Cache> caches;
  std::uint64_t read_bytes = 0;  // by the peaks
  MachinePeaks peaks, one_thread;
};

// The first processor's, as the system tells them; none where it does not.
std::vector<Cache> read_caches() {
  std::vector<Cache> caches;
  for (int index = 0;; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    Cache cache;
    std::uint64_t kib = 0;
    std::ifstream(folder + "level") >> cache.level;
    std::ifstream(folder + "type") >> cache.kind;
    std::ifstream(folder + "size") >> kib;  // "32K"
    std::ifstream(folder + "shared_cpu_list") >> cache.cpus;
    if (cache.level == 0) return caches;
    cache.bytes = kib * 1024;
    caches.push_back(std::move(cache));
  }
}

// So much of memory is read for the peaks where no model says how much; less where less is free.
std::uint64_t bytes_to_read(const CommonOptions& options) {
  if (!options.model.empty()) return open_checkpoint(options)->summary().weights_bytes;
  constexpr std::uint64_t kBeyondCaches = 512U << 20;
  return std::min<std::uint64_t>(kBeyondCaches, available_memory_bytes() / 4);
}

Machine look(const CommonOptions& options) {
  Machine m;
  const CpuFeatures& found = cpu_features();
  m.cpu = cpu_name();
  m.features = {{"AVX2 with FMA and F16C", found.avx2},
                {"AVX-VNNI", found.avx_vnni},
                {"AVX-512 with VNNI", found.avx512},
                {"AMX-INT8", found.amx_int8}};
  m.levels = kernel_levels();
  m.chosen = chosen_level();
  if (const char* forced = std::getenv("COUPLET_KERNELS")) m.forced = forced;
  m.online_cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  m.affinity_cpus = affinity_cpus();
  m.quota_cpus = quota_cpus();
  m.num_threads = usable_cpus();
  if (options.engine.num_threads > 0) m.num_threads = std::min(m.num_threads, options.engine.num_threads);
  m.memory_bytes =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  m.available_bytes = available_memory_bytes();
  m.caches = read_caches();
  m.read_bytes = bytes_to_read(options);
  m.peaks = measure_peaks(m.chosen, m.num_threads, m.read_bytes);
  m.one_thread = m.num_threads == 1 ? m.peaks : measure_peaks(m.chosen, 1, m.read_bytes);
  return m;
}

Json to_json(const MachinePeaks& peaks, int num_threads) {
  return {{"threads", num_threads},
          {"int8_operations_per_s", peaks.int8_operations_per_s},
          {"float_operations_per_s", peaks.float_operations_per_s},
          {"read_bytes_per_s", peaks.read_bytes_per_s}};
}

Json to_json(const Machine& m) {
  Json json = {{"cpu", m.cpu}};
  for (const auto& [feature, found] : m.features) json["features"][feature] = found;
  for (const KernelLevel& level : m.levels)
    json["levels"].push_back({{"name", level.name}, {"needs", level.needs}, {"runs", level.runs}});
  json["chosen"] = m.chosen;
  json["forced"] = m.forced.empty() ? Json(nullptr) : Json(m.forced);
  json["cpus"] = {{"online", m.online_cpus},
                  {"affinity", m.affinity_cpus},
                  {"quota", m.quota_cpus > 0 ? Json(m.quota_cpus) : Json(nullptr)},
                  {"threads", m.num_threads}};
  json["memory"] = {{"total_bytes", m.memory_bytes}, {"available_bytes", m.available_bytes}};
  json["caches"] = Json::array();
  for (const Cache& c : m.caches)
    json["caches"].push_back({{"level", c.level}, {"kind", c.kind}, {"bytes", c.bytes}, {"cpus", c.cpus}});
  json["peaks"] = {{"read_bytes", m.read_bytes},
                   {"all", to_json(m.peaks, m.num_threads)},
                   {"one", to_json(m.one_thread, 1)}};
  return json;
}

void row(std::string_view name, const std::string& text) {
  print(fmt::format("{} {}\n", bold(fit(name, 10)), text));
}

std::string joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ", "));
}

void show_levels(const Machine& m) {
  const bool forced = !m.forced.empty();
  row("level",
      fmt::format("{}, {}", m.chosen, forced ? "as COUPLET_KERNELS says" : "the best that runs here"));
  std::vector<std::string> others;
  for (const KernelLevel& level : m.levels) {
    if (level.runs && level.name != m.chosen) others.push_back(level.name);
    if (!level.runs) row("", fmt::format("not {}: needs {}", level.name, level.needs));
  }
  if (!others.empty()) row("", "could run: " + joined(others));
}

void show_peaks(const MachinePeaks& peaks, int num_threads, std::uint64_t bytes, std::string_view name) {
  row(name, fmt::format("{} thread{}: int8 {:.0f} G/s, float {:.0f} G/s, reads {} at {:.1f} GB/s",
                        num_threads, num_threads == 1 ? "" : "s", peaks.int8_operations_per_s / 1e9,
                        peaks.float_operations_per_s / 1e9, amount(bytes), peaks.read_bytes_per_s / 1e9));
}

void show(const Machine& m) {
  std::vector<std::string> have, lack, caches;
  for (const auto& [feature, found] : m.features) (found ? have : lack).push_back(feature);
  for (const Cache& c : m.caches)
    caches.push_back(fmt::format("L{}{} {} KiB", c.level,
                                 c.kind == "Data"          ? "d"
                                 : c.kind == "Instruction" ? "i"
                                                           : "",
                                 c.bytes / 1024));
  row("cpu", visible(m.cpu));
  row("has", have.empty() ? "none of what the levels use" : joined(have));
  if (!lack.empty()) row("lacks", joined(lack));
  show_levels(m);
  row("cpus", fmt::format("{} online, {} by affinity, {}: {} thread{}", m.online_cpus, m.affinity_cpus,
                          m.quota_cpus > 0 ? fmt::format("a quota of {:g}", m.quota_cpus) : "no quota",
                          m.num_threads, m.num_threads == 1 ? "" : "s"));
  row("memory",
      fmt::format("{}, of which {} may be used", amount(m.memory_bytes), amount(m.available_bytes)));
  row("caches", caches.empty() ? "unknown" : joined(caches));
  show_peaks(m.peaks, m.num_threads, m.read_bytes, "peaks");
  if (m.num_threads > 1) show_peaks(m.one_thread, 1, m.read_bytes, "");
}

}  // namespace

void inspect_machine(const CommonOptions& options) {
  const Machine machine = look(options);
  if (options.json) {
    print(dump_line(to_json(machine)));
  } else {
    show(machine);
  }
}

}  // namespace couplet::cli
