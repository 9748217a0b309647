#pragma once
// A regular file's bytes as memory, read-only, for as long as the object lives. Pages come from the file when
// touched; a file that another process shortens meanwhile ends the program with a signal, as for every
// mapping.

#include <cstddef>
#include <filesystem>
#include <span>

namespace couplet::formats {

class MappedFile {
 public:
  MappedFile() = default;
  // Throws couplet::Error, "[file] ...": not_found, or io (a directory, no permission, not a regular file).
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// Advice on a range inside a mapping; only speed and memory change, never a byte.
void read_ahead(std::span<const std::byte> mapped);
void drop_pages(std::span<const std::byte> mapped);

}  // namespace couplet::formats
