#pragma once
// A regular file's bytes as memory, read-only, for as long as the object lives. Pages come from the file when
// touched; a file that another process shortens meanwhile ends the program with a signal, as for every
// mapping.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace couplet::formats {

// By what a file's content is known without reading it: whoever writes to a file or puts another in its place changes
// one of these. The time of change is the system's own and can't be set back.
struct FileStamp {
  std::string path;  // absolute, without links
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  bool operator==(const FileStamp&) const = default;
};
// Of the file as it lies there now; nullopt: there is none that can be seen.
std::optional<FileStamp> stamp_of(const std::filesystem::path& path);

class MappedFile {
 public:
  MappedFile() = default;
  // Throws couplet::Error, "[file] ...": not_found, or io (a directory, no permission, not a regular file).
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const FileStamp& stamp() const { return stamp_; }  // when it was opened

 private:
  std::span<const std::byte> bytes_;
  FileStamp stamp_;
};

// Advice on a range inside a mapping; only speed and memory change, never a byte.
void read_ahead(std::span<const std::byte> mapped);
void drop_pages(std::span<const std::byte> mapped);

}  // namespace couplet::formats
