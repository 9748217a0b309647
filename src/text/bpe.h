#pragma once
// Byte-level BPE: a text is cut into words, a word's bytes become symbols, and listed pairs of symbols are
// merged.

#include <memory>

#include "formats/checkpoint_file.h"
#include "text/tokenizer.h"

namespace couplet::text {

// `pre_tokenizer`: as in load_tokenizer().
std::unique_ptr<VocabularyTokenizer> load_bpe(const formats::CheckpointFile& file, std::string_view pre_tokenizer);

}  // namespace couplet::text
