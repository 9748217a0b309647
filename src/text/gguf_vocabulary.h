#pragma once
// The tokenizer of a Hugging Face folder in GGUF's words: tokens, kinds, merges or scores, and the name of the
// pre-tokenizer that cuts as its pattern does. The name is found by trying: it must give the folder's ids.

#include "formats/checkpoint_file.h"
#include "formats/gguf_writer.h"

namespace couplet::text {

// Sets the keys tokenizer.ggml.*; the list of tokens is filled up to `num_tokens`, the model's rows. `folder` has a
// tokenizer.json. Throws Error{format} for what load_tokenizer() refuses, Error{unsupported} where GGUF has no words for it.
void write_vocabulary(const formats::CheckpointFile& folder, int num_tokens, formats::GgufWriter& writer);

}  // namespace couplet::text
