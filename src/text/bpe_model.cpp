#include "text/bpe_model.h"

#include <algorithm>
#include <string>

#include "couplet/error.h"
#include "text/utf8.h"

namespace couplet::text {
namespace {

std::size_t meeting(char last, char first) {
  return static_cast<std::size_t>(static_cast<unsigned char>(last)) << 8U | static_cast<unsigned char>(first);
}

}  // namespace

BpeModel::BpeModel(const Vocabulary& vocabulary, const std::vector<bool>& in_model, const Merges& merges,
                   BpeOptions options)
    : vocabulary_(&vocabulary), options_(options), pieces_(in_model.size()), merges_(merges.size()) {
  quick_.fill(-1);
  byte_ids_.fill(-1);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const auto index = static_cast<std::size_t>(id);
    if (!in_model[index]) continue;
    pieces_.insert(vocabulary.texts, id);
    const std::string_view text = vocabulary.texts[index];
    if (const int byte = spelled_byte(text); options.byte_fallback && byte >= 0)
      byte_ids_[static_cast<std::size_t>(byte)] = id;
    if (text.empty()) continue;
    const Utf8Char read = read_char(text.data(), text.data() + text.size());
    if (read.kind == Utf8Char::whole && read.length == text.size() && read.code_point < kQuickChars)
      quick_[read.code_point] = id;
  }
  may_cut_ = !options.whole_words && std::find(byte_ids_.begin(), byte_ids_.end(), -1) == byte_ids_.end();
  add_merges(merges);
}

void BpeModel::add_merges(const Merges& merges) {
  std::string joined;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto& [left, right] = merges[i];
    joined.assign(left).append(right);
    const TokenId ids[] = {find(left), find(right), find(joined)};
    if (ids[0] < 0 || ids[1] < 0 || ids[2] < 0 || left.empty() || right.empty()) {
      throw Error(ErrorKind::format, "[tokenizer] tokenizer.json: expected merge " + std::to_string(i) +
                                         " to join two tokens to a third, got one that is not in the vocabulary");
    }
    // Text never becomes a control token: a merge that would make one is left out.
    const TokenKind kind = vocabulary_->kind(ids[2]);
    if (kind == TokenKind::control || kind == TokenKind::unknown) continue;
    merges_.insert(ids[0], ids[1], {static_cast<std::uint32_t>(i), ids[2]});
    joined_.set(meeting(left.back(), right.front()));
    // The bytes of a byte token are not what it is spelled with.
    for (const TokenId id : {ids[0], ids[1]}) may_cut_ = may_cut_ && vocabulary_->kind(id) != TokenKind::byte;
  }
}

std::size_t BpeModel::end_of_stretch(std::string_view word, std::size_t begin) const {
  if (!may_cut_) return word.size();
  std::size_t end = begin + 1;
  while (end < word.size() && (is_continuation(word[end]) || joined_[meeting(word[end - 1], word[end])])) ++end;
  return end;
}

void BpeModel::append(std::string_view word, ModelScratch& scratch, std::vector<TokenId>& ids) const {
  for (std::size_t begin = 0; begin < word.size();) {
    const std::size_t end = end_of_stretch(word, begin);
    const std::string_view stretch = word.substr(begin, end - begin);
    if (scratch.counts) {
      append_stretch(stretch, scratch, ids);
    } else {
      scratch.cache.append(stretch, ids, [&] { append_stretch(stretch, scratch, ids); });
    }
    begin = end;
  }
}

void BpeModel::add_unknown(Symbol symbol, std::string_view stretch, Symbol& waiting, ModelScratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.merge.symbols;
  const std::string_view bytes = stretch.substr(symbol.begin, symbol.length);
  if (std::all_of(bytes.begin(), bytes.end(),
                  [this](char byte) { return byte_ids_[static_cast<unsigned char>(byte)] >= 0; })) {
    for (std::uint32_t i = 0; i < symbol.length; ++i)
      symbols.push_back({symbol.begin + i, 1, byte_ids_[static_cast<unsigned char>(bytes[i])]});
    return;
  }
  ++scratch.inexpressible;
  symbol.id = vocabulary_->unknown >= 0 ? vocabulary_->unknown : find(kReplacement);
  if (symbol.id < 0) return;
  if (waiting.id >= 0 && options_.fuse_unknown) {
    waiting.length += symbol.length;
    return;
  }
  if (waiting.id >= 0) symbols.push_back(waiting);
  waiting = symbol;
}

void BpeModel::append_stretch(std::string_view stretch, ModelScratch& scratch, std::vector<TokenId>& ids) const {
  if (options_.whole_words) {
    const TokenId id = find(stretch);
    const TokenKind kind = id >= 0 ? vocabulary_->kind(id) : TokenKind::control;
    if (kind != TokenKind::control && kind != TokenKind::unknown) return ids.push_back(id);
  }
  std::vector<Symbol>& symbols = scratch.merge.symbols;
  symbols.clear();
  // An unknown character is put in its place by the next one that is known, after bytes that stood between.
  Symbol waiting{0, 0, -1};
  const auto put_waiting = [&] {
    if (waiting.id >= 0) symbols.push_back(waiting);
    waiting.id = -1;
  };
  for (std::uint32_t at = 0; at < stretch.size();) {
    const Utf8Char read = read_char(stretch.data() + at, stretch.data() + stretch.size());
    const TokenId id =
        read.kind == Utf8Char::whole ? id_of_char(stretch.substr(at, read.length), read.code_point) : -1;
    if (id >= 0) {
      put_waiting();
      symbols.push_back({at, read.length, id});
    } else {
      add_unknown({at, read.length, -1}, stretch, waiting, scratch);
    }
    at += read.length;
  }
  put_waiting();
  merge_symbols(scratch.merge,
                [this](const Symbol& left, const Symbol& right) { return merges_.find(left.id, right.id); });
  for (const Symbol& symbol : symbols) ids.push_back(symbol.id);
}

}  // namespace couplet::text
