#include "formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "couplet/error.h"
#include "formats/printable.h"

namespace couplet::formats {
namespace {

constexpr std::size_t kMostPathBytes = 4096;  // a whole path helps; Linux takes no longer one

// Closes a file descriptor on every way out.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

[[noreturn]] void fail(ErrorKind kind, const std::filesystem::path& path, const std::string& got) {
  throw Error(kind,
              "[file] " + in_quotes(path.native(), kMostPathBytes) + ": expected a readable file, " + got);
}

[[noreturn]] void fail_with_errno(const std::filesystem::path& path) {
  const int code = errno;
  const bool missing = code == ENOENT || code == ENOTDIR;
  fail(missing ? ErrorKind::not_found : ErrorKind::io, path,
       missing ? "there is none" : "got \"" + std::generic_category().message(code) + "\"");
}

std::int64_t nanoseconds(const timespec& time) {
  constexpr std::int64_t kPerSecond = 1'000'000'000;
  return std::int64_t{time.tv_sec} * kPerSecond + time.tv_nsec;
}

FileStamp stamp_from(const std::filesystem::path& path, const struct stat& status) {
  std::error_code ignored;  // a file without a canonical path has its own
  const std::filesystem::path canonical = std::filesystem::canonical(path, ignored);
  return {(ignored ? path : canonical).string(), static_cast<std::uint64_t>(status.st_size),
          nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

void advise(std::span<const std::byte> mapped, int advice) {
  if (mapped.empty()) return;
  const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped.data());
  const auto first_page = begin / page_bytes * page_bytes;
  // A refusal is no error: the bytes are the same without the advice.
  static_cast<void>(
      ::madvise(reinterpret_cast<void*>(first_page), begin + mapped.size() - first_page, advice));
}

}  // namespace

std::optional<FileStamp> stamp_of(const std::filesystem::path& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return stamp_from(path, status);
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  if (path.native().find('\0') != std::string::npos) fail(ErrorKind::not_found, path, "the name holds a NUL");
  // Without O_NONBLOCK the open of a FIFO would wait for a writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status{};
  if (file.number < 0 || ::fstat(file.number, &status) != 0) fail_with_errno(path);
  if (S_ISDIR(status.st_mode)) fail(ErrorKind::io, path, "got a directory");
  if (!S_ISREG(status.st_mode)) fail(ErrorKind::io, path, "got a pipe or device");
  stamp_ = stamp_from(path, status);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;  // mmap refuses to map nothing
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (address == MAP_FAILED) fail_with_errno(path);
  bytes_ = {static_cast<const std::byte*>(address), size};
  advise(bytes_, MADV_NOHUGEPAGE);  // a few rows and vectors are read for good: they shall not bring in 2 MB each
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), stamp_(std::move(other.stamp_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(stamp_, other.stamp_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void read_ahead(std::span<const std::byte> mapped) {
  constexpr std::size_t kMostBytes = 128 << 10;  // the system takes no more at once, and forgets the rest
  for (; mapped.size() > kMostBytes; mapped = mapped.subspan(kMostBytes)) advise(mapped.first(kMostBytes), MADV_WILLNEED);
  advise(mapped, MADV_WILLNEED);
}
void drop_pages(std::span<const std::byte> mapped) { advise(mapped, MADV_DONTNEED); }

}  // namespace couplet::formats
