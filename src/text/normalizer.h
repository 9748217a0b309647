#pragma once
// What a tokenizer.json does to a text before it is cut: steps in turn, each from text to text. Bytes that are no UTF-8
// pass through every step as they are.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/charsmap.h"
#include "text/word_pattern.h"

namespace couplet::text {

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };

struct NormalizerStep {
  enum Kind : std::uint8_t {
    normal_form,
    lowercase,
    strip,
    strip_accents,
    prepend,
    replace,
    single_spaces,  // of a run of spaces one stays, at the ends none
    map_graphemes,  // by the charsmap, as Hugging Face does
    map_longest     // as SentencePiece itself does
  };
  Kind kind = normal_form;
  NormalForm form = NormalForm::nfc;
  bool left = false, right = false;    // strip: which ends lose their white space
  std::string text = {};               // prepend, to a text that isn't empty; replace: by what
  std::string literal = {};            // replace: what, where there is no pattern
  std::optional<WordPattern> pattern = {};  // replace: each match
  std::optional<Charsmap> charsmap = {};
};

bool is_white_space(char32_t code_point);
std::string_view trim_white_space(std::string_view text, bool left, bool right);

// In time that grows with the text: sorting combining marks is the worst of it, n log n.
std::string normalize(const std::vector<NormalizerStep>& steps, std::string_view text);

}  // namespace couplet::text
