#include "base/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "couplet/error.h"

namespace couplet {
namespace {

[[noreturn]] void refuse(const char* what, std::size_t bytes) {
  throw Error(ErrorKind::resource, std::string("[memory] ") + what + ": the system refused " +
                                       std::to_string(bytes) + " bytes: " + std::strerror(errno));
}

void* map_nothing(std::size_t bytes, const char* what) {
  void* place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) refuse(what, bytes);
  return place;
}

}  // namespace

MappedMemory::MappedMemory(std::size_t bytes, const char* what) : bytes_(bytes) {
  if (bytes == 0) return;
  void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) refuse(what, bytes);
  data_ = static_cast<std::byte*>(place);
  madvise(place, bytes, MADV_HUGEPAGE);  // a wish: fewer TLB misses while weights stream by
}

MappedMemory::MappedMemory(int descriptor, std::size_t offset, std::size_t bytes, const char* what) {
  if (bytes == 0) return;
  // A large page of a file is mapped as one only where the address is aligned as the file's offset is.
  const std::size_t reserved = bytes + kLargePageBytes;
  auto* const begin = static_cast<std::byte*>(map_nothing(reserved, what));
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) % kLargePageBytes;
  const std::size_t page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t mapped = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  void* place = mmap(begin + before, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, descriptor, static_cast<off_t>(offset));
  if (place == MAP_FAILED) {
    const int reason = errno;
    munmap(begin, reserved);
    errno = reason;
    refuse(what, bytes);
  }
  if (before > 0) munmap(begin, before);
  if (before + mapped < reserved) munmap(begin + before + mapped, reserved - before - mapped);
  data_ = static_cast<std::byte*>(place);
  bytes_ = bytes;
  madvise(place, bytes, MADV_HUGEPAGE);
}

MappedMemory::~MappedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace couplet
