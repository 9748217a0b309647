#pragma once
// "FILE.part": a file on its way, locked while someone works on it, with "FILE.part.state" beside it, which says what it
// is a part of. Ends by getting FILE's name, or is kept, unless it is
// empty, for the next pull to go on from.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "progress.h"

namespace couplet::cli {

// What the bytes that are there belong to.
struct PartState {
  std::string url;
  std::uint64_t bytes = 0;  // of the whole file
  std::string hex;          // its digest's; empty: not known
  std::string etag;         // a strong one; empty: the server gave none
};

class PartFile {
 public:
  // Makes it where there is none. Waits while another process holds it, which `progress` tells.
  PartFile(const std::filesystem::path& file, Progress& progress);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  std::uint64_t bytes() const { return bytes_; }
  std::optional<PartState> state() const;
  void write_state(const PartState& state) const;
  void append(std::string_view data);
  void clear();
  void finish();   // it is FILE now
  void discard();  // part and state go

 private:
  [[noreturn]] void fail(int code) const;
  bool open_and_lock();

  std::filesystem::path file_, part_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
  bool finished_ = false;  // or discarded: nothing is to be kept
};

std::filesystem::path part_path(const std::filesystem::path& file);
std::filesystem::path part_state_path(const std::filesystem::path& file);
// What a later pull would go on from.
std::uint64_t part_bytes(const std::filesystem::path& file);
// Some process works on it now.
bool part_is_locked(const std::filesystem::path& file);
// Throws Error{resource} unless the file system of `folder`, which may have to be made, has so much room.
void require_space(const std::filesystem::path& folder, std::uint64_t bytes);

}  // namespace couplet::cli
