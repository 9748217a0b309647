#include "text/tokenizer_json.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "couplet/error.h"
#include "formats/json.h"
#include "formats/printable.h"
#include "text/pipeline.h"
#include "text/tokenizer_json_steps.h"

namespace couplet::text {
namespace {

using formats::in_quotes;
using formats::JsonDocument;
using formats::JsonObject;

constexpr std::size_t kMaxJsonBytes = std::size_t{512} << 20U;

JsonDocument parse(std::string_view text, const char* where) {
  return {std::as_bytes(std::span(text)), where, kMaxJsonBytes};
}

class Reader {
 public:
  Reader(JsonObject file, const TokenizerNames& names) : file_(std::move(file)), names_(names) {}

  PipelineParts read() {
    parts_.pre_tokenizer = "tokenizer.json";
    parts_.normalizer = read_normalizer(file_.get_object("normalizer"));
    parts_.steps = read_cut_steps(file_.get_object("pre_tokenizer"));
    const auto model = file_.get_object("model");
    if (!model) file_.refuse("model", "an object", "nothing");
    const std::string_view type = model->get_string("type").value_or("BPE");
    if (type != "BPE" && type != "Unigram") refuse_unknown(*model, "a type among BPE, Unigram", type);
    type == "BPE" ? read_bpe_vocabulary(*model) : read_unigram_vocabulary(*model);
    for (const Entry& entry : spelled_) ids_.emplace(entry.text, entry.id);
    next_id_ = static_cast<TokenId>(spelled_.size());
    if (const auto added = file_.get_objects("added_tokens")) {
      for (const JsonObject& one : *added) read_added(one);
    }
    fill_vocabulary(*model);
    if (type == "BPE") read_merges(*model);
    read_ends();
    return std::move(parts_);
  }

 private:
  void put(const JsonObject& where, const char* key, std::uint64_t id, std::string_view text, bool in_model) {
    if (id >= 0x7FFFFFFF || text.size() > kMaxPieceBytes)
      where.refuse(key, "ids below 2147483647 and at most " + std::to_string(kMaxPieceBytes) + " bytes a token",
                   std::to_string(id) + " and " + std::to_string(text.size()));
    const auto token = static_cast<TokenId>(id);
    spelled_.push_back({token, text, in_model});
    largest_ = std::max(largest_, token);
  }

  void read_bpe_vocabulary(const JsonObject& model) {
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const std::string_view affix = model.get_string(key).value_or("");
      if (!affix.empty()) refuse_unknown(model, std::string("no ") + key, affix);
    }
    if (model.get_float("dropout").value_or(0) != 0) refuse_unknown(model, "no dropout", "some");
    const auto vocab = model.get_object("vocab");
    if (!vocab) model.refuse("vocab", "an object", "nothing");
    for (const simdjson::dom::key_value_pair entry : vocab->object()) {
      std::uint64_t id = 0;
      if (entry.value.get(id) != simdjson::SUCCESS) vocab->refuse(entry.key, "a whole number of at least 0", "something else");
      put(model, "vocab", id, entry.key, true);
    }
    const auto has = [&](const char* key) { return model.get_bool(key).value_or(false); };
    parts_.bpe = {has("byte_fallback"), has("fuse_unk"), has("ignore_merges")};
    if (const auto unknown = model.get_string("unk_token")) {
      const auto found = std::ranges::find(spelled_, *unknown, &Entry::text);
      if (found != spelled_.end()) unknown_ = found->id;
      if (unknown_ < 0) model.refuse("unk_token", "a token of the vocabulary", in_quotes(*unknown));
    }
  }

  void read_unigram_vocabulary(const JsonObject& model) {
    const auto vocab = model.get_list("vocab");
    if (!vocab) model.refuse("vocab", "an array", "nothing");
    std::vector<double>& scores = parts_.scores.emplace().pieces;
    for (const simdjson::dom::element entry : *vocab) {
      std::string_view text;
      double score = 0;
      if (entry.at(0).get(text) != simdjson::SUCCESS || entry.at(1).get(score) != simdjson::SUCCESS)
        model.refuse("vocab", "pieces with their scores", "something else in entry " + std::to_string(scores.size()));
      put(model, "vocab", scores.size(), text, true);
      scores.push_back(score);
    }
    parts_.scores->unknown = (scores.empty() ? 0 : std::ranges::min(scores)) - kUnknownPenalty;
    parts_.bpe.byte_fallback = model.get_bool("byte_fallback").value_or(false);
    if (const auto unknown = model.get_uint("unk_id")) {
      if (*unknown >= scores.size()) model.refuse("unk_id", "an id of the vocabulary", std::to_string(*unknown));
      unknown_ = static_cast<TokenId>(*unknown);
    }
  }

  // -1: none.
  TokenId find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? -1 : found->second;
  }

  // Its id is the model's, or the next that is free, whatever the file says: so it is where the file was made.
  void read_added(const JsonObject& one) {
    const std::string_view content = need_string(one, "content");
    if (content.empty()) return;
    const auto [known, is_new] = ids_.emplace(content, next_id_);
    if (is_new) ++next_id_;
    put(one, "id", static_cast<std::uint64_t>(known->second), content, false);
    const auto has = [&](const char* key) { return one.get_bool(key).value_or(false); };
    AddedToken token{.id = known->second, .content = std::string(content)};
    token.special = has("special");
    token.lstrip = has("lstrip");
    token.rstrip = has("rstrip");
    token.single_word = has("single_word");
    token.normalized = one.get_bool("normalized").value_or(!token.special);
    parts_.added.push_back(std::move(token));
  }

  // Lays the tokens out by id: the model's, then what is added over them.
  void fill_vocabulary(const JsonObject& model) {
    // A vocabulary has few holes: an id far beyond the number of tokens is a lie.
    const auto size = static_cast<std::size_t>(largest_ + 1);
    if (size == 0 || size > 2 * spelled_.size() + 1024)
      model.refuse("vocab", "ids that lie close together",
                   std::to_string(spelled_.size()) + " tokens with ids up to " + std::to_string(largest_));
    Vocabulary& vocabulary = parts_.vocabulary;
    std::vector<std::string_view> texts(size);
    vocabulary.kinds.assign(size, TokenKind::unused);
    parts_.in_model.assign(size, false);
    for (const auto& [id, text, in_model] : spelled_) {
      const auto index = static_cast<std::size_t>(id);
      if (in_model && parts_.in_model[index])
        model.refuse("vocab", "an id a token", "two tokens with id " + std::to_string(id));
      // An id that the model has keeps the model's spelling: its merges are written with it.
      if (!parts_.in_model[index]) texts[index] = text;
      if (in_model) parts_.in_model[index] = true;
      const bool is_byte = parts_.bpe.byte_fallback && spelled_byte(text) >= 0;
      vocabulary.kinds[index] = is_byte ? TokenKind::byte : TokenKind::normal;
    }
    for (const AddedToken& token : parts_.added)
      vocabulary.kinds[static_cast<std::size_t>(token.id)] = token.special ? TokenKind::control : TokenKind::user_defined;
    if (unknown_ >= 0) vocabulary.kinds[static_cast<std::size_t>(unknown_)] = TokenKind::unknown;
    vocabulary.unknown = unknown_;
    const bool has_letters = std::any_of(parts_.steps.begin(), parts_.steps.end(), [](const CutStep& step) {
      return std::holds_alternative<ByteLetters>(step);
    });
    const Spelling spelling = has_letters ? Spelling::byte_letters : read_spelling(file_.get_object("decoder"));
    for (std::size_t i = 0; i < size; ++i) {
      vocabulary.texts.add(texts[i]);
      vocabulary.bytes.add(token_bytes(texts[i], vocabulary.kinds[i], spelling));
    }
  }

  // A merge is "left right", or a pair.
  void read_merges(const JsonObject& model) {
    const auto merges = model.get_list("merges");
    if (!merges) model.refuse("merges", "an array", "nothing");
    for (const simdjson::dom::element merge : *merges) {
      std::string_view left, right;
      if (merge.get(left) == simdjson::SUCCESS) {
        const std::size_t space = std::min(left.find(' ', 1), left.size());
        right = left.substr(std::min(space + 1, left.size()));
        left = left.substr(0, space);
      } else {
        simdjson::dom::array pair;
        if (merge.get(pair) != simdjson::SUCCESS || pair.size() != 2 || pair.at(0).get(left) != simdjson::SUCCESS ||
            pair.at(1).get(right) != simdjson::SUCCESS)
          left = {};
      }
      if (left.empty() || right.empty())
        model.refuse("merges", "two pieces a merge", "something else in entry " + std::to_string(parts_.merges.size()));
      parts_.merges.emplace_back(left, right);
    }
  }

  void read_ends() {
    Vocabulary& vocabulary = parts_.vocabulary;
    for (const std::uint64_t id : read_prefix(file_.get_object("post_processor"))) {
      if (id > static_cast<std::uint64_t>(largest_))
        file_.refuse("post_processor", "ids of the vocabulary", std::to_string(id));
      parts_.prefix.push_back(static_cast<TokenId>(id));
    }
    if (!names_.bos.empty()) vocabulary.bos = find(names_.bos);
    if (vocabulary.bos < 0 && !parts_.prefix.empty()) vocabulary.bos = parts_.prefix[0];
    if (names_.adds_bos) {
      const bool adds = *names_.adds_bos && vocabulary.bos >= 0;
      if (!adds) parts_.prefix.clear();
      if (adds && parts_.prefix.empty()) parts_.prefix = {vocabulary.bos};
    }
    vocabulary.adds_bos = !parts_.prefix.empty();
    if (!names_.eos.empty()) vocabulary.eos = find(names_.eos);
    std::vector<TokenId> ends = {vocabulary.eos};
    for (const std::int64_t id : names_.end_ids) {
      if (id < 0 || id > largest_)
        throw Error(ErrorKind::format, "[tokenizer] \"eos_token_id\": expected ids below " + std::to_string(largest_ + 1) +
                                           ", the tokens of tokenizer.json, got " + std::to_string(id));
      ends.push_back(static_cast<TokenId>(id));
    }
    vocabulary.end_ids = find_end_ids(vocabulary, std::move(ends));
  }

  struct Entry {
    TokenId id;
    std::string_view text;
    bool in_model;
  };
  JsonObject file_;
  const TokenizerNames& names_;
  PipelineParts parts_;
  std::vector<Entry> spelled_;
  std::unordered_map<std::string_view, TokenId> ids_;
  TokenId next_id_ = 0;  // of a token that only the list of added ones has
  TokenId largest_ = -1, unknown_ = -1;
};

}  // namespace

void with_tokenizer_parts(std::string_view tokenizer_json, const TokenizerNames& names,
                          const std::function<void(PipelineParts)>& use) {
  const JsonDocument file = parse(tokenizer_json, "[tokenizer] tokenizer.json");
  use(Reader(file.root(), names).read());
}

std::unique_ptr<Tokenizer> load_tokenizer_json(std::string_view tokenizer_json, const TokenizerNames& names) {
  std::unique_ptr<Tokenizer> tokenizer;
  with_tokenizer_parts(tokenizer_json, names, [&](PipelineParts parts) { tokenizer = make_pipeline(std::move(parts)); });
  return tokenizer;
}

}  // namespace couplet::text
