#include "explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "terminal.h"

namespace couplet::cli {
namespace {

// A letter or digit that a text neither begins nor ends with, with or without the spaces around it.
char another_character(std::string_view text, std::string_view trimmed) {
  for (const char c : std::string_view("qzjxv"))
    if (!text.starts_with(c) && !text.ends_with(c) && !trimmed.starts_with(c) && !trimmed.ends_with(c)) return c;
  return 'k';  // four characters can't be all five
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n\v\f";
  const std::size_t first = std::min(text.find_first_not_of(kSpaces), text.size());
  return text.substr(first, text.find_last_not_of(kSpaces) + 1 - first);
}

// "arithmetic (42 % of it)".
std::string bound(const StageCost& cost, const MachinePeaks& peaks) {
  const bool arithmetic = cost.bound_by_arithmetic(peaks);
  const double share = arithmetic ? cost.of_compute_peak(peaks) : cost.of_memory_peak(peaks);
  return fmt::format("{} ({:.0f} % of it)", arithmetic ? "arithmetic" : "memory", share * 100);
}

}  // namespace

bool ExplainedRun::take(const StepView& view) {
  const StepRecord& record = view.record;
  reply.figures = view.figures;
  const bool is_decode = record.num_decode_rows > 0;
  if (!is_decode && record.num_prefill_rows == 0) return false;  // nothing ran: a cancelled request leaves
  (is_decode ? decode : prefill).add(record);
  records.push_back(record);
  if (view.event == nullptr || view.event->token < 0 || view.event->choice == nullptr) return false;
  if (!is_decode) {
    first = *view.event->choice;
    first_text = view.event->text;
    return true;
  }
  const TokenId in = steps.empty() ? first.id : steps.back().choice.id;
  steps.push_back({in, *view.event->choice, record.sequences[0].first_position, record.step_ms, std::string(view.event->text)});
  return false;
}

const TokenChoice& ExplainedRun::choice(int number) const {
  return number == 0 ? first : steps[static_cast<std::size_t>(number - 1)].choice;
}

int ExplainedRun::num_choices() const { return first.id < 0 ? 0 : 1 + static_cast<int>(steps.size()); }

std::string ExplainedRun::text_up_to(int number) const {
  std::string text = number > 0 ? first_text : "";
  for (int n = 1; n < number; ++n) text += steps[static_cast<std::size_t>(n - 1)].text;
  return text;
}

std::uint64_t ExplainedRun::positions_not_run_again() const {
  std::uint64_t positions = 0;
  for (const DecodeStep& step : steps) positions += static_cast<std::uint64_t>(step.position);
  return positions;
}

void find_own_tokens(const Tokenizer& tokenizer, const ChatPrompter& prompter, std::string_view system,
                     std::string_view text, Explanation& explanation) {
  const std::vector<TokenId>& prompt = explanation.prompt;
  const std::size_t num_bos =
      tokenizer.adds_bos() && !prompt.empty() && prompt[0] == tokenizer.bos_id() ? 1 : 0;
  if (!explanation.templated) {
    explanation.own_begin = num_bos;
    explanation.own_end = prompt.size();
    return;
  }
  const std::string_view trimmed = trim(text);
  std::string ours, other;
  try {
    const ChatTemplate& chat_template = *prompter.chat_template();
    ours = chat_template.render(prompter.one_turn(system, text));
    other = chat_template.render(prompter.one_turn(system, std::string(1, another_character(text, trimmed))));
  } catch (const Error&) {
    return;  // the prompt itself was rendered: only the marks are missing
  }
  const auto begin = static_cast<std::size_t>(
      std::mismatch(ours.begin(), ours.end(), other.begin(), other.end()).first - ours.begin());
  auto num_behind = static_cast<std::size_t>(
      std::mismatch(ours.rbegin(), ours.rend(), other.rbegin(), other.rend()).first - ours.rbegin());
  num_behind = std::min(num_behind, ours.size() - begin);
  const std::string_view own = std::string_view(ours).substr(begin, ours.size() - begin - num_behind);
  if (own.empty() || (own != text && own != trimmed)) return;

  // The tokens spell what was rendered, but for a BOS before it and characters of the user's that the
  // vocabulary lacks: what is before and behind the user's text tells where it is.
  std::string all;
  std::vector<std::size_t> ends;
  for (const TokenId id : prompt) {
    all += token_text(tokenizer, id);
    ends.push_back(all.size());
  }
  const std::string_view before = std::string_view(ours).substr(0, begin);
  const std::size_t bos_bytes = num_bos > 0 && !all.starts_with(before) ? ends[0] : 0;
  if (!std::string_view(all).substr(bos_bytes).starts_with(before) ||
      !all.ends_with(std::string_view(ours).substr(ours.size() - num_behind)))
    return;
  const std::size_t own_begin = bos_bytes + begin, own_end = all.size() - num_behind;
  if (own_begin >= own_end) return;
  explanation.own_begin =
      static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), own_begin) - ends.begin());
  explanation.own_end =
      static_cast<std::size_t>(std::lower_bound(ends.begin(), ends.end(), own_end) - ends.begin()) + 1;
}

std::string count(std::uint64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", grouped(number), number == 1 ? one : many);
}

// "9.2 G", "880 M".
std::string operations(double number) {
  const bool giga = number >= 1e9;
  const double value = number / (giga ? 1e9 : 1e6);
  return fmt::format("{:.{}f} {}", value, value < 10 ? 1 : 0, giga ? 'G' : 'M');
}

std::string per_byte(double number) { return fmt::format("{:.{}f}", number, number < 10 ? 1 : 0); }

std::string shaping(const SamplingOptions& sampling) {
  std::vector<std::string> parts;
  if (!sampling.logit_bias.empty())
    parts.push_back(fmt::format("a bias on {}", count(sampling.logit_bias.size(), "token", "tokens")));
  if (sampling.repetition_penalty != 1)
    parts.push_back(fmt::format("repetition penalty {:g}", sampling.repetition_penalty));
  if (sampling.presence_penalty != 0)
    parts.push_back(fmt::format("presence penalty {:g}", sampling.presence_penalty));
  if (sampling.frequency_penalty != 0)
    parts.push_back(fmt::format("frequency penalty {:g}", sampling.frequency_penalty));
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool is_greedy(const SamplingOptions& sampling) { return sampling.temperature < 1e-5F; }

std::string chosen_how(const Explanation& e, const TokenChoice& choice) {
  if (choice.forced) return e.chosen_by_user ? "your choice" : "given";
  if (!is_greedy(e.sampling))
    return fmt::format("drawn from {}", count(choice.num_kept, "candidate", "candidates"));
  if (shaping(e.sampling).empty()) return "the best one";
  const SamplingOptions& s = e.sampling;
  const bool penalized = s.repetition_penalty != 1 || s.presence_penalty != 0 || s.frequency_penalty != 0;
  return fmt::format("the best one after {}", s.logit_bias.empty() ? "penalties"
                                              : penalized          ? "bias and penalties"
                                                                   : "bias");
}

std::vector<ComparisonRow> comparison(const Explanation& e) {
  const StageCost &p = e.run.prefill, &d = e.run.decode;
  const Figures& figures = e.run.reply.figures;
  const auto steps = static_cast<std::uint64_t>(std::max(d.steps, 1));
  const auto rate = [](double per_s) { return grouped(static_cast<std::uint64_t>(per_s + 0.5)); };
  std::vector<ComparisonRow> rows = {
      {"what is known", "the whole prompt", "the prompt, the reply so far"},
      {"tokens / passes", fmt::format("{} / {}", grouped(p.rows), p.steps),
       fmt::format("{} / {}", grouped(d.rows), grouped(static_cast<std::uint64_t>(d.steps)))},
      {"time", milliseconds(p.ms), milliseconds(d.ms)},
      {"a token came after", figures.ttft_ms > 0 ? milliseconds(figures.ttft_ms) + ", the first" : "-",
       milliseconds(figures.tpot_ms()) + " each, the others"},
      {"tokens a second", rate(p.tokens_per_s()), rate(d.tokens_per_s())},
      {"weights read", fmt::format("{} for {}", amount(p.weights_bytes), count(p.rows, "token", "tokens")),
       fmt::format("{} for each token", amount(d.weights_bytes / steps))},
      {"operations a byte", per_byte(p.operations_per_byte()), per_byte(d.operations_per_byte())},
      {"the cache saved",
       fmt::format("{} of {}", grouped(static_cast<std::uint64_t>(figures.cached_tokens)),
                   count(e.prompt.size(), "position", "positions")),
       count(e.run.positions_not_run_again(), "position", "positions") + " run again"},
      {"bound by", bound(p, e.peaks), bound(d, e.peaks)}};
  if (d.steps == 0)
    for (std::size_t n = 1; n < rows.size(); ++n) rows[n].decode = "-";
  return rows;
}

std::vector<RooflinePoint> roofline_points(const Explanation& e) {
  std::vector<RooflinePoint> points;
  const auto add = [&](const StageCost& cost, char mark, const char* stage) {
    if (cost.steps > 0)
      points.push_back({mark, stage, cost.operations_per_byte(), cost.operations_per_s(), cost.above_peaks(e.peaks)});
  };
  add(e.run.prefill, 'P', "prefill");
  add(e.run.decode, 'D', "decode");
  return points;
}

std::string saved_by_cache(const Explanation& e) {
  const StageCost &before = e.run.prefill, &now = e.what_if->run.prefill;
  const Figures &first = e.run.reply.figures, &again = e.what_if->run.reply.figures;
  if (again.cached_tokens == 0)
    return fmt::format("the cache saved nothing: it keeps whole pages, and the prompt has {}",
                       count(e.prompt.size(), "position", "positions"));
  const std::uint64_t spared = before.operations() - std::min(now.operations(), before.operations());
  return fmt::format("the cache still had {} of {}: {} operations less, the first token after {}, not {}",
                     grouped(static_cast<std::uint64_t>(again.cached_tokens)),
                     count(e.prompt.size(), "prompt position", "prompt positions"),
                     operations(static_cast<double>(spared)), milliseconds(again.ttft_ms), milliseconds(first.ttft_ms));
}

}  // namespace couplet::cli
