#pragma once
// SentencePiece's unigram model from a GGUF file ("t5"): a text is mapped by the charsmap, its spaces are marked, and of
// all ways to cut it into pieces the best is taken.

#include <memory>

#include "couplet/tokenizer.h"
#include "formats/checkpoint_file.h"

namespace couplet::text {

std::unique_ptr<Tokenizer> load_ugm(const formats::CheckpointFile& file);

}  // namespace couplet::text
