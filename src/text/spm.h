#pragma once
// SentencePiece BPE: a text's characters become symbols, neighbours that spell a piece are merged, best score
// first, and a character that is no piece becomes the tokens of its bytes. A space is a character like any
// other, which the vocabulary spells U+2581; so a U+2581 in a text is read as a space, as in every
// SentencePiece tokenizer.

#include <memory>

#include "formats/checkpoint_file.h"
#include "text/tokenizer.h"

namespace couplet::text {

std::unique_ptr<VocabularyTokenizer> load_spm(const formats::CheckpointFile& file);

}  // namespace couplet::text
