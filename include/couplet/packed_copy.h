#pragma once
// Packed weights may be kept on disk, as a copy that the next start maps into memory instead of packing again
// (docs/adr/0008). This says where such a copy is and what became of it.

#include <cstdint>
#include <string>

namespace couplet {

enum class PackedCopyState : std::uint8_t {
  none,     // no copy is kept: none was asked for, or the weights are too small for one
  absent,   // none that fits lies there; the next load writes one
  present,  // one that fits lies there; the next load checks all of it and maps it
  mapped,   // this engine runs on it
  written,  // this engine wrote it and runs on it
  failed,   // it can't be kept; this engine's weights were packed in memory
};
const char* name(PackedCopyState state);

struct PackedCopy {
  PackedCopyState state = PackedCopyState::none;
  std::string path;
  std::uint64_t bytes = 0;
  std::string problem;  // why it failed
};

}  // namespace couplet
