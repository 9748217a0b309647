#include "text/spm.h"

#include <algorithm>
#include <bitset>
#include <numeric>

#include "text/utf8.h"

namespace couplet::text {
namespace {

class SpmTokenizer final : public VocabularyTokenizer {
 public:
  SpmTokenizer(Vocabulary vocabulary, const std::vector<float>& scores, bool adds_space_prefix)
      : VocabularyTokenizer(std::move(vocabulary)),
        pieces_(this->vocabulary().kinds.size()),
        ranks_(make_ranks(scores)),
        adds_space_prefix_(adds_space_prefix) {
    byte_ids_.fill(-1);
    for (TokenId id = 0; id < this->vocabulary().size(); ++id) add_piece(id);
    const bool has_all_bytes = std::find(byte_ids_.begin(), byte_ids_.end(), -1) == byte_ids_.end();
    std::array<bool, 256> may_lack{};
    may_lack.fill(!has_all_bytes);
    set_inexpressible(may_lack);
  }

  std::string_view family() const override { return "spm"; }
  std::string_view pre_tokenizer() const override { return ""; }

 protected:
  std::string_view normalize(std::string_view stretch, std::string& buffer) const override {
    if (stretch.empty() || !adds_space_prefix_) return stretch;
    buffer.assign(1, ' ').append(stretch);
    return buffer;
  }

  bool expresses(std::string_view character) const override {
    if (pieces_.find(vocabulary().bytes, character) >= 0) return true;
    return std::all_of(character.begin(), character.end(),
                       [this](char byte) { return byte_ids_[static_cast<unsigned char>(byte)] >= 0; });
  }

  void append_text(std::string_view text, TokenizeScratch& scratch,
                   std::vector<TokenId>& ids) const override {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = end_of_word(text, begin);
      const std::string_view word = text.substr(begin, end - begin);
      scratch.cache.append(word, ids, [&] { append_word(word, scratch.merge, ids); });
      begin = end;
    }
  }

 private:
  // Equal scores are one rank: the leftmost pair goes first.
  static std::vector<std::uint32_t> make_ranks(const std::vector<float>& scores) {
    std::vector<std::uint32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto better = [&](std::uint32_t a, std::uint32_t b) { return scores[a] > scores[b]; };
    if (!std::is_sorted(order.begin(), order.end(), better)) std::sort(order.begin(), order.end(), better);
    std::vector<std::uint32_t> ranks(scores.size());
    std::uint32_t rank = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0 && better(order[i - 1], order[i])) ++rank;
      ranks[order[i]] = rank;
    }
    return ranks;
  }

  // Only normal pieces come out of merges: text never becomes a control token, nor a byte token that it
  // spells.
  void add_piece(TokenId id) {
    const std::string_view bytes = vocabulary().bytes[static_cast<std::size_t>(id)];
    if (vocabulary().kind(id) == TokenKind::byte) {
      TokenId& known = byte_ids_[static_cast<unsigned char>(bytes[0])];
      if (known < 0) known = id;
    }
    if (vocabulary().kind(id) != TokenKind::normal) return;
    pieces_.insert(vocabulary().bytes, id);
    for (std::size_t i = 1; i < bytes.size(); ++i) neighbours_.set(pair(bytes, i));
  }

  static std::size_t pair(std::string_view bytes, std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i - 1])) << 8U |
           static_cast<unsigned char>(bytes[i]);
  }

  // A word goes on for as long as some piece might cross. Cutting where no piece has the two neighbouring
  // bytes changes no merge; in prose that is before nearly every space.
  std::size_t end_of_word(std::string_view text, std::size_t begin) const {
    std::size_t end = begin + 1;
    while (end < text.size() && (is_continuation(text[end]) || neighbours_[pair(text, end)])) ++end;
    return end;
  }

  void append_word(std::string_view word, MergeScratch& scratch, std::vector<TokenId>& ids) const {
    scratch.symbols.clear();
    for (std::uint32_t at = 0; at < word.size();) {
      const std::uint32_t length = read_char(word.data() + at, word.data() + word.size()).length;
      scratch.symbols.push_back({at, length, -1});
      at += length;
    }
    merge_symbols(scratch, [&](const Symbol& left, const Symbol& right) -> Merge {
      const TokenId id =
          pieces_.find(vocabulary().bytes, word.substr(left.begin, left.length + right.length));
      if (id < 0) return {};
      return {ranks_[static_cast<std::size_t>(id)], id};
    });
    for (const Symbol& symbol : scratch.symbols) append_symbol(symbol, word, ids);
  }

  void append_symbol(const Symbol& symbol, std::string_view word, std::vector<TokenId>& ids) const {
    const std::string_view bytes = word.substr(symbol.begin, symbol.length);
    const TokenId id = symbol.id >= 0 ? symbol.id : pieces_.find(vocabulary().bytes, bytes);
    if (id >= 0) return ids.push_back(id);
    for (const char byte : bytes) ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
  }

  PieceMap pieces_;                   // normal tokens by their bytes
  std::vector<std::uint32_t> ranks_;  // [id]
  std::array<TokenId, 256> byte_ids_{};
  std::bitset<65536> neighbours_;  // [byte * 256 + next byte]: some piece has the two side by side
  bool adds_space_prefix_;
};

}  // namespace

std::unique_ptr<VocabularyTokenizer> load_spm(const formats::CheckpointFile& file) {
  Vocabulary vocabulary = load_vocabulary(file, Spelling::marked_spaces, true);
  const std::vector<float> scores = load_scores(file, vocabulary.kinds.size());
  const bool adds_space_prefix = file.get_bool("tokenizer.ggml.add_space_prefix").value_or(true);
  return std::make_unique<SpmTokenizer>(std::move(vocabulary), scores, adds_space_prefix);
}

}  // namespace couplet::text
