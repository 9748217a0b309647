#include "explain_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "roofline.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

constexpr int kIndent = 10;
constexpr int kGreatestWidth = 120;     // longer lines are hard to read
constexpr std::size_t kFirstRows = 24;  // of a long reply's decode steps
constexpr std::size_t kLastRows = 8;
constexpr std::size_t kPromptRows = 8;  // of a long prompt's pieces
constexpr int kTokenWidth = 10, kOthersWidth = 16, kLeastReplyWidth = 8;
constexpr int kComfortable = 80;  // columns; on fewer the other candidates get fewer

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

std::string bound(const StageCost& cost, const MachinePeaks& peaks) {
  const bool arithmetic = cost.bound_by_arithmetic(peaks);
  const double share = arithmetic ? cost.of_compute_peak(peaks) : cost.of_memory_peak(peaks);
  return fmt::format("{} ({:.0f} % of it)", arithmetic ? "arithmetic" : "memory", share * 100);
}

std::string heading(std::string_view word) { return bold(fit(word, kIndent)); }

// `left`, and `right` at the end of the line.
std::string spread(std::string_view left, std::string_view right, int width) {
  return std::string(left) + pad_left(right, std::max(width - display_width(left), display_width(right) + 2));
}

}  // namespace

void find_own_tokens(const Tokenizer& tokenizer, std::string_view text, Explanation& explanation) {
  std::string all;
  std::vector<std::size_t> ends;
  for (const TokenId id : explanation.prompt) {
    all += token_text(tokenizer, id);
    ends.push_back(all.size());
  }
  std::size_t begin = all.rfind(text);
  if (begin == std::string::npos) {  // templates often trim
    constexpr std::string_view kSpaces = " \t\r\n";
    const std::size_t first = std::min(text.find_first_not_of(kSpaces), text.size());
    text = text.substr(first, text.find_last_not_of(kSpaces) + 1 - first);
    begin = text.empty() ? std::string::npos : all.rfind(text);
  }
  if (begin == std::string::npos) return;
  const std::size_t end = begin + text.size();
  explanation.own_begin =
      static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
  explanation.own_end =
      static_cast<std::size_t>(std::lower_bound(ends.begin(), ends.end(), end) - ends.begin()) + 1;
}

ExplainView::ExplainView(const Engine& engine, const Explanation& explanation)
    : engine_(&engine),
      tokenizer_(&engine.checkpoint().tokenizer()),
      explanation_(&explanation),
      width_(std::min(line_width(), kGreatestWidth)) {}

void ExplainView::line(std::string_view text) const {
  print(std::string(kIndent, ' ') + std::string(text) + "\n");
}

void ExplainView::show_prompt() const {
  const Explanation& e = *explanation_;
  const std::size_t own = e.own_end - e.own_begin, added = e.prompt.size() - own;
  std::string text = count(e.prompt.size(), "token", "tokens");
  if (own > 0) text += fmt::format(": {} {} yours", grouped(own), own == 1 ? "is" : "are");
  if (own > 0 && added > 0 && !e.templated)
    text += fmt::format(", {} marks the beginning of a text", grouped(added));
  if (own > 0 && added > 0 && e.templated)
    text += fmt::format(", {} come from the chat template{}", grouped(added),
                        e.has_system ? " and the system prompt" : "");
  print(heading("PROMPT") + text + "\n");
  const std::size_t begin = own > 0 ? e.own_begin : 0, end = own > 0 ? e.own_end : e.prompt.size();
  show_pieces(std::span(e.prompt).subspan(begin, end - begin));
  print("\n");
}

// Piece|by|piece, over a few lines.
void ExplainView::show_pieces(std::span<const TokenId> ids) const {
  std::vector<std::string> rows(1);
  std::vector<std::size_t> first = {0};  // id of each row
  for (std::size_t n = 0; n < ids.size(); ++n) {
    const std::string piece = visible(token_text(*tokenizer_, ids[n])) + (n + 1 < ids.size() ? "|" : "");
    if (!rows.back().empty() && display_width(rows.back()) + display_width(piece) > width_ - kIndent) {
      rows.emplace_back();
      first.push_back(n);
    }
    rows.back() += piece;
  }
  const bool all = rows.size() <= kPromptRows;
  for (std::size_t n = 0; n < (all ? rows.size() : kPromptRows - 1); ++n) line(rows[n]);
  if (!all) line(dim(fmt::format("... {} more", grouped(ids.size() - first[kPromptRows - 1]))));
}

void ExplainView::show_prefill() const {
  const Explanation& e = *explanation_;
  const StageCost& cost = e.prefill;
  const std::string passes = cost.steps == 1 ? "one pass" : fmt::format("{} passes", cost.steps);
  const std::string what =
      fmt::format("{} in {}, each seeing those before it", count(cost.rows, "position", "positions"), passes);
  print(heading("PREFILL") + spread(what, milliseconds(cost.ms), width_ - kIndent) + "\n");
  const std::string work =
      fmt::format("weights read {} ({}), {} operations, {} a byte:",
                  cost.steps == 1 ? "once" : fmt::format("{} times", cost.steps), amount(cost.weights_bytes),
                  operations(static_cast<double>(cost.operations())), per_byte(cost.operations_per_byte()));
  const std::string limit = cost.bound_by_arithmetic(e.peaks) ? "bound by arithmetic" : "bound by memory";
  const bool fits = display_width(work) + display_width(limit) + 1 <= width_ - kIndent;
  line(work + (fits ? " " + limit : ""));
  if (!fits) line(limit);
  if (e.first.id < 0) {
    line("no token was asked for");
    return print("\n");
  }
  show_distribution();
  show_choice();
  print("\n");
  flush();
}

void ExplainView::show_distribution() const {
  const TokenChoice& first = explanation_->first;
  const auto vocab_size = static_cast<std::size_t>(engine_->checkpoint().summary().vocab_size);
  line(fmt::format("every one of {} tokens gets a probability", grouped(vocab_size)));
  constexpr int kNameWidth = 20;
  const int bar_width = std::max(width_ - kIndent - kNameWidth - 14, 0);
  double rest = 1, greatest = 0;
  for (const Alternative& one : first.alternatives)
    greatest = std::max(greatest, std::exp(double{one.log_probability}));
  for (const Alternative& one : first.alternatives) {
    const double p = std::exp(double{one.log_probability});
    rest -= p;
    const std::string bars = bar(greatest > 0 ? p / greatest : 0, bar_width);
    line(fmt::format("  {} {:>8}  {}", fit(out_text(one.id), kNameWidth), percent(p), bars));
  }
  const std::size_t others = vocab_size - first.alternatives.size();
  line(fmt::format("  {} {:>8}  entropy {:.1f} bits",
                   fit(fmt::format("({} others)", grouped(others)), kNameWidth), percent(std::max(rest, 0.0)),
                   first.entropy / std::numbers::ln2));
}

void ExplainView::show_choice() const {
  const Explanation& e = *explanation_;
  const std::string after = fmt::format("first token after {}", milliseconds(e.reply.figures.ttft_ms));
  const std::string text = out_text(e.first.id);
  const std::string chosen =
      is_end(*tokenizer_, e.first.id) ? "chosen: " + text : fmt::format("chosen: \"{}\"", text);
  if (e.sampling.temperature == 0) return line(spread(chosen + ", the best one", after, width_ - kIndent));
  line(spread(fmt::format("{}, drawn from {}", chosen, count(e.first.num_kept, "candidate", "candidates")),
              after, width_ - kIndent));
  line(fmt::format("        with {} at temperature {:g}, top-p {:g}{}{}, seed {}",
                   percent(std::exp(double{e.first.shaped_log_probability})), e.sampling.temperature,
                   e.sampling.top_p, e.sampling.top_k > 0 ? fmt::format(", top-k {}", e.sampling.top_k) : "",
                   e.sampling.min_p > 0 ? fmt::format(", min-p {:g}", e.sampling.min_p) : "",
                   e.sampling.seed));
}

std::string ExplainView::out_text(TokenId id) const {
  return is_end(*tokenizer_, id) ? "(end)" : visible(token_text(*tokenizer_, id));
}

std::string ExplainView::others(const TokenChoice& choice, int width) const {
  constexpr double kLeastShown = 0.01;
  std::string text;
  for (const Alternative& one : choice.alternatives) {
    const double p = std::exp(double{one.log_probability});
    if (one.id == choice.id || p < kLeastShown) continue;
    const std::string next = fmt::format("{}{} {:.0f}", text.empty() ? "" : "  ", out_text(one.id), p * 100);
    if (display_width(text) + display_width(next) > width) break;
    text += next;
  }
  return text;
}

int ExplainView::others_width() const {
  return std::clamp(kOthersWidth + width_ - kComfortable, 0, kOthersWidth);
}

std::string ExplainView::step_row(std::string_view reply) const {
  const Explanation& e = *explanation_;
  const DecodeStep& step = e.steps.back();
  const std::string row = fmt::format(
      "  {:>5}  {} {} {:>4.0f} %  {} {:>7}  ", e.steps.size(), fit(out_text(step.in), kTokenWidth),
      fit(out_text(step.choice.id), kTokenWidth), std::exp(double{step.choice.log_probability}) * 100,
      fit(others(step.choice, others_width()), others_width()), fmt::format("{:.1f}", step.ms));
  const std::string shown = is_end(*tokenizer_, step.choice.id) ? "" : visible(reply);
  std::string line = row + fit_end(shown, std::max(width_ - display_width(row), kLeastReplyWidth));
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

void ExplainView::show_step(std::string_view reply) {
  const std::size_t number = explanation_->steps.size();
  if (number == 1) {
    print(heading("DECODE") + "one token a pass, each fed back\n");
    print(dim(fmt::format("  {:>5}  {} {} {:>6}  {} {:>7}  reply so far", "step", fit("in", kTokenWidth),
                          fit("out", kTokenWidth), "p",
                          fit(others_width() > 0 ? "others, %" : "", others_width()), "ms")) +
          "\n");
  }
  // Only the end of the text is shown; making all of it visible in each step would take quadratic time.
  const auto tail = static_cast<std::size_t>(4 * width_);
  if (reply.size() > tail) {
    reply.remove_prefix(reply.size() - tail);
    while (!reply.empty() && utf8_length(reply) == 0) reply.remove_prefix(1);
  }
  std::string row = step_row(reply);
  if (number <= kFirstRows) {
    print(row);
    return flush();
  }
  held_rows_.push_back(std::move(row));
  if (held_rows_.size() > kLastRows) {
    held_rows_.pop_front();
    ++num_left_out_;
  }
}

void ExplainView::show_end() {
  const Explanation& e = *explanation_;
  if (num_left_out_ > 0)
    print(dim(fmt::format("  {:>5}  {} left out here", "...", count(num_left_out_, "step", "steps"))) + "\n");
  for (const std::string& row : held_rows_) print(row);
  const auto tokens = static_cast<std::uint64_t>(e.reply.figures.completion_tokens);
  line(fmt::format("stopped: {} after {}", describe(e.reply.stop), count(tokens, "token", "tokens")));
  print("\n");
  show_comparison();
  print("\n");
  show_roofline();
}

void ExplainView::show_comparison() const {
  const Explanation& e = *explanation_;
  const StageCost &p = e.prefill, &d = e.decode;
  const bool decoded = d.steps > 0;
  constexpr int kNameWidth = 20, kColumnWidth = 26;
  const auto row = [&](std::string_view name, std::string_view prefill, std::string_view decode) {
    print(fmt::format("{}{}{}\n", fit(name, kNameWidth), fit(prefill, kColumnWidth), decode));
  };
  const auto decode = [&](std::string text) { return decoded ? text : std::string("-"); };
  const auto rate = [](double per_s) { return grouped(static_cast<std::uint64_t>(per_s + 0.5)); };
  const std::string passes = fmt::format("{} / {}", grouped(p.rows), p.steps);
  print(std::string(kNameWidth, ' ') + bold(fit("prefill", kColumnWidth)) + bold("decode") + "\n");
  row("what is known", "the whole prompt", "the prompt, the reply so far");
  row("tokens / passes", passes,
      decode(fmt::format("{} / {}", grouped(d.rows), grouped(static_cast<std::uint64_t>(d.steps)))));
  row("time", milliseconds(p.ms),
      decode(fmt::format("{}, {:.1f} a token", milliseconds(d.ms), d.ms / std::max(d.steps, 1))));
  row("tokens a second", rate(p.tokens_per_s()), decode(rate(d.tokens_per_s())));
  row("weights read", fmt::format("{} for {}", amount(p.weights_bytes), count(p.rows, "token", "tokens")),
      decode(fmt::format("{} for each token",
                         amount(d.weights_bytes / static_cast<std::uint64_t>(std::max(d.steps, 1))))));
  row("operations a byte", per_byte(p.operations_per_byte()), decode(per_byte(d.operations_per_byte())));
  row("bound by", bound(p, e.peaks), decode(bound(d, e.peaks)));
}

void ExplainView::show_roofline() const {
  const Explanation& e = *explanation_;
  std::vector<RooflinePoint> points = {{'P', e.prefill.operations_per_byte(), e.prefill.operations_per_s()}};
  if (e.decode.steps > 0)
    points.push_back({'D', e.decode.operations_per_byte(), e.decode.operations_per_s()});
  const Roof roof = {e.peaks.int8_operations_per_s, e.peaks.read_bytes_per_s};
  print(fmt::format("The machine's roof, measured: {:.0f} G op/s ({}, {}), memory {:.1f} GB/s\n",
                    roof.operations_per_s / 1e9, engine_->info().kernels,
                    count(static_cast<std::uint64_t>(engine_->info().num_threads), "thread", "threads"),
                    roof.bytes_per_s / 1e9));
  for (const std::string& row : draw_roofline(roof, points, width_)) print(row + "\n");
  print(fmt::format("         P prefill{}; nothing gets above / (memory) and - (arithmetic)\n",
                    e.decode.steps > 0 ? ", D decode" : ""));
}

}  // namespace couplet::cli
