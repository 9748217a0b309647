#include "text/tokenizer_json_steps.h"

#include "couplet/error.h"
#include "formats/printable.h"
#include "text/pretokenize.h"

namespace couplet::text {
namespace {

using formats::JsonObject;

constexpr std::size_t kMaxSteps = 64;  // real files have up to six; each pattern's table takes a megabyte
constexpr std::size_t kMaxPrefix = 16;

// Punctuation as of Unicode 8 and ASCII's symbols: what came later, or was none then, is left out.
constexpr std::string_view kPunctuation =
    R"([[\p{P}!-/:-@\[-`{-~\x{166D}\x{111C9}]&&[^)"
    R"(\x{61D}\x{9FD}-\x{A76}\x{C77}-\x{C84}\x{1B4E}-\x{1B4F}\x{1B7D}-\x{1B7F}\x{2E43}-\x{2E5D})"
    R"(\x{10D6E}-\x{10F89}\x{113D4}-\x{1145D}\x{11660}-\x{116B9}\x{1183B}-\x{11FFF}\x{12FF1}-\x{12FF2})"
    R"(\x{16D6D}-\x{16FE2}\x{1E5FF}-\x{1E95F})"
    R"(]])";
// Numbers as of Unicode 17.
constexpr std::string_view kNumbers = R"([\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}])";

JsonObject need_object(const JsonObject& object, const char* key) {
  if (const auto found = object.get_object(key)) return *found;
  object.refuse(key, "an object", "nothing");
}

// Calls `visit(step, type)` for `part`, or for each member of its Sequence, whose list is called `list`.
template <typename Visit>
void for_each_step(const JsonPart& part, const char* list, const Visit& visit) {
  std::vector<JsonObject> stack;
  if (part) stack.push_back(*part);
  std::size_t count = 0;
  while (!stack.empty()) {
    const JsonObject step = stack.back();
    stack.pop_back();
    const std::string_view type = need_string(step, "type");
    if (type != "Sequence") {
      visit(step, type);
    } else if (const auto members = step.get_objects(list)) {
      count += members->size();
      stack.insert(stack.end(), members->rbegin(), members->rend());
    } else {
      step.refuse(list, "an array", "nothing");
    }
    if (count > kMaxSteps) step.refuse(list, "at most " + std::to_string(kMaxSteps) + " steps", "more");
  }
}

// A pattern that matches just this text.
std::string escaped(std::string_view text) {
  std::string pattern;
  for (const char byte : text) {
    const bool is_mark = static_cast<unsigned char>(byte) < 0x80 && std::string_view("\\/[](){}.*+?^$|-").find(byte) !=
                                                                        std::string_view::npos;
    if (is_mark) pattern += '\\';
    pattern += byte;
  }
  return pattern;
}

std::string_view read_literal(const JsonObject& pattern) {
  const std::string_view text = need_string(pattern, "String");
  if (text.empty() || text.size() > kMaxPieceBytes)
    pattern.refuse("String", "1 to " + std::to_string(kMaxPieceBytes) + " bytes", std::to_string(text.size()));
  return text;
}

SplitBehaviour read_behaviour(const JsonObject& step) {
  const std::string_view name = step.get_string("behavior").value_or("Isolated");
  if (name == "Removed") return SplitBehaviour::removed;
  if (name == "Isolated") return SplitBehaviour::isolated;
  if (name == "Contiguous") return SplitBehaviour::contiguous;
  if (name == "MergedWithPrevious") return SplitBehaviour::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehaviour::merged_with_next;
  refuse_unknown(step, "a behavior among Removed, Isolated, Contiguous, MergedWithPrevious, MergedWithNext", name);
}

Splitter read_split(const JsonObject& step) {
  const JsonObject pattern = need_object(step, "pattern");
  const auto regex = pattern.get_string("Regex");
  return Splitter(regex ? std::string(*regex) : escaped(read_literal(pattern)), read_behaviour(step),
                  step.get_bool("invert").value_or(false));
}

void add_metaspace(const JsonObject& step, std::vector<CutStep>& steps) {
  const std::string mark(step.get_string("replacement").value_or(kMarkedSpace));
  if (mark.empty()) step.refuse("replacement", "a character", "none");
  const std::string_view scheme =
      step.get_string("prepend_scheme").value_or(step.get_bool("add_prefix_space").value_or(true) ? "always" : "never");
  MarkSpaces marks{mark, MarkSpaces::always};
  if (scheme == "never") {
    marks.prepend = MarkSpaces::never;
  } else if (scheme == "first") {
    marks.prepend = MarkSpaces::first;
  } else if (scheme != "always") {
    refuse_unknown(step, "a prepend_scheme among always, first, never", scheme);
  }
  steps.emplace_back(std::move(marks));
  if (step.get_bool("split").value_or(true))
    steps.emplace_back(Splitter(escaped(mark), SplitBehaviour::merged_with_next));
}

NormalizerStep read_replacing(const JsonObject& step) {
  NormalizerStep replace{.kind = NormalizerStep::replace, .text = std::string(need_string(step, "content"))};
  const JsonObject pattern = need_object(step, "pattern");
  if (const auto regex = pattern.get_string("Regex")) {
    replace.pattern.emplace(*regex);
  } else {
    replace.literal = read_literal(pattern);
  }
  return replace;
}

NormalizerStep read_charsmap(const JsonObject& step) {
  const auto bytes = from_base64(need_string(step, "precompiled_charsmap"));
  if (!bytes) step.refuse("precompiled_charsmap", "base64", "something else");
  return {.kind = NormalizerStep::map_graphemes, .charsmap = Charsmap(*bytes)};
}

// What a template writes before the text itself.
std::vector<std::uint64_t> read_template_prefix(const JsonObject& step) {
  std::vector<std::uint64_t> prefix;
  const auto parts = step.get_objects("single");
  if (!parts) step.refuse("single", "an array", "nothing");
  for (const JsonObject& part : *parts) {
    const auto token = part.get_object("SpecialToken");
    if (!token) break;
    const std::string name(need_string(*token, "id"));
    const auto ids = need_object(need_object(step, "special_tokens"), name.c_str()).get_uints("ids");
    if (!ids) step.refuse("special_tokens", "ids for " + name, "none");
    prefix.insert(prefix.end(), ids->begin(), ids->end());
    if (prefix.size() > kMaxPrefix) step.refuse("single", "at most " + std::to_string(kMaxPrefix) + " tokens", "more");
  }
  return prefix;
}

// cls: ["<s>", 0]
std::uint64_t read_class_token(const JsonObject& step) {
  std::uint64_t id = 0;
  const auto pair = step.get_list("cls");
  if (!pair || pair->at(1).get(id) != simdjson::SUCCESS) step.refuse("cls", "a token and its id", "something else");
  return id;
}

}  // namespace

std::string_view need_string(const JsonObject& object, const char* key) {
  if (const auto found = object.get_string(key)) return *found;
  object.refuse(key, "a string", "nothing");
}

void refuse_unknown(const JsonObject& part, const std::string& expected, std::string_view got) {
  throw Error(ErrorKind::unsupported, part.where() + ": expected " + expected + ", got " + formats::in_quotes(got));
}

std::vector<NormalizerStep> read_normalizer(const JsonPart& normalizer) {
  std::vector<NormalizerStep> steps;
  for_each_step(normalizer, "normalizers", [&](const JsonObject& step, std::string_view type) {
    if (type == "NFC") {
      steps.push_back({.form = NormalForm::nfc});
    } else if (type == "NFD") {
      steps.push_back({.form = NormalForm::nfd});
    } else if (type == "NFKC") {
      steps.push_back({.form = NormalForm::nfkc});
    } else if (type == "NFKD") {
      steps.push_back({.form = NormalForm::nfkd});
    } else if (type == "Lowercase") {
      steps.push_back({.kind = NormalizerStep::lowercase});
    } else if (type == "StripAccents") {
      steps.push_back({.kind = NormalizerStep::strip_accents});
    } else if (type == "Strip") {
      steps.push_back({.kind = NormalizerStep::strip,
                       .left = step.get_bool("strip_left").value_or(true),
                       .right = step.get_bool("strip_right").value_or(true)});
    } else if (type == "Prepend") {
      steps.push_back({.kind = NormalizerStep::prepend, .text = std::string(need_string(step, "prepend"))});
    } else if (type == "Replace") {
      steps.push_back(read_replacing(step));
    } else if (type == "Precompiled") {
      steps.push_back(read_charsmap(step));
    } else {
      refuse_unknown(
          step,
          "a type among NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, Precompiled, Sequence",
          type);
    }
  });
  return steps;
}

std::vector<CutStep> read_cut_steps(const JsonPart& pre_tokenizer) {
  std::vector<CutStep> steps;
  for_each_step(pre_tokenizer, "pretokenizers", [&](const JsonObject& step, std::string_view type) {
    if (type == "Split") {
      steps.emplace_back(read_split(step));
    } else if (type == "ByteLevel") {
      if (step.get_bool("add_prefix_space").value_or(true)) steps.emplace_back(SpacePrefix{});
      if (step.get_bool("use_regex").value_or(true)) steps.emplace_back(Splitter(find_pre_tokenizer("gpt-2").patterns[0]));
      steps.emplace_back(ByteLetters{});
    } else if (type == "Metaspace") {
      add_metaspace(step, steps);
    } else if (type == "Digits") {
      const bool each = step.get_bool("individual_digits").value_or(false);
      steps.emplace_back(Splitter(kNumbers, each ? SplitBehaviour::isolated : SplitBehaviour::contiguous));
    } else if (type == "Whitespace") {
      const std::string word(kWordCharacters);
      steps.emplace_back(Splitter("[" + word + "]+|[^" + word + R"(\s]+)", SplitBehaviour::removed, true));
    } else if (type == "WhitespaceSplit") {
      steps.emplace_back(Splitter(R"(\s)", SplitBehaviour::removed));
    } else if (type == "Punctuation") {
      steps.emplace_back(Splitter(kPunctuation, read_behaviour(step)));
    } else if (type == "CharDelimiterSplit") {
      steps.emplace_back(Splitter(escaped(need_string(step, "delimiter")), SplitBehaviour::removed));
    } else {
      refuse_unknown(step,
                     "a type among Split, ByteLevel, Metaspace, Digits, Whitespace, WhitespaceSplit, Punctuation, "
                     "CharDelimiterSplit, Sequence",
                     type);
    }
  });
  return steps;
}

Spelling read_spelling(const JsonPart& decoder) {
  Spelling spelling = Spelling::plain;
  for_each_step(decoder, "decoders", [&](const JsonObject& step, std::string_view type) {
    if (type == "ByteLevel") {
      spelling = Spelling::byte_letters;
    } else if (type == "Metaspace" && step.get_string("replacement").value_or(kMarkedSpace) == kMarkedSpace) {
      spelling = Spelling::marked_spaces;
    } else if (type == "Replace" && need_object(step, "pattern").get_string("String") == kMarkedSpace &&
               need_string(step, "content") == " ") {
      spelling = Spelling::marked_spaces;
    } else if (type != "ByteFallback" && type != "Fuse" && type != "Strip") {
      refuse_unknown(step, "a type among ByteLevel, Metaspace or Replace of U+2581, ByteFallback, Fuse, Strip, Sequence",
                     type);
    }
  });
  return spelling;
}

std::vector<std::uint64_t> read_prefix(const JsonPart& post_processor) {
  std::vector<std::uint64_t> prefix;
  for_each_step(post_processor, "processors", [&](const JsonObject& step, std::string_view type) {
    if (type == "ByteLevel") return;
    std::vector<std::uint64_t> before;
    if (type == "BertProcessing" || type == "RobertaProcessing") {
      before = {read_class_token(step)};
    } else if (type == "TemplateProcessing") {
      before = read_template_prefix(step);
    } else {
      refuse_unknown(step, "a type among TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence",
                     type);
    }
    prefix.insert(prefix.begin(), before.begin(), before.end());
  });
  return prefix;
}

}  // namespace couplet::text
