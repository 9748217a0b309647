#include "text/ugm.h"

#include <algorithm>
#include <string>

#include "text/pipeline.h"

namespace couplet::text {
namespace {

std::vector<NormalizerStep> read_normalizer(const formats::CheckpointFile& file) {
  std::vector<NormalizerStep> steps;
  const auto flag = [&](const char* key, bool otherwise) { return file.get_bool(key).value_or(otherwise); };
  if (const auto map = file.get_ints("tokenizer.ggml.precompiled_charsmap"); map && !map->empty()) {
    std::string bytes;
    for (const std::int64_t byte : *map) bytes += static_cast<char>(byte);
    steps.push_back({.kind = NormalizerStep::map_longest, .charsmap = Charsmap(bytes)});
  }
  if (flag("tokenizer.ggml.remove_extra_whitespaces", false)) steps.push_back({.kind = NormalizerStep::single_spaces});
  if (flag("tokenizer.ggml.add_space_prefix", true)) steps.push_back({.kind = NormalizerStep::prepend, .text = " "});
  return steps;
}

// Control tokens are cut out of the text. User-defined ones are pieces that cost nothing.
void sort_tokens(const std::vector<float>& scores, PipelineParts& parts) {
  const Vocabulary& vocabulary = parts.vocabulary;
  float worst = 0;
  UnigramScores& known = parts.scores.emplace();
  known.pieces.assign(scores.begin(), scores.end());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const auto index = static_cast<std::size_t>(id);
    const std::string_view text = vocabulary.texts[index];
    const TokenKind kind = vocabulary.kind(id);
    parts.in_model.push_back(kind == TokenKind::normal || kind == TokenKind::user_defined);
    parts.bpe.byte_fallback |= kind == TokenKind::byte;
    if (kind == TokenKind::normal) worst = std::min(worst, scores[index]);
    if (kind == TokenKind::user_defined) known.pieces[index] = 0;
    if (kind == TokenKind::control || kind == TokenKind::unknown)
      parts.added.push_back({.id = id, .content = std::string(text), .special = true});
  }
  known.unknown = worst - kUnknownPenalty;
}

}  // namespace

std::unique_ptr<Tokenizer> load_ugm(const formats::CheckpointFile& file) {
  PipelineParts parts;
  parts.vocabulary = load_vocabulary(file, Spelling::marked_spaces, false);
  const std::vector<float> scores = load_scores(file, parts.vocabulary.kinds.size());
  parts.normalizer = read_normalizer(file);
  sort_tokens(scores, parts);
  parts.steps.emplace_back(MarkSpaces{std::string(kMarkedSpace), MarkSpaces::never});
  bool crosses_words = false;
  for (std::size_t i = 0; i < parts.in_model.size(); ++i)
    crosses_words |= parts.in_model[i] && parts.vocabulary.texts[i].find(kMarkedSpace, 1) != std::string_view::npos;
  if (!crosses_words)
    parts.steps.emplace_back(Splitter(kMarkedSpace, SplitBehaviour::merged_with_next));
  if (parts.vocabulary.adds_bos && parts.vocabulary.bos >= 0) parts.prefix = {parts.vocabulary.bos};
  return make_pipeline(std::move(parts));
}

}  // namespace couplet::text
