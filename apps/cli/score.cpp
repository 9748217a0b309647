// couplet score: the probability of given text, exact to the last bit whatever the schedule; the schedule can
// be forced, so that anyone may check that.

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "generate.h"
#include "json_lines.h"
#include "line_score.h"
#include "session.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ScoreOptions {
  CommonOptions common;
  std::optional<std::string> file;
  int top = 0;
  int chunk = 0;
  int decode_from = INT_MAX;
  int parallel = 1;
  bool cold = false;
};

// A line that runs.
struct Scoring {
  int number;
  LineScore score;
  RequestId id = 0;
  StopReason stop = StopReason::none;
  std::vector<std::pair<int, int>>
      steps;  // prefill rows and decode rows of each step that had a part of this line
};

bool read_options(Arguments arguments, ScoreOptions& options) {
  CommandLine line("score",
                   "Gives the probability of text: lines {\"ids\"} or {\"text\"}, optional \"want\": ids of "
                   "interest, a list a position.");
  constexpr int kMostChunkRows = 1 << 16;  // the engine's own bound
  options.common.add_to(line);
  line.positional("FILE", options.file, "JSON lines; - or none reads standard input");
  line.integer("--top", options.top, 0, INT_MAX, "The K best tokens at each position too");
  line.integer("--chunk", options.chunk, 1, kMostChunkRows, "Prompt rows in one step; default: 512");
  line.integer("--decode-from", options.decode_from, 1, INT_MAX, "Positions from N on, one decode step each");
  line.integer("--parallel", options.parallel, 1, 1024, "Lines in one batch; default: 1");
  line.flag("--cold", options.cold, "Take nothing from the prefix cache: said outright, for score computes every position anyway");
  return line.parse(arguments);
}

class Scorer {
 public:
  Scorer(Engine& engine, const ScoreOptions& options) : engine_(&engine), options_(&options) {}

  // Reads, runs and answers batch after batch. What is wrong with a line is thrown when the lines before it
  // are done.
  void run(LineReader& reader) {
    while (read_batch(reader)) {
      run_batch();
      for (const auto& scoring : batch_) answer(*scoring);
      flush();
      if (failure_) std::rethrow_exception(failure_);
    }
    if (failure_) std::rethrow_exception(failure_);
  }

  void show_perplexity() const {
    if (num_scored_ == 0) return print("nothing to score: a line needs two tokens\n");
    print(fmt::format("perplexity {:.4f} over {} tokens\n",
                      std::exp(-total_logprob_ / static_cast<double>(num_scored_)), grouped(num_scored_)));
  }

 private:
  bool read_batch(LineReader& reader) {
    batch_.clear();
    std::string line;
    try {
      while (static_cast<int>(batch_.size()) < options_->parallel && reader.next(line))
        at_line("score", reader.number(), [&] { submit(reader.number(), line); });
    } catch (const Error&) {
      failure_ = std::current_exception();
    }
    return !batch_.empty();
  }

  void submit(int number, const std::string& line) {
    const Tokenizer& tokenizer = engine_->checkpoint().tokenizer();
    ScoreLine asked = parse_score_line(line, engine_->checkpoint().summary().vocab_size);
    if (asked.text) asked.ids = tokenizer.tokenize(*asked.text, {.bos = true});
    if (asked.ids.empty()) throw Error(ErrorKind::format, "text: expected at least one token, got none");
    if (asked.has_want && asked.want.size() != asked.ids.size())
      throw Error(ErrorKind::format, fmt::format("want: expected a list for each of {} positions, got {}",
                                                 asked.ids.size(), asked.want.size()));
    auto scoring = std::make_unique<Scoring>(
        Scoring{number, {asked.ids, std::move(asked.want), options_->top}, {}, {}, {}});
    Request request;
    const std::size_t prefilled = std::min(asked.ids.size(), static_cast<std::size_t>(options_->decode_from));
    const auto middle = asked.ids.begin() + static_cast<std::ptrdiff_t>(prefilled);
    request.prompt.assign(asked.ids.begin(), middle);
    request.forced.assign(middle, asked.ids.end());
    request.sampling.temperature = 0;
    request.stop.max_tokens = static_cast<int>(request.forced.size());
    request.stop.ignore_end = true;
    request.use_prefix_cache = !options_->cold;
    request.on_logits = [score = &scoring->score](int position, std::span<const float> logits) {
      score->take(position, logits);
    };
    const SubmitResult submitted = engine_->submit(std::move(request));
    if (!submitted) throw Error(ErrorKind::resource, submitted.refusal);
    scoring->id = submitted.id;
    batch_.push_back(std::move(scoring));
  }

  void run_batch() {
    while (engine_->has_work()) {
      for (const Event& event : engine_->step()) {
        if (event.stop != StopReason::none) find(event.id)->stop = event.stop;
      }
      const StepRecord& record = engine_->last_step();
      for (const SequenceStep& part : record.sequences)
        find(part.id)->steps.emplace_back(record.num_prefill_rows, record.num_decode_rows);
    }
  }

  Scoring* find(RequestId id) {
    return std::find_if(batch_.begin(), batch_.end(), [&](const auto& one) { return one->id == id; })->get();
  }

  void answer(const Scoring& scoring) {
    if (is_failure(scoring.stop) || !scoring.score.complete())
      throw Error(ErrorKind::resource,
                  fmt::format("[score] line {}: {}", scoring.number, describe(scoring.stop)));
    if (options_->common.json) {
      print(dump_line(to_json(scoring)));
    } else {
      show(scoring);
    }
  }

  Json to_json(const Scoring& scoring) const {
    const EngineInfo& info = engine_->info();
    const LineScore& score = scoring.score;
    Json json = {{"ids", score.ids()}, {"next_logprob", score.next_logprob()}};
    if (options_->top > 0) {
      json["top_ids"] = score.top_ids();
      json["top_logprobs"] = score.top_logprobs();
    }
    if (!score.want_logprobs().empty()) json["want_logprobs"] = score.want_logprobs();
    json["hash"] = score.hash();
    json["numerics"] = info.numerics_version;
    json["precision"] = name(info.precision);
    json["cache_format"] = name(info.cache_format);
    if (const std::string& mix = engine_->checkpoint().summary().quantized_as; !mix.empty()) json["quantize"] = mix;
    json["kernels"] = info.kernels;
    json["threads"] = info.num_threads;
    json["steps"] = scoring.steps;
    return json;
  }

  void show(const Scoring& scoring) {
    const Tokenizer& tokenizer = engine_->checkpoint().tokenizer();
    const LineScore& score = scoring.score;
    const auto text = [&](TokenId id) { return "\"" + visible(token_text(tokenizer, id)) + "\""; };
    print(bold(fmt::format("{:>8} {:>8}  {} {:>9} {:>8}", "position", "id", fit("token", 20), "log p", "p")) +
          "\n");
    double sum = 0;
    for (std::size_t n = 0; n < score.ids().size(); ++n) {
      std::string row = fmt::format("{:>8} {:>8}  {}", n, score.ids()[n], fit(text(score.ids()[n]), 20));
      if (n > 0) {
        const double logprob = score.next_logprob()[n - 1];
        sum += logprob;
        row += fmt::format(" {:>9.4f} {:>8}", logprob, percent(std::exp(logprob)));
      }
      print(row + "\n");
      if (n < score.top_ids().size()) show_top(score.top_ids()[n], score.top_logprobs()[n]);
    }
    const std::size_t count = score.next_logprob().size();
    print(fmt::format("line {}: {} tokens", scoring.number, score.ids().size()));
    if (count > 0) print(fmt::format(", perplexity {:.4f}", std::exp(-sum / static_cast<double>(count))));
    print(fmt::format(", hash {}\n\n", score.hash()));
    total_logprob_ += sum;
    num_scored_ += count;
  }

  void show_top(const std::vector<TokenId>& ids, const std::vector<double>& logprobs) const {
    std::string row = "                   then";
    for (std::size_t i = 0; i < ids.size(); ++i)
      row += fmt::format("  \"{}\" {}", visible(token_text(engine_->checkpoint().tokenizer(), ids[i])),
                         percent(std::exp(logprobs[i])));
    print(row + "\n");
  }

  Engine* engine_;
  const ScoreOptions* options_;
  std::vector<std::unique_ptr<Scoring>> batch_;
  std::exception_ptr failure_;
  double total_logprob_ = 0;
  std::uint64_t num_scored_ = 0;
};

}  // namespace

int score_command(Arguments arguments) {
  ScoreOptions options;
  if (!read_options(arguments, options)) return 0;
  LineReader reader(options.file.value_or("-"));
  EngineOptions engine_options = options.common.engine;
  if (options.chunk > 0) engine_options.chunk_rows = options.chunk;
  engine_options.max_sequences = options.parallel;
  const auto engine = load_engine(open_model(options.common), engine_options);
  Scorer scorer(*engine, options);
  scorer.run(reader);
  if (!options.common.json) scorer.show_perplexity();
  return 0;
}

}  // namespace couplet::cli
