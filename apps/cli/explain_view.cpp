#include "explain_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "roofline.h"
#include "session.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

constexpr int kIndent = 10;
constexpr int kGreatestWidth = 120;     // longer lines are hard to read
constexpr std::size_t kFirstRows = 24;  // of a long reply's decode steps
constexpr std::size_t kLastRows = 8;
constexpr std::size_t kPromptRows = 8;  // of a long prompt's pieces
constexpr int kTokenWidth = 10, kOthersWidth = 16;
constexpr int kComfortable = 80;  // columns; on fewer the other candidates get fewer
constexpr int kRoomy = 64;        // on fewer the tables are drawn for narrow lines

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

std::string without_end_spaces(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

// `text` over lines of at most `width` columns, broken at spaces; those behind the first are indented.
std::string wrapped(std::string_view text, int indent, int width) {
  std::string shown;
  while (display_width(text) > width) {
    std::size_t end = text.find(' ');
    for (std::size_t next = end; next != std::string_view::npos && display_width(text.substr(0, next)) <= width;
         next = text.find(' ', next + 1))
      end = next;
    const std::string row = without_end_spaces(std::string(text.substr(0, end)));
    shown += display_width(row) > width ? fit(row, width) : row;
    if (end == std::string_view::npos) return shown;
    text.remove_prefix(std::min(text.find_first_not_of(' ', end), text.size()));
    shown += "\n" + std::string(static_cast<std::size_t>(indent), ' ');
  }
  return shown + std::string(text);
}

// At most six columns.
std::string short_percent(double share) {
  if (share < 0.0005) return "<0.1 %";
  return share < 0.0995 ? percent(share) : fmt::format("{:.0f} %", share * 100);
}

// The settings that move a token's place among the others; empty: all are off.
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

}  // namespace

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

ExplainView::ExplainView(const Engine& engine, const Explanation& explanation)
    : engine_(&engine),
      tokenizer_(&engine.checkpoint().tokenizer()),
      explanation_(&explanation),
      width_(std::min(line_width(), kGreatestWidth)) {}

void ExplainView::line(std::string_view text) const {
  print(std::string(kIndent, ' ') + without_end_spaces(wrapped(text, kIndent, width_ - kIndent)) + "\n");
}

// `left`, and `right` at the end of its line, or below where both don't fit.
void ExplainView::show_first(std::string_view head, std::string_view left, std::string_view right) const {
  const int width = width_ - kIndent, missing = width - display_width(left);
  const bool fits = missing >= display_width(right) + 2;
  print(std::string(head) + wrapped(left, kIndent, width) + (fits ? pad_left(right, missing) : "") + "\n");
  if (!fits) line(right);
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
  print(heading("PROMPT") + wrapped(text, kIndent, width_ - kIndent) + "\n");
  const std::size_t begin = own > 0 ? e.own_begin : 0, end = own > 0 ? e.own_end : e.prompt.size();
  show_pieces(std::span(e.prompt).subspan(begin, end - begin));
  print("\n");
}

// Piece|by|piece, over a few lines.
void ExplainView::show_pieces(std::span<const TokenId> ids) const {
  std::vector<std::string> rows(1);
  std::vector<std::size_t> first = {0};  // id of each row
  for (std::size_t n = 0; n < ids.size(); ++n) {
    std::string piece = visible(token_text(*tokenizer_, ids[n])) + (n + 1 < ids.size() ? "|" : "");
    if (display_width(piece) > width_ - kIndent) piece = fit(piece, width_ - kIndent);
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
  if (cost.steps == 0) {
    print(heading("PREFILL") + "did not run\n\n");
    return;
  }
  show_first(heading("PREFILL"), what, milliseconds(cost.ms));
  const std::string work =
      fmt::format("weights read {} ({}), {} operations, {} a byte:",
                  cost.steps == 1 ? "once" : fmt::format("{} times", cost.steps), amount(cost.weights_bytes),
                  operations(static_cast<double>(cost.operations())), per_byte(cost.operations_per_byte()));
  const std::string limit = cost.bound_by_arithmetic(e.peaks) ? "bound by arithmetic" : "bound by memory";
  const bool fits = display_width(work) + display_width(limit) + 1 <= width_ - kIndent;
  line(work + (fits ? " " + limit : ""));
  if (!fits) line(limit);
  if (e.first.id < 0) {
    line(e.reply.stop == StopReason::max_tokens ? "no token was asked for"
                                                : "no token: " + describe(e.reply.stop));
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
  const int name_width = is_narrow() ? 16 : 20;
  const int bar_width = std::max(width_ - kIndent - name_width - 14, 0);
  double rest = 1, greatest = 0;
  for (const Alternative& one : first.alternatives)
    greatest = std::max(greatest, std::exp(double{one.log_probability}));
  for (const Alternative& one : first.alternatives) {
    const double p = std::exp(double{one.log_probability});
    rest -= p;
    const std::string bars = bar(greatest > 0 ? p / greatest : 0, bar_width);
    line(fmt::format("  {} {:>8}  {}", fit(out_text(one.id), name_width), percent(p), bars));
  }
  const std::size_t others = vocab_size - first.alternatives.size();
  const std::string row = fmt::format("  {} {:>8}", fit(fmt::format("({} others)", grouped(others)), name_width),
                                      percent(std::max(rest, 0.0)));
  const std::string entropy = fmt::format("  entropy {:.1f} bits", first.entropy / std::numbers::ln2);
  const bool fits = display_width(row + entropy) <= width_ - kIndent;
  line(fits ? row + entropy : row);
  if (!fits) line(entropy);
}

void ExplainView::show_choice() const {
  const Explanation& e = *explanation_;
  const std::string after = fmt::format("first token after {}", milliseconds(e.reply.figures.ttft_ms));
  const std::string text = out_text(e.first.id);
  const std::string chosen =
      is_end(*tokenizer_, e.first.id) ? "chosen: " + text : fmt::format("chosen: \"{}\"", text);
  const std::string indent(kIndent, ' ');
  show_first(indent, chosen + ", " + chosen_how(), after);
  const std::string shaped = shaping(e.sampling);
  if (!is_greedy(e.sampling))
    line(fmt::format("        with {} at temperature {:g}, top-p {:g}{}{}, seed {}",
                     percent(std::exp(double{e.first.shaped_log_probability})), e.sampling.temperature,
                     e.sampling.top_p,
                     e.sampling.top_k > 0 ? fmt::format(", top-k {}", e.sampling.top_k) : "",
                     e.sampling.min_p > 0 ? fmt::format(", min-p {:g}", e.sampling.min_p) : "",
                     e.sampling.seed));
  if (!shaped.empty()) line("        after " + shaped);
}

std::string ExplainView::chosen_how() const {
  const Explanation& e = *explanation_;
  if (!is_greedy(e.sampling))
    return fmt::format("drawn from {}", count(e.first.num_kept, "candidate", "candidates"));
  if (shaping(e.sampling).empty()) return "the best one";
  const SamplingOptions& s = e.sampling;
  const bool penalized = s.repetition_penalty != 1 || s.presence_penalty != 0 || s.frequency_penalty != 0;
  return fmt::format("the best one after {}", s.logit_bias.empty() ? "penalties"
                                              : penalized          ? "bias and penalties"
                                                                   : "bias");
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

bool ExplainView::is_narrow() const { return width_ < kRoomy; }

int ExplainView::token_width() const { return is_narrow() ? 5 : kTokenWidth; }

int ExplainView::others_width() const {
  return std::clamp(kOthersWidth + width_ - kComfortable, 0, kOthersWidth);
}

std::string ExplainView::step_row(std::string_view reply) const {
  const Explanation& e = *explanation_;
  const DecodeStep& step = e.steps.back();
  const std::string in = fit(out_text(step.in), token_width()),
                    out = fit(out_text(step.choice.id), token_width()),
                    p = short_percent(std::exp(double{step.choice.log_probability})),
                    ms = fmt::format("{:.1f}", step.ms);
  const std::string row =
      is_narrow() ? fmt::format("{:>4} {} {} {:>6} {:>6} ", e.steps.size(), in, out, p, ms)
                  : fmt::format("  {:>5}  {} {} {:>6}  {} {:>7}  ", e.steps.size(), in, out, p,
                                fit(others(step.choice, others_width()), others_width()), ms);
  const std::string shown = is_end(*tokenizer_, step.choice.id) ? "" : visible(reply);
  return without_end_spaces(row + fit_end(shown, width_ - display_width(row))) + "\n";
}

void ExplainView::show_step(std::string_view reply) {
  const std::size_t number = explanation_->steps.size();
  if (number == 1) {
    const std::string in = fit("in", token_width()), out = fit("out", token_width());
    const std::string names =
        is_narrow() ? fmt::format("{:>4} {} {} {:>6} {:>6} reply", "step", in, out, "p", "ms")
                    : fmt::format("  {:>5}  {} {} {:>6}  {} {:>7}  reply so far", "step", in, out, "p",
                                  fit(others_width() > 0 ? "others, %" : "", others_width()), "ms");
    print(heading("DECODE") + wrapped("one token a pass, each fed back", kIndent, width_ - kIndent) + "\n" +
          dim(names) + "\n");
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
  constexpr int kNameWidth = 20, kColumnWidth = 26, kTableWidth = 76;
  const bool stacked = width_ < kTableWidth;  // the two stages one below the other
  const auto row = [&](std::string_view name, std::string_view prefill, std::string_view decode) {
    if (stacked) return print(fmt::format("{}\n  prefill  {}\n  decode   {}\n", name, prefill, decode));
    print(fmt::format("{}{}{}\n", fit(name, kNameWidth), fit(prefill, kColumnWidth), decode));
  };
  const auto decode = [&](std::string text) { return decoded ? text : std::string("-"); };
  const auto rate = [](double per_s) { return grouped(static_cast<std::uint64_t>(per_s + 0.5)); };
  const std::string passes = fmt::format("{} / {}", grouped(p.rows), p.steps);
  if (!stacked)
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
  std::vector<RooflinePoint> points;
  std::string marks, above;
  const auto add = [&](const StageCost& cost, char mark, std::string_view stage) {
    if (cost.steps == 0) return;
    points.push_back({mark, cost.operations_per_byte(), cost.operations_per_s()});
    marks += fmt::format("{} {}, ", mark, stage);
    if (cost.above_peaks(e.peaks)) above += fmt::format("{}{}", above.empty() ? "" : " and ", mark);
  };
  add(e.prefill, 'P', "prefill");
  add(e.decode, 'D', "decode");
  if (points.empty()) return;
  const Roof roof = {e.peaks.int8_operations_per_s, e.peaks.read_bytes_per_s};
  const std::string measured = fmt::format(
      "The machine's roof, measured: {:.0f} G op/s ({}, {}), memory {:.1f} GB/s", roof.operations_per_s / 1e9,
      engine_->info().kernels,
      count(static_cast<std::uint64_t>(engine_->info().num_threads), "thread", "threads"),
      roof.bytes_per_s / 1e9);
  print(wrapped(measured, 0, width_) + "\n");
  for (const std::string& row : draw_roofline(roof, points, width_)) print(row + "\n");
  const std::string legend = marks + "/ the memory's limit, - the arithmetic's";
  print(std::string(kIndent, ' ') + wrapped(legend, kIndent, width_ - kIndent) + "\n");
  if (!above.empty())
    line(fmt::format("above its limit: {}; the machine was busier while its limits were measured", above));
}

}  // namespace couplet::cli
