#pragma once
// What a GGUF file says about a model beside its tensors, for a file that is made of another one or of a folder.

#include "formats/checkpoint_file.h"
#include "formats/gguf_writer.h"
#include "formats/quantize_mix.h"

namespace couplet::engine {

// Throws Error{unsupported} where GGUF has no words for a folder's tokenizer.
void write_metadata(const formats::CheckpointFile& file, const formats::Mix& mix, formats::GgufWriter& writer);

}  // namespace couplet::engine
