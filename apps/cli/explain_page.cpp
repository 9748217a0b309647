#include "explain_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/new_file.h"
#include "decode_table.h"
#include "terminal.h"

extern "C" const char couplet_explain_style[];

namespace couplet::cli {
namespace {

constexpr std::size_t kOpenRows = 60;  // a longer table of steps is folded away at first

double share(float log_probability) { return std::exp(double{log_probability}); }

class Page {
 public:
  Page(const Engine& engine, const Explanation& explanation)
      : engine_(&engine), tokenizer_(&engine.checkpoint().tokenizer()), e_(&explanation) {}

  std::string text() {
    head();
    prompt();
    prefill();
    if (!e_->run.steps.empty()) decode();
    if (e_->what_if) what_if();
    comparison_table();
    roofline();
    add("</main>\n</body>\n</html>\n");
    return std::move(html_);
  }

 private:
  void add(std::string_view html) { html_ += html; }
  std::string token(TokenId id) const { return escaped(out_text(*tokenizer_, id)); }
  std::string code(TokenId id) const { return "<code>" + token(id) + "</code>"; }

  void head();
  void prompt();
  void prefill();
  void distribution(const TokenChoice& first);
  void decode();
  void time_line();
  void reply(const ExplainedRun& run, int first);
  void reply_token(const TokenChoice& choice, const std::string& text);
  void steps(const ExplainedRun& run, int first);
  std::string others(const TokenChoice& choice) const;
  void what_if();
  void comparison_table();
  void roofline();

  const Engine* engine_;
  const Tokenizer* tokenizer_;
  const Explanation* e_;
  std::string html_;
};

void Page::head() {
  const EngineInfo& info = engine_->info();
  const std::string model = escaped(engine_->checkpoint().summary().name);
  add("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n");
  add(fmt::format("<title>{}: prefill and decode</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n", model,
                  couplet_explain_style));
  add(fmt::format("<h1>How {} answered, in two stages</h1>\n<p class=\"dim\">Everything here was measured in the run that it "
                  "describes, on {} with {} kernels.</p>\n",
                  model.empty() ? "the model" : model,
                  count(static_cast<std::uint64_t>(info.num_threads), "thread", "threads"), escaped(info.kernels)));
}

void Page::prompt() {
  const std::size_t own = e_->own_end - e_->own_begin, added = e_->prompt.size() - own;
  add(fmt::format("<section>\n<h2>The prompt: {}</h2>\n", count(e_->prompt.size(), "token", "tokens")));
  if (own > 0 && added > 0)
    add(fmt::format("<p class=\"dim\">{} {} yours (marked), {} {}.</p>\n", grouped(own), own == 1 ? "is" : "are", grouped(added),
                    !e_->templated    ? "marks the beginning of a text"
                    : e_->has_system ? "come from the chat template and the system prompt"
                                     : "come from the chat template"));
  add("<ul class=\"chips\">\n");
  for (std::size_t n = 0; n < e_->prompt.size(); ++n) {
    const TokenId id = e_->prompt[n];
    add(fmt::format("<li class=\"chip{}\" title=\"id {}, position {}\">{}</li>\n", n >= e_->own_begin && n < e_->own_end ? " own" : "",
                    id, n, escaped(visible(token_text(*tokenizer_, id)))));
  }
  add("</ul>\n</section>\n");
}

void Page::prefill() {
  const StageCost& cost = e_->run.prefill;
  add("<section>\n<h2 class=\"prefill\">Prefill</h2>\n");
  if (cost.steps == 0) return add("<p>It did not run.</p>\n</section>\n");
  add(fmt::format("<p>{} in {}, each seeing those before it: {}. Weights read {} ({}), {} operations, {} a byte.</p>\n",
                  count(cost.rows, "position", "positions"),
                  cost.steps == 1 ? "one pass" : fmt::format("{} passes", cost.steps), milliseconds(cost.ms),
                  cost.steps == 1 ? "once" : fmt::format("{} times", cost.steps), amount(cost.weights_bytes),
                  operations(static_cast<double>(cost.operations())), per_byte(cost.operations_per_byte())));
  const TokenChoice& first = e_->run.first;
  if (first.id < 0) return add(fmt::format("<p>No token: {}.</p>\n</section>\n", escaped(describe(e_->run.reply.stop))));
  distribution(first);
  add(fmt::format("<p>Chosen: {}, {}, after {}.</p>\n", code(first.id), chosen_how(*e_, first),
                  milliseconds(e_->run.reply.figures.ttft_ms)));
  if (first.drawn)
    add(fmt::format("<p class=\"dim\">Drawn at temperature {:g}, top-p {:g}, seed {}: the number drawn was {:.3f} of 1.</p>\n",
                    e_->sampling.temperature, e_->sampling.top_p, e_->sampling.seed, first.draw));
  if (const std::string shaped = shaping(e_->sampling); !shaped.empty())
    add(fmt::format("<p class=\"dim\">After {}.</p>\n", escaped(shaped)));
  add("</section>\n");
}

void Page::distribution(const TokenChoice& first) {
  const auto vocab_size = static_cast<std::size_t>(engine_->checkpoint().summary().vocab_size);
  add(fmt::format("<p>Every one of {} tokens gets a probability; entropy {:.1f} bits.</p>\n<div class=\"bars\">\n",
                  grouped(vocab_size), first.entropy / std::numbers::ln2));
  double rest = 1, greatest = 0;
  for (const Alternative& one : first.alternatives) greatest = std::max(greatest, share(one.log_probability));
  const auto row = [&](const std::string& name, double p, bool has_bar) {
    add(fmt::format("{}<span class=\"number\">{}</span>", name, percent(p)));
    add(has_bar ? fmt::format("<span class=\"bar\" style=\"width:{:.1f}%\"></span>\n", greatest > 0 ? p / greatest * 100 : 0)
                : std::string("<span></span>\n"));
  };
  for (const Alternative& one : first.alternatives) {
    rest -= share(one.log_probability);
    row(code(one.id), share(one.log_probability), true);
  }
  row(fmt::format("<span class=\"dim\">{} others</span>", grouped(vocab_size - first.alternatives.size())), std::max(rest, 0.0), false);
  add("</div>\n");
}

void Page::decode() {
  const StageCost& cost = e_->run.decode;
  add(fmt::format("<section>\n<h2 class=\"decode\">Decode</h2>\n<p>One token a pass, each fed back: {} in {}, {} a token.</p>\n",
                  count(cost.rows, "token", "tokens"), milliseconds(cost.ms),
                  milliseconds(e_->run.reply.figures.tpot_ms())));
  time_line();
  add("<p class=\"dim\">How probable each token was: <span class=\"key\" style=\"--p:.05\">hardly</span> <span class=\"key\" "
      "style=\"--p:.5\">half</span> <span class=\"key\" style=\"--p:1\">certain</span></p>\n<p class=\"reply\">");
  reply(e_->run, 0);
  add("</p>\n");
  steps(e_->run, 1);
  add(fmt::format("<p>Stopped: {} after {}.</p>\n</section>\n", escaped(describe(e_->run.reply.stop)),
                  count(static_cast<std::uint64_t>(e_->run.reply.figures.completion_tokens), "token", "tokens")));
}

// Every pass as wide as it was long.
void Page::time_line() {
  constexpr std::size_t kMany = 150;  // passes, whose borders would hide them
  const std::vector<StepRecord>& records = e_->run.records;
  add(fmt::format("<figure style=\"margin:0\"><div class=\"time{}\" role=\"img\" aria-label=\"Time line: {} of prefill, then {} of "
                  "decode\">",
                  records.size() > kMany ? " many" : "", milliseconds(e_->run.prefill.ms), milliseconds(e_->run.decode.ms)));
  for (const StepRecord& record : records) {
    const bool is_prefill = record.num_prefill_rows > 0;
    add(fmt::format("<i{} style=\"flex:{:.3f}\" title=\"{}, {}\"></i>", is_prefill ? " class=\"prefill\"" : "", record.step_ms,
                    is_prefill ? "prefill" : "decode", milliseconds(record.step_ms)));
  }
  add("</div><figcaption>Time, left to right: <span class=\"prefill\">prefill</span>, then a piece for each pass of <span "
      "class=\"decode\">decode</span>.</figcaption></figure>\n");
}

void Page::reply_token(const TokenChoice& choice, const std::string& text) {
  if (text.empty()) return;
  const double p = share(choice.log_probability);
  add(fmt::format("<span style=\"--p:{:.3f}\" title=\"{}{}\">{}</span>", p, percent(p),
                  choice.text_tokens > 1 ? fmt::format(", made of {} tokens", choice.text_tokens) : "",
                  escaped(harmless(text))));
}

// From choice `first` on.
void Page::reply(const ExplainedRun& run, int first) {
  for (int n = first; n < run.num_choices(); ++n)
    reply_token(run.choice(n), n == 0 ? run.first_text : run.steps[static_cast<std::size_t>(n - 1)].text);
}

std::string Page::others(const TokenChoice& choice) const {
  std::string text;
  for (const Alternative& one : choice.alternatives)
    if (one.id != choice.id)
      text += fmt::format("{}{} <span class=\"number\">{}</span>", text.empty() ? "" : ", ", code(one.id),
                          short_percent(share(one.log_probability)));
  return text;
}

void Page::steps(const ExplainedRun& run, int first) {
  const auto num_rows = run.steps.size() - static_cast<std::size_t>(std::min<std::size_t>(static_cast<std::size_t>(first - 1), run.steps.size()));
  if (num_rows == 0) return;
  add(fmt::format("<details{}><summary>{}</summary>\n<table class=\"steps\">\n<thead><tr><th class=\"number\">step</th>"
                  "<th class=\"in\">in</th><th>out</th><th class=\"number\">p</th><th class=\"others\">others</th>"
                  "<th class=\"number\">ms</th></tr></thead>\n<tbody>\n",
                  num_rows <= kOpenRows ? " open" : "", count(num_rows, "step", "steps")));
  for (int n = first; n < run.num_choices(); ++n) {
    const DecodeStep& step = run.steps[static_cast<std::size_t>(n - 1)];
    add(fmt::format("<tr><td class=\"number\">{}</td><td class=\"in\">{}</td><td class=\"out\">{}</td><td class=\"number\">{}</td>"
                    "<td class=\"others\">{}</td><td class=\"number\">{:.1f}</td></tr>\n",
                    n, code(step.in), code(step.choice.id), short_percent(share(step.choice.log_probability)),
                    others(step.choice), step.ms));
  }
  add("</tbody>\n</table>\n</details>\n");
}

void Page::what_if() {
  const WhatIf& what_if = *e_->what_if;
  const ExplainedRun& run = what_if.run;
  add(fmt::format("<section>\n<h2>What if step {} had taken {} instead of {}?</h2>\n<p>{}.</p>\n<div class=\"two\">\n", what_if.step,
                  code(what_if.id), code(e_->run.choice(what_if.step).id), escaped(saved_by_cache(*e_))));
  const std::string shared = escaped(harmless(e_->run.text_up_to(what_if.step)));
  const auto side = [&](const char* name, const ExplainedRun& of) {
    add(fmt::format("<div><h3>{}</h3><p class=\"reply\"><b class=\"dim\">{}</b>", name, shared));
    reply(of, what_if.step);
    add("</p></div>\n");
  };
  side("It was", e_->run);
  side("What if", run);
  add("</div>\n");
  steps(run, std::max(what_if.step, 1));
  add(fmt::format("<p>Stopped: {} after {}.</p>\n</section>\n", escaped(describe(run.reply.stop)),
                  count(static_cast<std::uint64_t>(run.reply.figures.completion_tokens), "token", "tokens")));
}

void Page::comparison_table() {
  add("<section>\n<h2>Side by side</h2>\n<table class=\"compare\">\n<thead><tr><td></td><th class=\"prefill\">prefill</th>"
      "<th class=\"decode\">decode</th></tr></thead>\n<tbody>\n");
  for (const ComparisonRow& row : comparison(*e_))
    add(fmt::format("<tr><th>{}</th><td data-stage=\"prefill\">{}</td><td data-stage=\"decode\">{}</td></tr>\n",
                    escaped(row.name), escaped(row.prefill), escaped(row.decode)));
  add("</tbody>\n</table>\n</section>\n");
}

void Page::roofline() {
  const std::vector<RooflinePoint> points = roofline_points(*e_);
  if (points.empty()) return;
  const Roof roof = {e_->peaks.int8_operations_per_s, e_->peaks.read_bytes_per_s};
  add("<section>\n<h2>Under the machine's roof</h2>\n<p class=\"dim\">Measured here: ");
  add(fmt::format("{:.0f} G operations a second, {:.1f} GB a second from memory. Left of the bend memory is the limit, right of it "
                  "arithmetic.</p>\n", roof.operations_per_s / 1e9, roof.bytes_per_s / 1e9));
  add(draw_roofline_svg(roof, points));
  add("</section>\n");
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&': html += "&amp;"; break;
      case '<': html += "&lt;"; break;
      case '>': html += "&gt;"; break;
      case '"': html += "&quot;"; break;
      case '\'': html += "&#39;"; break;
      default: html += c;
    }
  }
  return html;
}

std::string page(const Engine& engine, const Explanation& explanation) { return Page(engine, explanation).text(); }

void write_page(const std::string& path, const Engine& engine, const Explanation& explanation) {
  const std::string html = page(engine, explanation);
  NewFile file(path, "html");
  if (const int problem = file.write(html.data(), html.size(), 0); problem != 0) file.fail(problem);
  file.finish();
}

}  // namespace couplet::cli
