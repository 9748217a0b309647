#include "text/tokenizer_json_steps.h"

#include "formats/printable.h"
#include "text/pretokenize.h"

namespace couplet::text {
namespace {

constexpr std::size_t kMaxSteps = 64;  // real files have up to six; each pattern's table takes a megabyte
constexpr std::size_t kMaxPrefix = 16;

// Calls `visit(step, type)` for `part`, or for each member of its Sequence, whose list is called `list`.
template <typename Visit>
void for_each_step(const std::optional<JsonView>& part, const char* list, const Visit& visit) {
  std::vector<JsonView> stack;
  if (part) stack.push_back(*part);
  std::size_t count = 0;
  while (!stack.empty()) {
    const JsonView step = stack.back();
    stack.pop_back();
    if (++count > kMaxSteps) step.refuse("at most " + std::to_string(kMaxSteps) + " steps", "more");
    const std::string_view type = step.at("type").string();
    if (type != "Sequence") {
      visit(step, type);
      continue;
    }
    std::vector<JsonView> members;
    step.at(list).for_each([&](const JsonView& member) {
      if (members.size() == kMaxSteps) member.refuse("at most " + std::to_string(kMaxSteps) + " steps", "more");
      members.push_back(member);
    });
    stack.insert(stack.end(), members.rbegin(), members.rend());
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

std::string read_pattern(const JsonView& pattern) {
  if (const auto regex = pattern.get("Regex")) return std::string(regex->string());
  const std::string_view text = pattern.at("String").string();
  if (text.empty()) pattern.refuse("at least a character", "none");
  return escaped(text);
}

SplitBehaviour read_behaviour(const JsonView& step, std::string_view otherwise) {
  const std::string_view name = step.string("behavior", otherwise);
  if (name == "Removed") return SplitBehaviour::removed;
  if (name == "Isolated") return SplitBehaviour::isolated;
  if (name == "Contiguous") return SplitBehaviour::contiguous;
  if (name == "MergedWithPrevious") return SplitBehaviour::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehaviour::merged_with_next;
  step.refuse_unknown("a behavior among Removed, Isolated, Contiguous, MergedWithPrevious, MergedWithNext",
                      formats::in_quotes(name));
}

void add_metaspace(const JsonView& step, std::vector<CutStep>& steps) {
  MarkSpaces marks{std::string(step.string("replacement", kMarkedSpace)), MarkSpaces::always};
  if (marks.mark.empty()) step.refuse("a replacement", "none");
  const std::string_view scheme =
      step.string("prepend_scheme", step.boolean("add_prefix_space", true) ? "always" : "never");
  if (scheme == "never") {
    marks.prepend = MarkSpaces::never;
  } else if (scheme == "first") {
    marks.prepend = MarkSpaces::first;
  } else if (scheme != "always") {
    step.refuse_unknown("a prepend_scheme among always, first, never", formats::in_quotes(scheme));
  }
  const std::string mark = marks.mark;
  steps.emplace_back(std::move(marks));
  if (step.boolean("split", true)) steps.emplace_back(Splitter(escaped(mark), SplitBehaviour::merged_with_next));
}

void add_replacing(const JsonView& step, std::vector<NormalizerStep>& steps) {
  NormalizerStep replace{.kind = NormalizerStep::replace, .text = std::string(step.at("content").string())};
  const JsonView pattern = step.at("pattern");
  if (pattern.get("Regex")) {
    replace.pattern.emplace(read_pattern(pattern));
  } else {
    replace.literal = pattern.at("String").string();
    if (replace.literal.empty()) pattern.refuse("at least a character", "none");
  }
  steps.push_back(std::move(replace));
}

}  // namespace

std::vector<NormalizerStep> read_normalizer(const std::optional<JsonView>& normalizer) {
  std::vector<NormalizerStep> steps;
  for_each_step(normalizer, "normalizers", [&](const JsonView& step, std::string_view type) {
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
                       .left = step.boolean("strip_left", true),
                       .right = step.boolean("strip_right", true)});
    } else if (type == "Prepend") {
      steps.push_back({.kind = NormalizerStep::prepend, .text = std::string(step.at("prepend").string())});
    } else if (type == "Replace") {
      add_replacing(step, steps);
    } else {
      step.refuse_unknown("a type among NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, Sequence",
                          formats::in_quotes(type));
    }
  });
  return steps;
}

std::vector<CutStep> read_cut_steps(const std::optional<JsonView>& pre_tokenizer) {
  std::vector<CutStep> steps;
  for_each_step(pre_tokenizer, "pretokenizers", [&](const JsonView& step, std::string_view type) {
    if (type == "Split") {
      steps.emplace_back(Splitter(read_pattern(step.at("pattern")), read_behaviour(step, "Isolated"),
                                  step.boolean("invert", false)));
    } else if (type == "ByteLevel") {
      if (step.boolean("add_prefix_space", true)) steps.emplace_back(SpacePrefix{});
      if (step.boolean("use_regex", true)) steps.emplace_back(Splitter(find_pre_tokenizer("gpt-2").patterns[0]));
      steps.emplace_back(ByteLetters{});
    } else if (type == "Metaspace") {
      add_metaspace(step, steps);
    } else if (type == "Digits") {
      const bool each = step.boolean("individual_digits", false);
      steps.emplace_back(Splitter(R"(\p{N})", each ? SplitBehaviour::isolated : SplitBehaviour::contiguous));
    } else if (type == "Whitespace") {
      steps.emplace_back(Splitter(R"(\w+|[^\w\s]+)", SplitBehaviour::removed, true));
    } else if (type == "WhitespaceSplit") {
      steps.emplace_back(Splitter(R"(\s)", SplitBehaviour::removed));
    } else if (type == "Punctuation") {
      steps.emplace_back(Splitter(R"([\p{P}!-/:-@\[-`{-~])", read_behaviour(step, "Isolated")));
    } else if (type == "CharDelimiterSplit") {
      steps.emplace_back(Splitter(escaped(step.at("delimiter").string()), SplitBehaviour::removed));
    } else {
      step.refuse_unknown(
          "a type among Split, ByteLevel, Metaspace, Digits, Whitespace, WhitespaceSplit, Punctuation, "
          "CharDelimiterSplit, Sequence",
          formats::in_quotes(type));
    }
  });
  return steps;
}

Spelling read_spelling(const std::optional<JsonView>& decoder) {
  Spelling spelling = Spelling::plain;
  for_each_step(decoder, "decoders", [&](const JsonView& step, std::string_view type) {
    if (type == "ByteLevel") {
      spelling = Spelling::byte_letters;
    } else if (type == "Metaspace" && step.string("replacement", kMarkedSpace) == kMarkedSpace) {
      spelling = Spelling::marked_spaces;
    } else if (type == "Replace" && step.at("pattern").string("String", "") == kMarkedSpace &&
               step.at("content").string() == " ") {
      spelling = Spelling::marked_spaces;
    } else if (type != "ByteFallback" && type != "Fuse" && type != "Strip") {
      step.refuse_unknown("a type among ByteLevel, Metaspace or Replace of U+2581, ByteFallback, Fuse, Strip, Sequence",
                          formats::in_quotes(type));
    }
  });
  return spelling;
}

std::vector<std::string_view> read_prefix(const std::optional<JsonView>& post_processor) {
  std::vector<std::string_view> prefix;
  for_each_step(post_processor, "processors", [&](const JsonView& step, std::string_view type) {
    if (type == "ByteLevel") return;
    if (type != "TemplateProcessing")
      step.refuse_unknown("a type among TemplateProcessing, ByteLevel, Sequence", formats::in_quotes(type));
    bool before = true;
    step.at("single").for_each([&](const JsonView& part) {
      const auto token = part.get("SpecialToken");
      before = before && token;
      if (before) prefix.push_back(token->at("id").string());
      if (prefix.size() > kMaxPrefix) part.refuse("at most " + std::to_string(kMaxPrefix) + " tokens", "more");
    });
  });
  return prefix;
}

}  // namespace couplet::text
