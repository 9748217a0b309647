#include "text/pipeline.h"

#include <algorithm>

#include "couplet/error.h"
#include "text/utf8.h"

namespace couplet::text {
namespace {

// Places in a word are 32-bit numbers, and byte letters may make a text twice as long.
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30U;

struct Scratch {
  explicit Scratch(std::size_t text_bytes) : model(text_bytes) {}
  ModelScratch model;
  std::vector<std::string_view> pieces, before;
  std::string text, rewritten;
  std::vector<std::size_t> ends;
  std::size_t characters_read = 0;
};

class PipelineTokenizer final : public Tokenizer {
 public:
  explicit PipelineTokenizer(PipelineParts parts)
      : name_(parts.pre_tokenizer),
        vocabulary_(std::move(parts.vocabulary)),
        normalizer_(std::move(parts.normalizer)),
        steps_(std::move(parts.steps)),
        prefix_(std::move(parts.prefix)),
        added_(std::move(parts.added), normalizer_) {
    if (parts.scores) {
      unigram_.emplace(vocabulary_, parts.in_model, std::move(*parts.scores), parts.bpe.byte_fallback);
    } else {
      bpe_.emplace(vocabulary_, parts.in_model, parts.merges, parts.bpe);
    }
    load_letters(parts.in_model);
  }

  std::vector<TokenId> tokenize(std::string_view text, TokenizeOptions options) const override {
    if (text.size() > kMaxTextBytes) {
      throw Error(ErrorKind::resource, "[tokenizer] text: expected at most " + std::to_string(kMaxTextBytes) +
                                           " bytes, got " + std::to_string(text.size()));
    }
    Scratch scratch(text.size());
    std::vector<TokenId> ids;
    ids.reserve(text.size() / 3 + 4);
    if (options.bos && vocabulary_.adds_bos) ids = prefix_;
    append_all(text, options.special, scratch, ids);
    return ids;
  }

  std::size_t inexpressible(std::string_view text) const override {
    Scratch scratch(0);
    scratch.model.counts = true;
    std::vector<TokenId> ids;
    append_all(text, false, scratch, ids);
    return scratch.model.inexpressible;
  }

  int vocab_size() const override { return vocabulary_.size(); }
  TokenKind kind(TokenId id) const override { return is_token(id) ? vocabulary_.kind(id) : TokenKind::unused; }
  std::string_view vocabulary_text(TokenId id) const override {
    return is_token(id) ? vocabulary_.texts[static_cast<std::size_t>(id)] : std::string_view();
  }
  std::string bytes(TokenId id, bool special) const override {
    const bool is_special = kind(id) == TokenKind::control || kind(id) == TokenKind::unknown;
    if (is_special) return special ? std::string(vocabulary_text(id)) : std::string();
    return is_token(id) ? std::string(vocabulary_.bytes[static_cast<std::size_t>(id)]) : std::string();
  }

  bool adds_bos() const override { return vocabulary_.adds_bos; }
  TokenId bos_id() const override { return vocabulary_.bos; }
  TokenId eos_id() const override { return vocabulary_.eos; }
  TokenId unknown_id() const override { return vocabulary_.unknown; }
  std::span<const TokenId> end_ids() const override { return vocabulary_.end_ids; }
  std::string_view family() const override { return bpe_ ? "bpe" : "unigram"; }
  std::string_view pre_tokenizer() const override { return name_; }

 private:
  bool is_token(TokenId id) const { return id >= 0 && id < vocabulary_.size(); }

  // A byte whose letter the vocabulary lacks takes its whole character to U+FFFD, where that can be spelled.
  void load_letters(const std::vector<bool>& in_model) {
    PieceMap pieces(in_model.size());
    for (TokenId id = 0; id < vocabulary_.size(); ++id) {
      if (in_model[static_cast<std::size_t>(id)]) pieces.insert(vocabulary_.texts, id);
    }
    for (std::size_t byte = 0; byte < 256; ++byte) {
      letters_[byte] = byte_letter(static_cast<unsigned char>(byte));
      lacks_[byte] = pieces.find(vocabulary_.texts, letters_[byte]) < 0;
    }
    lacks_any_ = std::find(lacks_.begin(), lacks_.end(), true) != lacks_.end();
  }

  void append_all(std::string_view text, bool special, Scratch& scratch, std::vector<TokenId>& ids) const {
    const auto token = [&](TokenId id) { ids.push_back(id); };
    added_.cut(text, false, special,
               [&](std::size_t begin, std::size_t end) {
                 scratch.text = normalize(normalizer_, text.substr(begin, end - begin));
                 const std::string normalized = scratch.text;
                 added_.cut(normalized, true, special,
                            [&](std::size_t from, std::size_t to) {
                              const bool is_first = begin == 0 && from == 0;
                              append_stretch(std::string_view(normalized).substr(from, to - from), is_first, scratch,
                                             ids);
                            },
                            token);
               },
               token);
  }

  void append_stretch(std::string_view stretch, bool is_first, Scratch& scratch, std::vector<TokenId>& ids) const {
    std::vector<std::string_view>& pieces = scratch.pieces;
    pieces.assign(1, stretch);
    for (const CutStep& step : steps_) {
      if (const auto* splitter = std::get_if<Splitter>(&step)) {
        pieces.swap(scratch.before);
        pieces.clear();
        for (const std::string_view piece : scratch.before) splitter->split(piece, pieces, scratch.characters_read);
      } else {
        rewrite(step, is_first, scratch);
      }
    }
    for (const std::string_view piece : pieces) {
      if (bpe_) {
        bpe_->append(piece, scratch.model, ids);
      } else {
        unigram_->append(piece, scratch.model, ids);
      }
    }
  }

  // The pieces as the step spells them.
  void rewrite(const CutStep& step, bool is_first, Scratch& scratch) const {
    std::string out;
    std::vector<std::size_t>& ends = scratch.ends;
    ends.clear();
    for (std::size_t i = 0; i < scratch.pieces.size(); ++i) {
      const std::string_view piece = scratch.pieces[i];
      if (const auto* marks = std::get_if<MarkSpaces>(&step)) {
        append_marked(piece, *marks, is_first && i == 0, out);
      } else if (std::holds_alternative<SpacePrefix>(step)) {
        if (!piece.starts_with(' ')) out += ' ';
        out += piece;
      } else {
        append_letters(piece, scratch, out);
      }
      ends.push_back(out.size());
    }
    scratch.rewritten.swap(out);
    scratch.pieces.clear();
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      if (begin < end) scratch.pieces.push_back(std::string_view(scratch.rewritten).substr(begin, end - begin));
      begin = end;
    }
  }

  static void append_marked(std::string_view piece, const MarkSpaces& marks, bool is_first, std::string& out) {
    const std::size_t begin = out.size();
    for (const char byte : piece) {
      if (byte == ' ') {
        out += marks.mark;
      } else {
        out += byte;
      }
    }
    const bool wants_mark = marks.prepend == MarkSpaces::always || (marks.prepend == MarkSpaces::first && is_first);
    if (wants_mark && !std::string_view(out).substr(begin).starts_with(marks.mark)) out.insert(begin, marks.mark);
  }

  void append_letters(std::string_view piece, Scratch& scratch, std::string& out) const {
    if (!lacks_any_) {
      for (const char byte : piece) out += letters_[static_cast<unsigned char>(byte)];
      return;
    }
    const auto is_lacking = [this](char byte) { return lacks_[static_cast<unsigned char>(byte)]; };
    const bool has_replacement = std::none_of(kReplacement.begin(), kReplacement.end(), is_lacking);
    for (const char *at = piece.data(), *end = at + piece.size(); at != end;) {
      std::string_view character(at, read_char(at, end).length);
      at += character.size();
      if (has_replacement && std::any_of(character.begin(), character.end(), is_lacking)) {
        ++scratch.model.inexpressible;
        character = kReplacement;
      }
      for (const char byte : character) out += letters_[static_cast<unsigned char>(byte)];
    }
  }

  std::string_view name_;
  Vocabulary vocabulary_;
  std::vector<NormalizerStep> normalizer_;
  std::vector<CutStep> steps_;
  std::vector<TokenId> prefix_;
  AddedTokens added_;
  std::optional<BpeModel> bpe_;
  std::optional<UnigramModel> unigram_;
  std::array<std::string, 256> letters_;
  std::array<bool, 256> lacks_{};
  bool lacks_any_ = false;
};

}  // namespace

std::unique_ptr<Tokenizer> make_pipeline(PipelineParts parts) {
  return std::make_unique<PipelineTokenizer>(std::move(parts));
}

}  // namespace couplet::text
