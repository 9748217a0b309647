#pragma once
// A checkpoint's weights as a name of 16 hexadecimal digits, which does not depend on where the files lie.

#include <string>

#include "formats/checkpoint_file.h"

namespace couplet::engine {

// Of each file: its size, its headers, and pieces spread evenly over the rest, all of it where it is small. Other weights
// differ everywhere, so samples tell them apart; a file damaged in one place may keep its name.
std::string weights_id(const formats::CheckpointFile& file);

}  // namespace couplet::engine
