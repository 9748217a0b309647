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
constexpr std::size_t kPromptRows = 8;  // of a long prompt's pieces

std::string heading(std::string_view word) { return bold(fit(word, kIndent)); }

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
    shown += '\n';
    shown.append(static_cast<std::size_t>(indent), ' ');
  }
  return shown + std::string(text);
}

}  // namespace

ExplainView::ExplainView(const Engine& engine, const Explanation& explanation)
    : engine_(&engine),
      tokenizer_(&engine.checkpoint().tokenizer()),
      explanation_(&explanation),
      width_(std::min(line_width(), kGreatestWidth)),
      table_(*tokenizer_, width_) {}

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
  const StageCost& cost = e.run.prefill;
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
  if (e.run.first.id < 0) {
    line(e.run.reply.stop == StopReason::max_tokens ? "no token was asked for"
                                                : "no token: " + describe(e.run.reply.stop));
    return print("\n");
  }
  show_distribution(e.run.first);
  show_choice();
  print("\n");
  flush();
}

void ExplainView::show_distribution(const TokenChoice& first) const {
  const auto vocab_size = static_cast<std::size_t>(engine_->checkpoint().summary().vocab_size);
  line(fmt::format("every one of {} tokens gets a probability", grouped(vocab_size)));
  const int name_width = width_ < kRoomy ? 16 : 20;
  const int bar_width = std::max(width_ - kIndent - name_width - 14, 0);
  double rest = 1, greatest = 0;
  for (const Alternative& one : first.alternatives)
    greatest = std::max(greatest, std::exp(double{one.log_probability}));
  for (const Alternative& one : first.alternatives) {
    const double p = std::exp(double{one.log_probability});
    rest -= p;
    const std::string bars = bar(greatest > 0 ? p / greatest : 0, bar_width);
    line(fmt::format("  {} {:>8}  {}", fit(out_text(*tokenizer_, one.id), name_width), percent(p), bars));
  }
  const std::size_t others = vocab_size - first.alternatives.size();
  const std::string row = fmt::format("  {} {:>8}", fit(fmt::format("({} others)", grouped(others)), name_width),
                                      percent(std::max(rest, 0.0)));
  const std::string entropy = fmt::format("  entropy {:.1f} bits", first.entropy / std::numbers::ln2);
  const bool fits = display_width(row + entropy) <= width_ - kIndent;
  line(fits ? row + entropy : row);
  if (!fits) line(entropy);
}

std::string ExplainView::quoted(TokenId id) const {
  const std::string text = out_text(*tokenizer_, id);
  return is_end(*tokenizer_, id) ? text : fmt::format("\"{}\"", text);
}

void ExplainView::show_choice() const {
  const Explanation& e = *explanation_;
  const TokenChoice& first = e.run.first;
  const std::string after = fmt::format("first token after {}", milliseconds(e.run.reply.figures.ttft_ms));
  show_first(std::string(kIndent, ' '), fmt::format("chosen: {}, {}", quoted(first.id), chosen_how(e, first)), after);
  if (first.drawn)
    line(fmt::format("        with {} at temperature {:g}, top-p {:g}{}{}, seed {}, at {:.3f} of the kept",
                     percent(std::exp(double{first.shaped_log_probability})), e.sampling.temperature,
                     e.sampling.top_p,
                     e.sampling.top_k > 0 ? fmt::format(", top-k {}", e.sampling.top_k) : "",
                     e.sampling.min_p > 0 ? fmt::format(", min-p {:g}", e.sampling.min_p) : "",
                     e.sampling.seed, first.draw));
  if (const std::string shaped = shaping(e.sampling); !shaped.empty()) line("        after " + shaped);
}

void ExplainView::show_candidates(const TokenChoice& choice) const {
  const int number = explanation_->run.num_choices();
  std::string text;
  for (std::size_t n = 0; n < choice.alternatives.size(); ++n) {
    const Alternative& one = choice.alternatives[n];
    text += fmt::format("{}{}: {} {}", n == 0 ? "" : "   ", n + 1, quoted(one.id),
                        short_percent(std::exp(double{one.log_probability})));
  }
  print(bold(fit(number == 0 ? "FIRST" : fmt::format("STEP {}", number), kIndent)) + wrapped(text, kIndent, width_ - kIndent) +
        "\n");
}

void ExplainView::show_step(std::string_view reply) {
  const ExplainedRun& run = explanation_->run;
  if (run.steps.size() == 1) {
    print(heading("DECODE") + wrapped("one token a pass, each fed back", kIndent, width_ - kIndent) + "\n");
    table_.show_names();
  }
  table_.add(static_cast<int>(run.steps.size()), run.steps.back(), reply);
}

void ExplainView::show_end() {
  const Reply& reply = explanation_->run.reply;
  table_.finish();
  const auto tokens = static_cast<std::uint64_t>(reply.figures.completion_tokens);
  line(fmt::format("stopped: {} after {}", describe(reply.stop), count(tokens, "token", "tokens")));
  print("\n");
  show_comparison();
  print("\n");
  show_roofline();
}

void ExplainView::show_comparison() const {
  const Explanation& e = *explanation_;
  constexpr int kNameWidth = 20, kColumnWidth = 26, kTableWidth = 76;
  const bool stacked = width_ < kTableWidth;  // the two stages one below the other
  if (!stacked)
    print(std::string(kNameWidth, ' ') + bold(fit("prefill", kColumnWidth)) + bold("decode") + "\n");
  for (const ComparisonRow& row : comparison(e)) {
    if (stacked) {
      print(fmt::format("{}\n  prefill  {}\n  decode   {}\n", row.name, row.prefill, row.decode));
    } else {
      print(fmt::format("{}{}{}\n", fit(row.name, kNameWidth), fit(row.prefill, kColumnWidth), row.decode));
    }
  }
}

void ExplainView::show_roofline() const {
  const Explanation& e = *explanation_;
  const std::vector<RooflinePoint> points = roofline_points(e);
  if (points.empty()) return;
  std::string marks, above;
  for (const RooflinePoint& point : points) {
    marks += fmt::format("{} {}, ", point.mark, point.name);
    if (point.is_above) above += fmt::format("{}{}", above.empty() ? "" : " and ", point.mark);
  }
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

void ExplainView::show_what_if() const {
  const Explanation& e = *explanation_;
  const WhatIf& what_if = *e.what_if;
  const ExplainedRun &run = what_if.run, &before = e.run;
  const TokenChoice& taken = before.choice(what_if.step);
  const auto asked = [&](TokenId id, float log_probability) {
    return fmt::format("{} ({}, {})", quoted(id), id, short_percent(std::exp(double{log_probability})));
  };
  print("\n");
  print(heading("WHAT IF") +
        wrapped(fmt::format("step {} had taken {} instead of {}", what_if.step,
                            run.num_choices() > what_if.step ? asked(what_if.id, run.choice(what_if.step).log_probability)
                                                             : quoted(what_if.id),
                            asked(taken.id, taken.log_probability)),
                kIndent, width_ - kIndent) +
        "\n");
  line(saved_by_cache(e));
  DecodeTable table(*tokenizer_, width_);
  std::string reply = run.text_up_to(what_if.step + 1);
  bool named = false;
  for (int n = std::max(what_if.step, 1); n < run.num_choices(); ++n) {
    if (!named) table.show_names();
    named = true;
    const DecodeStep& step = run.steps[static_cast<std::size_t>(n - 1)];
    if (n > what_if.step) reply += step.text;
    table.add(n, step, reply);
  }
  table.finish();
  line(fmt::format("stopped: {} after {}", describe(run.reply.stop),
                   count(static_cast<std::uint64_t>(run.reply.figures.completion_tokens), "token", "tokens")));
  print("\n");
  show_parting(what_if);
}

// Both replies, what they share once.
void ExplainView::show_parting(const WhatIf& what_if) const {
  const ExplainedRun &run = what_if.run, &before = explanation_->run;
  const std::string shared = before.text_up_to(what_if.step);
  const auto tail = [&](const std::string& reply) {
    const std::string text = visible(reply.substr(std::min(shared.size(), reply.size())));
    return text.empty() ? std::string("(end)") : text;
  };
  const auto part = [&](std::string_view name, const std::string& text) {
    print(fit(name, kIndent) + without_end_spaces(wrapped(text, kIndent, width_ - kIndent)) + "\n");
  };
  part("both", shared.empty() ? dim("(nothing: they part at the first token)") : visible(shared));
  part("it was", tail(before.reply.text));
  part("what if", tail(run.reply.text));
}

}  // namespace couplet::cli
