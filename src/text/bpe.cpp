#include "text/bpe.h"

#include <optional>

#include "couplet/error.h"
#include "text/pretokenize.h"
#include "text/splitter.h"

namespace couplet::text {
namespace {

class BpeTokenizer final : public VocabularyTokenizer {
 public:
  BpeTokenizer(Vocabulary vocabulary, const PreTokenizer& pre, const std::vector<std::string_view>& merges)
      : VocabularyTokenizer(std::move(vocabulary)),
        pre_(&pre),
        merges_(merges.size()) {
    for (const std::string_view pattern : pre.patterns) {
      if (!pattern.empty()) splitters_.emplace_back(pattern);
    }
    const PieceMap spelled = map_pieces(this->vocabulary().texts, pre.whole_words);
    load_byte_ids(spelled);
    load_merges(spelled, merges);
  }

  std::string_view family() const override { return "bpe"; }
  std::string_view pre_tokenizer() const override { return pre_->name; }

 protected:
  bool expresses(std::string_view character) const override {
    for (const char byte : character) {
      if (byte_ids_[static_cast<unsigned char>(byte)] < 0) return false;
    }
    return true;
  }

  void append_text(std::string_view text, TokenizeScratch& scratch,
                   std::vector<TokenId>& ids) const override {
    const auto append = [&](std::string_view word) {
      scratch.cache.append(word, ids, [&] { append_word(word, scratch.merge, ids); });
    };
    const WordPattern& pattern = splitters_[0].pattern();
    if (splitters_.size() > 1 || !pattern.always_matches()) {
      cut(text, splitters_, scratch.words, scratch.cut_words, scratch.characters_read);
      for (const std::string_view word : scratch.words) append(word);
      return;
    }
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = pattern.end_of_word(text, begin, scratch.characters_read);
      append(text.substr(begin, end - begin));
      begin = end;
    }
  }

 private:
  // Also fills words_, where whole words count.
  PieceMap map_pieces(const StringTable& texts, bool whole_words) {
    PieceMap spelled(texts.size());
    if (whole_words) words_.emplace(texts.size());
    for (TokenId id = 0; id < vocabulary().size(); ++id) {
      spelled.insert(texts, id);
      if (whole_words && vocabulary().kind(id) == TokenKind::normal) words_->insert(vocabulary().bytes, id);
    }
    return spelled;
  }

  void load_byte_ids(const PieceMap& spelled) {
    std::array<bool, 256> missing{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const TokenId id = spelled.find(vocabulary().texts, byte_letter(static_cast<unsigned char>(byte)));
      byte_ids_[byte] = id >= 0 && vocabulary().kind(id) == TokenKind::normal ? id : -1;
      missing[byte] = byte_ids_[byte] < 0;
    }
    set_inexpressible(missing);
  }

  void load_merges(const PieceMap& spelled, const std::vector<std::string_view>& merges) {
    std::string joined;
    for (std::size_t i = 0; i < merges.size(); ++i) {
      const std::size_t space = merges[i].find(' ', 1);
      const std::string_view left = merges[i].substr(0, space);
      const std::string_view right =
          space == std::string_view::npos ? std::string_view() : merges[i].substr(space + 1);
      joined.assign(left).append(right);
      const TokenId ids[] = {find(spelled, left, i), find(spelled, right, i), find(spelled, joined, i)};
      // Text never becomes a control token: a merge that would make one is left out.
      const TokenKind kind = vocabulary().kind(ids[2]);
      if (kind == TokenKind::control || kind == TokenKind::unknown) continue;
      merges_.insert(ids[0], ids[1], {static_cast<std::uint32_t>(i), ids[2]});
    }
  }

  TokenId find(const PieceMap& spelled, std::string_view piece, std::size_t merge) const {
    const TokenId id = spelled.find(vocabulary().texts, piece);
    if (id >= 0) return id;
    throw Error(ErrorKind::format,
                "[tokenizer] tokenizer.ggml.merges: expected entry " + std::to_string(merge) +
                    " to join two tokens to a third, got one that is not in the vocabulary");
  }

  void append_word(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& ids) const {
    if (words_) {
      const TokenId id = words_->find(vocabulary().bytes, word);
      if (id >= 0) return ids.push_back(id);
    }
    scratch.symbols.clear();
    for (std::uint32_t i = 0; i < word.size(); ++i) {
      scratch.symbols.push_back({i, 1, byte_ids_[static_cast<unsigned char>(word[i])]});
    }
    merge_symbols(
        scratch, [this](const Symbol& left, const Symbol& right) { return merges_.find(left.id, right.id); });
    for (const Symbol& symbol : scratch.symbols) ids.push_back(symbol.id);
  }

  const PreTokenizer* pre_;
  std::vector<Splitter> splitters_;
  PairMap merges_;
  std::array<TokenId, 256> byte_ids_{};
  std::optional<PieceMap> words_;  // normal tokens by their bytes
};

}  // namespace

std::unique_ptr<VocabularyTokenizer> load_bpe(const formats::CheckpointFile& file, std::string_view pre_tokenizer) {
  const PreTokenizer& pre =
      find_pre_tokenizer(file.get_string("tokenizer.ggml.pre").value_or("default"), pre_tokenizer);
  const auto merges = file.get_strings("tokenizer.ggml.merges");
  if (!merges)
    throw Error(ErrorKind::format,
                "[tokenizer] tokenizer.ggml.merges: expected a list of merges, got no such key");
  return std::make_unique<BpeTokenizer>(load_vocabulary(file, Spelling::byte_letters, pre.adds_bos), pre,
                                        *merges);
}

}  // namespace couplet::text
