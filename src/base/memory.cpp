#include "base/memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "couplet/error.h"

namespace couplet {

MappedMemory::MappedMemory(std::size_t bytes, const char* what) : bytes_(bytes) {
  if (bytes == 0) return;
  void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED)
    throw Error(ErrorKind::resource, std::string("[memory] ") + what + ": the system refused " +
                                         std::to_string(bytes) + " bytes: " + std::strerror(errno));
  data_ = static_cast<std::byte*>(place);
  madvise(place, bytes, MADV_HUGEPAGE);  // a wish: fewer TLB misses while weights stream by
}

MappedMemory::~MappedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace couplet
