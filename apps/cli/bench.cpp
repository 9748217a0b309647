// couplet bench: prefill and decode speed, held against the machine's two limits, which are measured first. With
// --requests it stays loaded and runs what lines on standard input ask for, so that others can take turns with it.

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands.h"
#include "couplet/machine.h"
#include "generate.h"
#include "json_lines.h"
#include "output_file.h"
#include "session.h"
#include "story/stage_cost.h"
#include "story/trace_writer.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

using Json = nlohmann::ordered_json;
using story::StageCost;

struct BenchOptions {
  CommonOptions common;
  std::vector<int> prefill = {128, 512, 2048};
  int decode = 64;
  std::vector<int> depth = {0, 512, 2048};
  std::vector<int> batch = {1, 8};
  int repeat = 3;
  bool requests = false;
  OutputFile trace{"--trace", ""};
  bool force = false;
};

struct Row {
  Stage what;
  int n;  // prompt length, or depth of decode
  int batch;
  StageCost cost;
};

bool read_options(Arguments arguments, BenchOptions& options) {
  CommandLine line("bench", "Measures prefill and decode speed; the best of the repeats counts.");
  options.common.add_to(line);
  constexpr int kMostPositions = 1 << 20, kMostSequences = 1024;
  const auto list = [&](const char* name, std::vector<int>& target, int least, int most,
                        const char* help) {
    line.option(name, "N,N", help, [&target, name, least, most](const std::string& text) {
      target = parse_list(name, text, least, most);
    });
  };
  list("--prefill", options.prefill, 1, kMostPositions, "Prompt lengths; default: 128,512,2048");
  line.integer("--decode", options.decode, 1, kMostPositions, "Tokens decoded; default: 64");
  list("--depth", options.depth, 0, kMostPositions, "Positions before the first decoded token; default: 0,512,2048");
  list("--batch", options.batch, 1, kMostSequences, "Sequences at once; default: 1,8");
  line.integer("--repeat", options.repeat, 1, 1000, "Repeats; default: 3");
  line.flag("--requests", options.requests,
            "Run only what lines on standard input ask for, once each, a JSON row in answer: \"prefill N BATCH\", "
            "\"decode DEPTH BATCH\" with numbers up to the greatest of the lists, or \"peaks\"");
  options.trace.add_to(line, "Write a trace of all runs that ui.perfetto.dev opens; writing it takes time from them");
  add_force(line, options.force);
  return line.parse(arguments);
}

int greatest(const std::vector<int>& values) { return *std::max_element(values.begin(), values.end()); }

class Bench {
 public:
  Bench(Engine& engine, const BenchOptions& options, story::TraceWriter* trace)
      : engine_(&engine), options_(&options), trace_(trace) {}

  StageCost once(Stage what, int n, int batch) {
    return what == Stage::prefill ? prefill(n, batch) : decode(n, batch);
  }

  StageCost best(Stage what, int n, int batch) {
    StageCost best;
    for (int i = 0; i < options_->repeat; ++i) {
      const StageCost cost = once(what, n, batch);
      if (i == 0 || cost.ms < best.ms) best = cost;
    }
    return best;
  }

 private:
  // A prompt of its own for each number: nothing is shared between sequences.
  std::vector<TokenId> prompt(int length, int number) const {
    std::vector<TokenId> ids;
    std::uint32_t state = static_cast<std::uint32_t>(number) * 2654435761U + 1;
    const auto vocab_size = static_cast<std::uint32_t>(engine_->checkpoint().tokenizer().vocab_size());
    for (int i = 0; i < length; ++i) {
      state = state * 1664525U + 1013904223U;
      ids.push_back(static_cast<TokenId>((state >> 8) % vocab_size));
    }
    return ids;
  }

  void submit(std::vector<TokenId> prompt, int max_tokens, bool use_prefix_cache) {
    Request request;
    request.prompt = std::move(prompt);
    request.sampling.temperature = 0;
    request.stop.max_tokens = max_tokens;
    request.stop.ignore_end = true;
    request.use_prefix_cache = use_prefix_cache;
    const auto length = static_cast<int>(request.prompt.size());
    const SubmitResult submitted = engine_->submit(std::move(request));
    if (submitted && trace_ != nullptr) trace_->submitted(submitted.id, length);
    if (!submitted) throw Error(ErrorKind::resource, "[bench] " + submitted.refusal);
  }

  // The cost of the steps whose rows are all of one stage.
  StageCost run(Stage stage) {
    StageCost cost;
    while (engine_->has_work()) {
      const std::span<const Event> events = engine_->step();
      const StepRecord& record = engine_->last_step();
      if (trace_ != nullptr) trace_->step(record, events);
      const int other = stage == Stage::prefill ? record.num_decode_rows : record.num_prefill_rows;
      if (other == 0) cost.add(record);
    }
    return cost;
  }

  StageCost prefill(int length, int batch) {
    for (int i = 0; i < batch; ++i) submit(prompt(length, i), 0, false);
    return run(Stage::prefill);
  }

  // The prompts' positions come from the prefix cache after the first repeat. One token is chosen by prefill.
  StageCost decode(int depth, int batch) {
    for (int i = 0; i < batch; ++i) submit(prompt(depth + 1, i), options_->decode + 1, true);
    return run(Stage::decode);
  }

  Engine* engine_;
  const BenchOptions* options_;
  story::TraceWriter* trace_;  // null: none
};

Json to_json(const Row& row, const EngineInfo& info, const MachinePeaks& peaks) {
  return {{"what", name(row.what)},
          {"n", row.n},
          {"batch", row.batch},
          {"threads", info.num_threads},
          {"kernels", info.kernels},
          {"tokens_per_s", row.cost.tokens_per_s()},
          {"gflops", row.cost.operations_per_s() / 1e9},
          {"gbytes_per_s", row.cost.bytes_per_s() / 1e9},
          {"of_compute_peak", row.cost.of_compute_peak(peaks)},
          {"of_memory_peak", row.cost.of_memory_peak(peaks)}};
}

void show(const Row& row, const MachinePeaks& peaks) {
  print(fmt::format("{:<8} {:>6} {:>6} {:>12.1f} {:>9.1f} {:>9.1f} {:>11} {:>10}\n", name(row.what), row.n,
                    row.batch, row.cost.tokens_per_s(), row.cost.operations_per_s() / 1e9,
                    row.cost.bytes_per_s() / 1e9, percent(row.cost.of_compute_peak(peaks)),
                    percent(row.cost.of_memory_peak(peaks))));
}

std::string describe(const EngineInfo& info, const MachinePeaks& peaks) {
  return fmt::format(
      "{} kernels, {} threads, precision {}; peaks: int8 {:.0f} G/s, float {:.0f} G/s, reading {} at {:.1f} "
      "GB/s",
      info.kernels, info.num_threads, name(info.precision), peaks.int8_operations_per_s / 1e9,
      peaks.float_operations_per_s / 1e9, amount(info.weights_bytes), peaks.read_bytes_per_s / 1e9);
}

void show_head(const EngineInfo& info, const MachinePeaks& peaks) {
  print(describe(info, peaks) + "\n\n");
  print(bold(fmt::format("{:<8} {:>6} {:>6} {:>12} {:>9} {:>9} {:>11} {:>10}", "what", "n", "batch",
                         "tokens_per_s", "gflops", "GB/s", "of compute", "of memory")) +
        "\n");
}

// The context given, else what the longest run needs; each run has to fit into it.
int checked_context(const BenchOptions& options, int longest, const CheckpointSummary& model) {
  const int given = options.common.engine.context;
  const int context = given > 0 ? given : model.context_length;
  const auto check = [&](const char* name, int value, int room, const std::string& of) {
    if (value > room)
      throw Error(ErrorKind::usage,
                  fmt::format("[options] {}: expected at most {} ({}), got {}", name, room, of, value));
  };
  const std::string of = fmt::format("the context holds {}", context);
  check("--prefill", greatest(options.prefill), context, of);
  check("--decode", options.decode, context - 1, of);
  check("--depth", greatest(options.depth), context - options.decode - 1,
        fmt::format("{} and --decode takes {}", of, options.decode + 1));
  return given > 0 ? given : longest;
}

// Room for all sequences of a batch and for what the prefix cache keeps of the one before.
EngineOptions engine_options(const BenchOptions& options, const Checkpoint& checkpoint) {
  const int longest = std::max(greatest(options.prefill), greatest(options.depth) + options.decode + 1);
  EngineOptions engine = options.common.engine;
  engine.max_sequences = greatest(options.batch);
  constexpr std::uint64_t kPage = 16;
  engine.context = checked_context(options, longest, checkpoint.summary());
  const std::uint64_t positions = 2 * static_cast<std::uint64_t>(engine.max_sequences) *
                                  (static_cast<std::uint64_t>(longest) + kPage);
  const std::uint64_t one_context = static_cast<std::uint64_t>(engine.context) + kPage;
  engine.cache_bytes = std::max(positions, one_context) *
                       checkpoint.cache_bytes_per_position(engine.cache_format, engine.precision);
  return engine;
}

MachinePeaks measure(const EngineInfo& info) {
  return measure_peaks(info.kernels, info.num_threads, info.weights_bytes);
}

Json to_json(const MachinePeaks& peaks) {
  return {{"what", "peaks"},
          {"int8_operations_per_s", peaks.int8_operations_per_s},
          {"float_operations_per_s", peaks.float_operations_per_s},
          {"read_bytes_per_s", peaks.read_bytes_per_s}};
}

// "prefill 512 1" or "decode 2048 8".
Row read_request(const std::string& text, const BenchOptions& options) {
  std::istringstream words(text);
  std::string what, n, batch, more;
  words >> what >> n >> batch;
  if (batch.empty() || words >> more || (what != "prefill" && what != "decode"))
    throw Error(ErrorKind::format, fmt::format("expected \"prefill N BATCH\", \"decode DEPTH BATCH\" or \"peaks\", got \"{}\"", text));
  const bool is_prefill = what == "prefill";
  const int most = greatest(is_prefill ? options.prefill : options.depth);
  return {is_prefill ? Stage::prefill : Stage::decode,
          static_cast<int>(parse_integer(is_prefill ? "N" : "DEPTH", n, is_prefill ? 1 : 0, most)),
          static_cast<int>(parse_integer("BATCH", batch, 1, greatest(options.batch))),
          {}};
}

void answer_requests(Bench& bench, const BenchOptions& options, const EngineInfo& info, MachinePeaks peaks) {
  LineReader reader("-");
  for (std::string line; reader.next(line); flush()) {
    if (line == "peaks") {
      peaks = measure(info);
      print(dump_line(to_json(peaks)));
      continue;
    }
    Row row = at_line("bench", reader.number(), [&] { return read_request(line, options); });
    row.cost = bench.once(row.what, row.n, row.batch);
    print(dump_line(to_json(row, info, peaks)));
  }
}

}  // namespace

int bench_command(Arguments arguments) {
  BenchOptions options;
  if (!read_options(arguments, options)) return 0;
  options.trace.check(options.force);
  const auto checkpoint = open_model(options.common);
  const auto engine = load_engine(checkpoint, engine_options(options, *checkpoint));
  const EngineInfo& info = engine->info();
  const MachinePeaks peaks = measure(info);
  const bool json = options.common.json || options.requests;
  if (json) {
    note(describe(info, peaks));
  } else {
    show_head(info, peaks);
  }
  flush();
  std::unique_ptr<story::TraceWriter> trace;
  if (options.trace.wanted()) trace = std::make_unique<story::TraceWriter>(options.trace.path, *engine, peaks);
  Bench bench(*engine, options, trace.get());
  if (options.requests) return answer_requests(bench, options, info, peaks), 0;
  const auto answer = [&](Stage what, int n, int sequences) {
    const Row row = {what, n, sequences, bench.best(what, n, sequences)};
    if (json) {
      print(dump_line(to_json(row, info, peaks)));
    } else {
      show(row, peaks);
    }
    flush();
  };
  for (const int sequences : options.batch)
    for (const int n : options.prefill) answer(Stage::prefill, n, sequences);
  for (const int sequences : options.batch)
    for (const int n : options.depth) answer(Stage::decode, n, sequences);
  if (trace && !trace->problem().empty()) throw Error(ErrorKind::io, trace->problem());
  return 0;
}

}  // namespace couplet::cli
