#include "engine/request_check.h"

#include <cmath>
#include <sstream>
#include <string_view>

#include "text/utf8.h"

namespace couplet::engine {
namespace {

// Far beyond any logit, and far enough from the end of float that sums stay finite.
constexpr float kGreatestBias = 1e30F;
constexpr float kGreatestPenalty = 2;

template <class... Parts>
std::string line(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

std::string check_id(const char* what, TokenId id, int vocab_size) {
  if (id >= 0 && id < vocab_size) return "";
  return line(what, ": expected an id from 0 to ", vocab_size - 1, ", got ", id);
}

bool is_utf8(std::string_view bytes) {
  const char* const end = bytes.data() + bytes.size();
  for (const char* at = bytes.data(); at != end;) {
    const text::Utf8Char character = text::read_utf8(at, end);
    if (character.kind != text::Utf8Char::whole) return false;
    at += character.length;
  }
  return true;
}

// Every comparison is written so that NaN fails it.
std::string check_numbers(const SamplingOptions& options) {
  if (!(options.temperature >= 0 && std::isfinite(options.temperature)))
    return line("temperature: expected a finite number of at least 0, got ", options.temperature);
  if (options.top_k < -1) return line("top_k: expected at least 1, or 0 or -1 for off, got ", options.top_k);
  if (!(options.top_p > 0 && options.top_p <= 1))
    return line("top_p: expected a number above 0 and at most 1, got ", options.top_p);
  if (!(options.min_p >= 0 && options.min_p <= 1))
    return line("min_p: expected a number from 0 to 1, got ", options.min_p);
  if (!(options.repetition_penalty > 0 && std::isfinite(options.repetition_penalty)))
    return line("repetition_penalty: expected a finite number above 0, got ", options.repetition_penalty);
  if (!(std::abs(options.presence_penalty) <= kGreatestPenalty))
    return line("presence_penalty: expected a number from -2 to 2, got ", options.presence_penalty);
  if (!(std::abs(options.frequency_penalty) <= kGreatestPenalty))
    return line("frequency_penalty: expected a number from -2 to 2, got ", options.frequency_penalty);
  return "";
}

std::string check_bias(const SamplingOptions& options, int vocab_size) {
  if (options.logit_bias.size() > static_cast<std::size_t>(vocab_size))
    return line("logit_bias: expected at most ", vocab_size, " entries, got ", options.logit_bias.size());
  for (const auto& [id, bias] : options.logit_bias) {
    if (std::string refusal = check_id("logit_bias", id, vocab_size); !refusal.empty()) return refusal;
    if (!(std::abs(bias) <= kGreatestBias))
      return line("logit_bias of id ", id, ": expected a number from -1e30 to 1e30, got ", bias);
  }
  return "";
}

std::string check_stop(const StopOptions& stop, int vocab_size) {
  if (stop.max_tokens < -1)
    return line("max_tokens: expected at least 0, or -1 for no limit, got ", stop.max_tokens);
  if (stop.texts.size() > kMaxStopTexts)
    return line("stop texts: expected at most ", kMaxStopTexts, ", got ", stop.texts.size());
  for (std::size_t n = 0; n < stop.texts.size(); ++n) {
    const std::string& text = stop.texts[n];
    if (text.empty() || text.size() > kMaxStopBytes)
      return line("stop text ", n, ": expected 1 to ", kMaxStopBytes, " bytes, got ", text.size());
    if (!is_utf8(text)) return line("stop text ", n, ": expected UTF-8, got other bytes");
  }
  for (const TokenId id : stop.ids)
    if (std::string refusal = check_id("stop id", id, vocab_size); !refusal.empty()) return refusal;
  return "";
}

}  // namespace

std::string check(const SamplingOptions& sampling, const StopOptions& stop, int vocab_size) {
  for (std::string refusal :
       {check_numbers(sampling), check_bias(sampling, vocab_size), check_stop(stop, vocab_size)})
    if (!refusal.empty()) return refusal;
  return "";
}

}  // namespace couplet::engine
