#include "text/gguf_vocabulary.h"

#include <algorithm>
#include <string>
#include <vector>

#include "couplet/error.h"
#include "formats/gguf.h"
#include "text/load.h"
#include "text/pretokenize.h"
#include "text/tokenizer_json.h"

namespace couplet::text {
namespace {

// What pre-tokenizers treat each in its own way: words and numbers of several scripts, contractions, marks, white space.
// Nothing here changes when it is normalized, which GGUF's readers don't do.
constexpr std::string_view kProbes[] = {
    "Hello world's WORLD'S we'll WE'LL they'd I'M don't DON'T x'y 's ' S",
    "1 12 123 1234 12345 1,234.56 3.14159 2024-11-30 a1b22c333 \u0663\u0664\u0665\u0666 \u00BD \u2167 x\u00B2",
    "camelCase PascalCase SCREAMING_SNAKE snake_case HTMLParser iPhone XMLHttpRequest aB Ab ABc",
    "a  b   c    d\te\t\tf \t g\n\nh\n \ni \n  j\r\nk\r\n\r\nl   ",
    "   leading, trailing\n\n   ",
    "if (x == 1) { return *p++; } // c++ <tag attr=\"v\"/> !!! ... --- [a](b) a/b\\c #h @m $5 50% ^~`|",
    "...\n!!\n\n//\n/// a.\n b!\n(x)\n .x /y -z _w",
    "\u4F60\u597D\u4E16\u754C\u3002\u65E5\u672C\u8A9E\u306E\u30C6\u30B9\u30C8 \u4E2D\u6587abc\u4E2D\u6587 123\u4E2D\u6587456 \uD55C\uAD6D\uC5B4 \uFF01\uFF1F",
    "\u041F\u0440\u0438\u0432\u0435\u0442 \u043C\u0438\u0440 \u0395\u03BB\u03BB\u03B7\u03BD\u03B9\u03BA\u03AC \u05E9\u05DC\u05D5\u05DD \u0645\u0631\u062D\u0628\u0627 \u0928\u092E\u0938\u094D\u0924\u0947 \u0E2A\u0E27\u0E31\u0E2A\u0E14\u0E35 \u01C5 \u02B0",
    "caf\u00E9 na\u00EFve \u00FCber \u00DF\u017F \u00C5ngstr\u00F6m \U0001F60A\U0001F680 \U0001F468\u200D\U0001F469 \u20AC\u00A3 \u2026\u2014\u201Cq\u201D \u00A0x\u3000y\u2003z"};

std::vector<std::string_view> pieces_of(std::string_view text, const std::vector<Splitter>& steps) {
  std::vector<std::string_view> pieces, before;
  std::size_t characters_read = 0;
  cut(text, steps, pieces, before, characters_read);
  return pieces;
}

std::vector<Splitter> splitters_of(const PreTokenizer& pre) {
  std::vector<Splitter> steps;
  for (const std::string_view pattern : pre.patterns)
    if (!pattern.empty()) steps.emplace_back(pattern);
  return steps;
}

[[noreturn]] void refuse(const std::string& expected, const std::string& got) {
  throw Error(ErrorKind::unsupported, "[convert] tokenizer.json: expected " + expected + ", got " + got);
}

class FolderVocabulary {
 public:
  FolderVocabulary(const formats::CheckpointFile& folder, int num_tokens) : original_(load_tokenizer(folder)) {
    with_tokenizer_parts(folder.get_string("tokenizer.huggingface.json").value_or(""), {}, [&](PipelineParts parts) {
      if (parts.scores) refuse("a BPE model", "a Unigram one, for which GGUF files have no model in use");
      check_normalizer(parts);
      add_tokens(parts, num_tokens);
      is_byte_level_ = std::ranges::any_of(parts.steps, [](const CutStep& step) { return std::holds_alternative<ByteLetters>(step); });
      is_byte_level_ ? find_pre_tokenizers(parts) : add_scores(parts);
      if (is_byte_level_) add_merges(parts);
      adds_space_ = adds_space(parts);
    });
  }

  void write(formats::GgufWriter& writer) const {
    if (!is_byte_level_) {
      set(writer, "");
      if (same_as_original(writer)) return;
      refuse("merges in the order of their results", "others");
    }
    for (const std::string_view name : pre_tokenizers_) {
      set(writer, name);
      if (same_as_original(writer)) return;
    }
    refuse("a pattern that cuts words as a named pre-tokenizer does", "another");
  }

 private:
  void check_normalizer(const PipelineParts& parts) {
    for (const NormalizerStep& step : parts.normalizer) {
      const bool is_nfc = step.kind == NormalizerStep::normal_form && step.form == NormalForm::nfc;
      const bool marks = (step.kind == NormalizerStep::prepend && step.text == kMarkedSpace) ||
                         (step.kind == NormalizerStep::replace && step.literal == " " && step.text == kMarkedSpace);
      composes_ = composes_ || is_nfc;
      if (!is_nfc && !marks) refuse("a normalizer of NFC, or one that marks spaces", "another");
    }
  }

  void add_tokens(const PipelineParts& parts, int num_tokens) {
    const Vocabulary& vocabulary = parts.vocabulary;
    // GGUF's numbers, by TokenKind.
    const auto type_of = [](TokenKind kind) {
      switch (kind) {
        case TokenKind::unknown: return 2;
        case TokenKind::control: return 3;
        case TokenKind::user_defined: return 4;
        case TokenKind::unused: return 5;
        case TokenKind::byte: return 6;
        default: return 1;
      }
    };
    const auto count = static_cast<std::size_t>(std::max(num_tokens, static_cast<int>(vocabulary.size())));
    tokens_.resize(count);
    types_.assign(count, type_of(TokenKind::unused));
    for (std::size_t id = 0; id < count; ++id) tokens_[id] = "[PAD" + std::to_string(id) + "]";
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      const auto index = static_cast<std::size_t>(id);
      if (vocabulary.kind(id) == TokenKind::unused) continue;
      tokens_[index] = vocabulary.texts[index];
      types_[index] = type_of(vocabulary.kind(id));
    }
    for (const AddedToken& token : parts.added) tokens_[static_cast<std::size_t>(token.id)] = token.content;
  }

  // Those that cut as the file's steps do.
  void find_pre_tokenizers(const PipelineParts& parts) {
    std::vector<Splitter> steps;
    for (const CutStep& step : parts.steps) {
      if (const auto* splitter = std::get_if<Splitter>(&step)) steps.push_back(*splitter);
      if (std::holds_alternative<SpacePrefix>(step) || std::holds_alternative<MarkSpaces>(step))
        refuse("a pre_tokenizer that cuts by patterns alone", "one that adds or marks spaces");
    }
    for (const PreTokenizer& pre : all_pre_tokenizers()) {
      const std::vector<Splitter> named = splitters_of(pre);
      if (pre.name != "default" && std::ranges::all_of(kProbes, [&](std::string_view probe) {
            return pieces_of(probe, steps) == pieces_of(probe, named);
          }))
        pre_tokenizers_.push_back(pre.name);
    }
  }

  void add_merges(const PipelineParts& parts) {
    for (const auto& [left, right] : parts.merges) merges_.push_back(std::string(left) + " " + std::string(right));
  }

  // A piece's score is the rank of the first merge that makes it; what no merge makes comes last.
  void add_scores(const PipelineParts& parts) {
    scores_.resize(tokens_.size());
    for (std::size_t id = 0; id < tokens_.size(); ++id) scores_[id] = -static_cast<float>(parts.merges.size() + id);
    PieceMap pieces(tokens_.size());
    const Vocabulary& vocabulary = parts.vocabulary;
    for (TokenId id = 0; id < vocabulary.size(); ++id)
      if (parts.in_model[static_cast<std::size_t>(id)]) pieces.insert(vocabulary.texts, id);
    std::string joined;
    for (std::size_t rank = parts.merges.size(); rank-- > 0;) {
      joined.assign(parts.merges[rank].first).append(parts.merges[rank].second);
      const TokenId id = pieces.find(vocabulary.texts, joined);
      if (id >= 0) scores_[static_cast<std::size_t>(id)] = -static_cast<float>(rank);
    }
  }

  static bool adds_space(const PipelineParts& parts) {
    return std::ranges::any_of(parts.normalizer, [](const NormalizerStep& step) { return step.kind == NormalizerStep::prepend; }) ||
           std::ranges::any_of(parts.steps, [](const CutStep& step) {
             const auto* marks = std::get_if<MarkSpaces>(&step);
             return marks != nullptr && marks->prepend != MarkSpaces::never;
           });
  }

  void set(formats::GgufWriter& writer, std::string_view pre) const {
    const std::string prefix = "tokenizer.ggml.";
    writer.set(prefix + "model", is_byte_level_ ? "gpt2" : "llama");
    writer.set(prefix + "pre", is_byte_level_ ? pre : "default");
    writer.set(prefix + "tokens", tokens_);
    writer.set(prefix + "token_type", types_);
    if (is_byte_level_) writer.set(prefix + "merges", merges_);
    if (!is_byte_level_) writer.set(prefix + "scores", scores_);
    const auto set_id = [&](const char* key, TokenId id) {
      if (id >= 0) writer.set(prefix + key, static_cast<std::uint32_t>(id));
    };
    set_id("bos_token_id", original_->bos_id());
    set_id("eos_token_id", original_->eos_id());
    set_id("unknown_token_id", original_->unknown_id());
    writer.set(prefix + "add_bos_token", original_->adds_bos());
    if (!is_byte_level_) writer.set(prefix + "add_space_prefix", adds_space_);
  }

  // A reader of what is written has the folder's ids, for the probes and for the text of every token; but for a text that
  // the folder's normalizer composes, which GGUF's readers don't.
  bool same_as_original(const formats::GgufWriter& writer) const {
    const std::vector<std::byte> header = writer.header();
    formats::GgufFile file(header);
    const auto written = load_tokenizer(file);
    const auto same = [&](std::string_view text) {
      const std::vector<TokenId> ids = original_->tokenize(text);
      return written->tokenize(text) == ids || (composes_ && detokenize(*original_, ids) != text);
    };
    for (const std::string_view probe : kProbes)
      if (!same(probe)) return false;
    for (TokenId id = 0; id < original_->vocab_size(); ++id)
      if (original_->kind(id) == TokenKind::normal && !same(original_->bytes(id, false))) return false;
    return true;
  }

  std::unique_ptr<Tokenizer> original_;
  bool is_byte_level_ = false, adds_space_ = false, composes_ = false;
  std::vector<std::string> tokens_, merges_;
  std::vector<std::int32_t> types_;
  std::vector<float> scores_;
  std::vector<std::string_view> pre_tokenizers_;
};

}  // namespace

void write_vocabulary(const formats::CheckpointFile& folder, int num_tokens, formats::GgufWriter& writer) {
  FolderVocabulary(folder, num_tokens).write(writer);
}

}  // namespace couplet::text
