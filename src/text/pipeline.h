#pragma once
// The tokenizer that a Hugging Face tokenizer.json describes: added tokens are cut out, what is between them is
// normalized, cut into words, and given to the model. Every part is as the file has it; load_tokenizer_json() reads it,
// and load_ugm() makes the same of a GGUF file.

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "couplet/tokenizer.h"
#include "text/added_tokens.h"
#include "text/bpe_model.h"
#include "text/normalizer.h"
#include "text/splitter.h"
#include "text/unigram_model.h"

namespace couplet::text {

// A step between normalizing and the model.
struct ByteLetters {};  // spells every byte of a piece with its letter
struct SpacePrefix {};  // puts a space before a piece that has none
struct MarkSpaces {     // Metaspace: writes spaces as a mark, and puts one in front
  enum Prepend : std::uint8_t { never, first, always };
  std::string mark;
  Prepend prepend = always;
};
using CutStep = std::variant<Splitter, ByteLetters, SpacePrefix, MarkSpaces>;

struct PipelineParts {
  std::string_view pre_tokenizer;  // what it is called; a constant
  Vocabulary vocabulary;
  std::vector<bool> in_model;  // [id]: not only an added token
  std::vector<AddedToken> added;
  std::vector<NormalizerStep> normalizer;
  std::vector<CutStep> steps;
  std::vector<TokenId> prefix;  // put first where BOS is asked for
  BpeOptions bpe;
  BpeModel::Merges merges;                       // views of the file, needed only while making the tokenizer
  std::optional<UnigramScores> scores;           // Unigram, else BPE
};

std::unique_ptr<Tokenizer> make_pipeline(PipelineParts parts);

}  // namespace couplet::text
