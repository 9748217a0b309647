#pragma once
// A copy of packed weights on disk. It is one file for each checkpoint, <folder>/<name>-<hash of the path>.packed, with
// "-<mix>" behind the name where weights are quantized at load: a header, then from kDataOffset on the packed bytes as they stand in memory. It is used only if its header names this
// very source, this layout and a hash that all of its bytes still have; anything else is no copy and is written anew.
// A new one is written beside it and renamed over it, so a copy under its name is whole, and one in use never changes.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/memory.h"
#include "base/thread_pool.h"
#include "formats/checkpoint_file.h"

namespace couplet::model {

class PackedFile {
 public:
  // Weights below this are packed in memory at each start.
  static constexpr std::uint64_t kLeastBytes = std::uint64_t{64} << 20;
  // Of the disk that a new copy must leave free.
  static constexpr std::uint64_t kSpareDiskBytes = std::uint64_t{1} << 30;
  static constexpr std::size_t kDataOffset = kLargePageBytes;
  static constexpr std::size_t kPieceBytes = kLargePageBytes;  // packed, hashed and written at a time

  // The copy of `bytes` packed bytes of `file`, which has a path; `fingerprint` is PackingPlan's.
  PackedFile(const std::filesystem::path& folder, const formats::CheckpointFile& file, std::uint64_t fingerprint,
             std::uint64_t bytes);

  const std::filesystem::path& path() const { return path_; }
  // A file that fits by its header lies there.
  bool present() const;
  // Its packed bytes, after all of them were checked; nullopt: it is absent, of something else, cut or damaged.
  std::optional<MappedMemory> map(ThreadPool& threads) const;

  // Writes `out` with the packed bytes from `begin` on; called by many threads, at most one at a time for each `thread`.
  using Pack = std::function<void(std::size_t begin, std::span<std::byte> out, int thread)>;
  // Makes the copy and maps it. Throws Error{io}, with nothing left behind, where it can't be kept: no room, no right
  // to write, or a source that changed meanwhile. Removes copies whose source is gone or has changed.
  MappedMemory write(ThreadPool& threads, const Pack& pack, std::uint64_t spare_disk_bytes = kSpareDiskBytes) const;

 private:
  struct Header;
  Header expected_header() const;
  // The file behind `descriptor` is of the right size and its header fits; `header` gets it.
  bool fits(int descriptor, Header& header) const;
  void sweep() const;

  std::filesystem::path folder_, path_;
  const formats::CheckpointFile* file_;
  std::uint64_t fingerprint_, bytes_;
};

}  // namespace couplet::model
