#include "decode_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "terminal.h"

namespace couplet::cli {
namespace {

constexpr int kFirstRows = 24;  // of a long reply's steps
constexpr std::size_t kLastRows = 8;
constexpr int kTokenWidth = 10, kOthersWidth = 16;
constexpr int kComfortable = 80;  // columns; on fewer the other candidates get fewer

double share(float log_probability) { return std::exp(double{log_probability}); }

// Only the end of the text is shown; making all of it visible in each step would take quadratic time.
std::string_view tail_of(std::string_view reply, int width) {
  const auto most = static_cast<std::size_t>(4 * width);
  if (reply.size() <= most) return reply;
  reply.remove_prefix(reply.size() - most);
  while (!reply.empty() && utf8_length(reply) == 0) reply.remove_prefix(1);
  return reply;
}

}  // namespace

std::string out_text(const Tokenizer& tokenizer, TokenId id) {
  return is_end(tokenizer, id) ? "(end)" : visible(token_text(tokenizer, id));
}

std::string short_percent(double share) {
  if (share < 0.0005) return "<0.1 %";
  return share < 0.0995 ? percent(share) : fmt::format("{:.0f} %", share * 100);
}

std::string without_end_spaces(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

bool DecodeTable::is_narrow() const { return width_ < kRoomy; }

int DecodeTable::token_width() const { return is_narrow() ? 5 : kTokenWidth; }

int DecodeTable::others_width() const {
  return std::clamp(kOthersWidth + width_ - kComfortable, 0, kOthersWidth);
}

std::string DecodeTable::others(const TokenChoice& choice, int width) const {
  constexpr double kLeastShown = 0.01;
  std::string text;
  for (const Alternative& one : choice.alternatives) {
    const double p = share(one.log_probability);
    if (one.id == choice.id || p < kLeastShown) continue;
    const std::string next = fmt::format("{}{} {:.0f}", text.empty() ? "" : "  ", out_text(*tokenizer_, one.id), p * 100);
    if (display_width(text) + display_width(next) > width) break;
    text += next;
  }
  return text;
}

void DecodeTable::show_names() const {
  const std::string in = fit("in", token_width()), out = fit("out", token_width());
  const std::string names =
      is_narrow() ? fmt::format("{:>4} {} {} {:>6} {:>6} reply", "step", in, out, "p", "ms")
                  : fmt::format("  {:>5}  {} {} {:>6}  {} {:>7}  reply so far", "step", in, out, "p",
                                fit(others_width() > 0 ? "others, %" : "", others_width()), "ms");
  print(dim(names) + "\n");
}

std::string DecodeTable::row(int number, const DecodeStep& step, std::string_view reply) const {
  const TokenId id = step.choice.id;
  const std::string in = fit(out_text(*tokenizer_, step.in), token_width()),
                    out = fit(out_text(*tokenizer_, id), token_width()),
                    p = short_percent(share(step.choice.log_probability)), ms = fmt::format("{:.1f}", step.ms);
  const std::string row =
      is_narrow() ? fmt::format("{:>4} {} {} {:>6} {:>6} ", number, in, out, p, ms)
                  : fmt::format("  {:>5}  {} {} {:>6}  {} {:>7}  ", number, in, out, p,
                                fit(others(step.choice, others_width()), others_width()), ms);
  const std::string shown = is_end(*tokenizer_, id) ? "" : visible(tail_of(reply, width_));
  return without_end_spaces(row + fit_end(shown, width_ - display_width(row))) + "\n";
}

void DecodeTable::add(int number, const DecodeStep& step, std::string_view reply) {
  std::string text = row(number, step, reply);
  if (++num_rows_ <= kFirstRows) {
    print(text);
    return flush();
  }
  held_rows_.push_back(std::move(text));
  if (held_rows_.size() > kLastRows) {
    held_rows_.pop_front();
    ++num_left_out_;
  }
}

void DecodeTable::finish() {
  if (num_left_out_ > 0)
    print(dim(fmt::format("  {:>5}  {} left out here", "...", count(num_left_out_, "step", "steps"))) + "\n");
  for (const std::string& row : held_rows_) print(row);
  held_rows_.clear();
}

}  // namespace couplet::cli
