#include "text/tokenizer_json.h"

#include <algorithm>
#include <string>

#include "formats/printable.h"
#include "text/json_view.h"
#include "text/pipeline.h"
#include "text/tokenizer_json_steps.h"

namespace couplet::text {
namespace {

constexpr std::size_t kMaxJsonBytes = std::size_t{512} << 20U;
constexpr std::size_t kMaxJsonDepth = 32;

JsonView parse(simdjson::dom::parser& parser, std::string_view text, const char* name) {
  const JsonView nothing({}, name);
  if (text.size() > kMaxJsonBytes)
    nothing.refuse("at most " + std::to_string(kMaxJsonBytes) + " bytes", std::to_string(text.size()));
  simdjson::dom::element element;
  auto error = parser.allocate(text.size() + 1, kMaxJsonDepth);
  if (error == simdjson::SUCCESS) error = parser.parse(text.data(), text.size()).get(element);
  if (error != simdjson::SUCCESS) nothing.refuse("JSON", simdjson::error_message(error));
  const JsonView view(element, name);
  if (!view.is_object()) view.refuse("an object", "something else");
  return view;
}

class Reader {
 public:
  Reader(JsonView file, const TokenizerNames& names) : file_(std::move(file)), names_(names) {}

  PipelineParts read() {
    parts_.normalizer = read_normalizer(file_.get("normalizer"));
    parts_.steps = read_cut_steps(file_.get("pre_tokenizer"));
    const JsonView model = file_.at("model");
    const std::string_view type = model.string("type", "BPE");
    if (type != "BPE" && type != "Unigram")
      model.refuse_unknown("a type among BPE, Unigram", formats::in_quotes(type));
    type == "BPE" ? read_bpe_vocabulary(model) : read_unigram_vocabulary(model);
    if (const auto added = file_.get("added_tokens")) added->for_each([&](const JsonView& one) { read_added(one); });
    fill_vocabulary(model);
    if (type == "BPE") read_merges(model);
    read_ends();
    return std::move(parts_);
  }

 private:
  void put(const JsonView& where, std::uint64_t id, std::string_view text, bool in_model) {
    // A vocabulary has few holes: an id far beyond the number of tokens is a lie.
    if (id >= 0x7FFFFFFF || text.size() > kMaxPieceBytes)
      where.refuse("ids below 2147483647 and at most " + std::to_string(kMaxPieceBytes) + " bytes a token",
                   std::to_string(id) + " and " + std::to_string(text.size()));
    const auto token = static_cast<TokenId>(id);
    spelled_.push_back({token, text, in_model});
    largest_ = std::max(largest_, token);
  }

  void read_bpe_vocabulary(const JsonView& model) {
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!model.string(key, "").empty()) model.at(key).refuse_unknown("none", formats::in_quotes(model.string(key, "")));
    }
    if (const auto dropout = model.get("dropout"); dropout && dropout->number() != 0)
      dropout->refuse_unknown("none", "some");
    const JsonView vocab = model.at("vocab");
    for (const simdjson::dom::key_value_pair entry : vocab.object())
      put(vocab, JsonView(entry.value, "tokenizer.json.model.vocab").index(), entry.key, true);
    parts_.bpe = {model.boolean("byte_fallback", false), model.boolean("fuse_unk", false),
                  model.boolean("ignore_merges", false)};
    if (const auto unknown = model.get("unk_token")) unknown_ = id_of(*unknown, unknown->string());
  }

  void read_unigram_vocabulary(const JsonView& model) {
    parts_.scores.emplace();
    model.at("vocab").for_each([&](const JsonView& entry) {
      const simdjson::dom::array pair = entry.array();
      simdjson::dom::element text, score;
      if (pair.size() != 2 || pair.at(0).get(text) != simdjson::SUCCESS || pair.at(1).get(score) != simdjson::SUCCESS)
        entry.refuse("a piece and its score", "something else");
      put(entry, parts_.scores->size(), JsonView(text, "tokenizer.json.model.vocab").string(), true);
      parts_.scores->push_back(JsonView(score, "tokenizer.json.model.vocab").number());
    });
    parts_.bpe.byte_fallback = model.boolean("byte_fallback", false);
    if (const auto unknown = model.get("unk_id")) {
      if (unknown->index() >= parts_.scores->size()) unknown->refuse("an id of the vocabulary", "a larger one");
      unknown_ = static_cast<TokenId>(unknown->index());
    }
  }

  // The first id of a text, -1: none. Asked a few times only.
  TokenId find(std::string_view text) const {
    const auto found =
        std::find_if(spelled_.begin(), spelled_.end(), [&](const Entry& entry) { return entry.text == text; });
    return found == spelled_.end() ? -1 : found->id;
  }
  TokenId id_of(const JsonView& where, std::string_view text) const {
    const TokenId id = find(text);
    if (id < 0) where.refuse("a token of the vocabulary", formats::in_quotes(text));
    return id;
  }

  void read_added(const JsonView& one) {
    AddedToken token;
    const std::string_view content = one.at("content").string();
    put(one, one.at("id").index(), content, false);
    token.id = spelled_.back().id;
    token.content = content;
    token.special = one.boolean("special", false);
    token.lstrip = one.boolean("lstrip", false);
    token.rstrip = one.boolean("rstrip", false);
    token.single_word = one.boolean("single_word", false);
    token.normalized = one.boolean("normalized", !token.special);
    parts_.added.push_back(std::move(token));
  }

  // Lays the tokens out by id: the model's, then what is added over them.
  void fill_vocabulary(const JsonView& model) {
    const auto size = static_cast<std::size_t>(largest_ + 1);
    if (size == 0 || size > 2 * spelled_.size() + 1024)
      model.refuse("ids that lie close together", std::to_string(spelled_.size()) + " tokens with ids up to " +
                                                      std::to_string(largest_));
    Vocabulary& vocabulary = parts_.vocabulary;
    std::vector<std::string_view> texts(size);
    vocabulary.kinds.assign(size, TokenKind::unused);
    parts_.in_model.assign(size, false);
    for (const auto& [id, text, in_model] : spelled_) {
      const auto index = static_cast<std::size_t>(id);
      if (in_model && parts_.in_model[index]) model.refuse("an id a token", "two tokens with id " + std::to_string(id));
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
    const Spelling spelling = has_letters ? Spelling::byte_letters : read_spelling(file_.get("decoder"));
    for (std::size_t i = 0; i < size; ++i) {
      vocabulary.texts.add(texts[i]);
      vocabulary.bytes.add(token_bytes(texts[i], vocabulary.kinds[i], spelling));
    }
  }

  // A merge is "left right", or a pair.
  void read_merges(const JsonView& model) {
    const JsonView merges = model.at("merges");
    for (const simdjson::dom::element merge : merges.array()) {
      std::string_view left, right;
      if (merge.is_string()) {
        const std::string_view text = JsonView(merge, "").string();
        const std::size_t space = text.find(' ', 1);
        if (space == std::string_view::npos) merges.refuse("two pieces a merge", formats::in_quotes(text));
        left = text.substr(0, space);
        right = text.substr(space + 1);
      } else {
        simdjson::dom::array pair;
        if (merge.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
            pair.at(0).get(left) != simdjson::SUCCESS || pair.at(1).get(right) != simdjson::SUCCESS)
          merges.refuse("two pieces a merge", "something else");
      }
      parts_.merges.emplace_back(left, right);
    }
  }

  void read_ends() {
    Vocabulary& vocabulary = parts_.vocabulary;
    for (const std::string_view text : read_prefix(file_.get("post_processor")))
      parts_.prefix.push_back(id_of(file_, text));
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
  JsonView file_;
  const TokenizerNames& names_;
  PipelineParts parts_;
  std::vector<Entry> spelled_;
  TokenId largest_ = -1, unknown_ = -1;
};

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer_json(std::string_view tokenizer_json, const TokenizerNames& names) {
  simdjson::dom::parser parser;
  return make_pipeline(Reader(parse(parser, tokenizer_json, "tokenizer.json"), names).read());
}

}  // namespace couplet::text
