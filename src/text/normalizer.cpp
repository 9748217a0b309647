#include "text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>

#include "text/unicode_tables.h"
#include "text/utf8.h"

namespace couplet::text {
namespace {

void append_char(char32_t code_point, std::string& out) {
  utf8proc_uint8_t bytes[4];
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count));
}

// Calls `whole(code point)` for characters and `other(byte)` for bytes that are part of none.
template <typename Whole, typename Other>
void for_each_char(std::string_view text, const Whole& whole, const Other& other) {
  for (const char *at = text.data(), *end = at + text.size(); at != end;) {
    const Utf8Char read = read_char(at, end);
    if (read.kind == Utf8Char::whole) {
      whole(read.code_point);
    } else {
      other(*at);
    }
    at += read.length;
  }
}

// Below U+0300 nothing combines, and below U+0080 nothing decomposes.
bool is_normal(std::string_view text, NormalForm form) {
  const unsigned char first = form == NormalForm::nfc ? 0xCC : 0x80;
  return std::all_of(text.begin(), text.end(), [&](char byte) { return static_cast<unsigned char>(byte) < first; });
}

int combining_class(utf8proc_int32_t code_point) { return utf8proc_get_property(code_point)->combining_class; }

// A stretch of decomposed characters in its normal form. The library's own sorting of marks is quadratic, so it gets
// them sorted.
void append_composed(std::vector<utf8proc_int32_t>& points, bool compose, std::string& out) {
  for (std::size_t begin = 0; begin < points.size(); ++begin) {
    if (combining_class(points[begin]) == 0) continue;
    std::size_t end = begin;
    while (end < points.size() && combining_class(points[end]) != 0) ++end;
    std::stable_sort(points.begin() + static_cast<std::ptrdiff_t>(begin),
                     points.begin() + static_cast<std::ptrdiff_t>(end),
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end - 1;
  }
  if (compose && !points.empty()) {
    const auto length = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                                                 static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    points.resize(static_cast<std::size_t>(std::max<utf8proc_ssize_t>(length, 0)));
  }
  for (const utf8proc_int32_t point : points) append_char(static_cast<char32_t>(point), out);
  points.clear();
}

std::string to_normal_form(std::string_view text, NormalForm form) {
  if (is_normal(text, form)) return std::string(text);
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const bool compose = form == NormalForm::nfc || form == NormalForm::nfkc;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE |
                                                      (compatible ? UTF8PROC_COMPAT : 0));
  std::string out;
  std::vector<utf8proc_int32_t> points;
  for_each_char(
      text,
      [&](char32_t code_point) {
        // Models were trained with the normal forms of Unicode 9: to them a newer character is one that neither comes
        // apart nor joins another, nor changes its place.
        // U+11A7, a vowel that joins nothing, is lost by the library: it takes it for the first of the last consonants.
        if (!is_in_unicode_9(code_point) || code_point == 0x11A7) {
          append_composed(points, compose, out);
          append_char(code_point, out);
          return;
        }
        utf8proc_int32_t parts[32];
        int last_class = UTF8PROC_BOUNDCLASS_START;
        const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), parts, 32, options,
                                                   &last_class);
        if (count > 0 && count <= 32) {
          points.insert(points.end(), parts, parts + count);
        } else {
          points.push_back(static_cast<utf8proc_int32_t>(code_point));
        }
      },
      [&](char byte) {
        append_composed(points, compose, out);
        out += byte;
      });
  append_composed(points, compose, out);
  return out;
}

std::string in_lowercase(std::string_view text) {
  std::string out;
  for_each_char(
      text,
      [&](char32_t code_point) {
        if (code_point == 0x130) {  // the one character whose small form is two
          out += "i\u0307";
        } else {
          append_char(to_lowercase(code_point), out);
        }
      },
      [&](char byte) { out += byte; });
  return out;
}

// As Unicode 9 had it: three have changed.
bool is_mark(char32_t code_point) {
  if (code_point == 0x1CF2 || code_point == 0x1CF3 || code_point == 0x111C9) return code_point != 0x111C9;
  const std::uint32_t category = category_of(code_point);
  return kCategoryNames[2 * category] == 'M' && is_in_unicode_9(code_point);
}

std::string without_accents(std::string_view text) {
  std::string out;
  for_each_char(
      text,
      [&](char32_t code_point) {
        if (!is_mark(code_point)) append_char(code_point, out);
      },
      [&](char byte) { out += byte; });
  return out;
}

std::string replaced(const NormalizerStep& step, std::string_view text) {
  std::string out;
  const auto replace = [&](std::size_t at, WordPattern::Match match) {
    out += text.substr(at, match.begin - at);
    if (match.begin < match.end) out += step.text;
  };
  std::size_t read = 0;
  if (step.pattern) {
    step.pattern->for_each_match(text, read, replace);
    return out;
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t found = std::min(text.find(step.literal, at), text.size());
    const std::size_t end = std::min(found + step.literal.size(), text.size());
    replace(at, {found, end});
    at = end;
  }
  return out;
}

std::string single_spaced(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    if (byte != ' ' || (!out.empty() && out.back() != ' ')) out += byte;
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

void append_mapped(const Charsmap& map, std::string_view character, std::string& out) {
  const auto entry = map.shortest(character);
  out += entry ? entry->text : character;
}

// Hugging Face looks a whole grapheme up where it is small, and takes the shortest sequence that it begins with for all
// of it: what such a sequence leaves over is lost.
std::string map_graphemes(const Charsmap& map, std::string_view text) {
  constexpr std::size_t kSmall = 6;  // bytes
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    utf8proc_int32_t state = 0;
    for (char32_t last = 0; end < text.size();) {
      const Utf8Char read = read_char(text.data() + end, text.data() + text.size());
      if (end > begin && (read.kind != Utf8Char::whole ||
                          utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last),
                                                           static_cast<utf8proc_int32_t>(read.code_point), &state)))
        break;
      last = read.code_point;
      end += read.length;
      if (read.kind != Utf8Char::whole) break;
    }
    const std::string_view grapheme = text.substr(begin, end - begin);
    begin = end;
    if (const auto entry = grapheme.size() < kSmall ? map.shortest(grapheme) : std::nullopt) {
      out += entry->text;
      continue;
    }
    for (std::size_t at = 0; at < grapheme.size();) {
      const std::size_t length = read_char(grapheme.data() + at, grapheme.data() + grapheme.size()).length;
      append_mapped(map, grapheme.substr(at, length), out);
      at += length;
    }
  }
  return out;
}

std::string map_longest(const Charsmap& map, std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto entry = map.longest(text.substr(at));
    const std::size_t length =
        entry ? entry->length : read_char(text.data() + at, text.data() + text.size()).length;
    out += entry ? entry->text : text.substr(at, length);
    at += length;
  }
  return out;
}

}  // namespace

std::string_view trim_white_space(std::string_view text, bool left, bool right) {
  while (left && !text.empty()) {
    const Utf8Char read = read_char(text.data(), text.data() + text.size());
    if (!is_white_space(read.code_point)) break;
    text.remove_prefix(read.length);
  }
  while (right && !text.empty()) {
    std::size_t length = 1;
    while (length < 3 && length < text.size() && is_continuation(text[text.size() - length])) ++length;
    const char* const last = text.data() + text.size() - length;
    const Utf8Char read = read_char(last, text.data() + text.size());
    if (read.length != length || !is_white_space(read.code_point)) break;
    text.remove_suffix(length);
  }
  return text;
}

bool is_white_space(char32_t c) {
  return (c >= '\t' && c <= '\r') || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string normalize(const std::vector<NormalizerStep>& steps, std::string_view text) {
  std::string now(text);
  for (const NormalizerStep& step : steps) {
    switch (step.kind) {
      case NormalizerStep::normal_form:
        now = to_normal_form(now, step.form);
        break;
      case NormalizerStep::lowercase:
        now = in_lowercase(now);
        break;
      case NormalizerStep::strip:
        now = std::string(trim_white_space(now, step.left, step.right));
        break;
      case NormalizerStep::strip_accents:
        now = without_accents(now);
        break;
      case NormalizerStep::prepend:
        if (!now.empty()) now.insert(0, step.text);
        break;
      case NormalizerStep::replace:
        now = replaced(step, now);
        break;
      case NormalizerStep::single_spaces:
        now = single_spaced(now);
        break;
      case NormalizerStep::map_graphemes:
        now = map_graphemes(*step.charsmap, now);
        break;
      case NormalizerStep::map_longest:
        now = map_longest(*step.charsmap, now);
        break;
    }
  }
  return now;
}

}  // namespace couplet::text
