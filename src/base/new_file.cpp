#include "base/new_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "couplet/error.h"

namespace couplet {
namespace {

mode_t current_umask() {
  const mode_t mask = ::umask(077);
  ::umask(mask);
  return mask;
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

NewFile::NewFile(const std::filesystem::path& final_path, std::string part)
    : final_path_(final_path.string()), part_(std::move(part)), name_(final_path_ + ".XXXXXX"),
      file_(::mkostemp(name_.data(), O_CLOEXEC)) {
  if (descriptor() < 0) fail(errno);
  ::flock(descriptor(), LOCK_EX | LOCK_NB);  // a wish: without it a sweep by another process may take the file away
}

NewFile::~NewFile() {
  if (!finished_ && descriptor() >= 0) ::unlink(name_.c_str());
}

void NewFile::fail(int code) const {
  throw Error(ErrorKind::io, "[" + part_ + "] " + final_path_ + ": " + std::generic_category().message(code));
}

void NewFile::reserve(std::uint64_t bytes, std::uint64_t spare_bytes) const {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes)
    fail(EFBIG);  // writing on would end the program with a signal
  struct statvfs disk{};
  if (::fstatvfs(descriptor(), &disk) == 0 && disk.f_bavail * disk.f_frsize < bytes + spare_bytes) {
    const std::string spare = spare_bytes > 0 ? " and " + std::to_string(spare_bytes) + " to spare" : "";
    throw Error(ErrorKind::io, "[" + part_ + "] " + final_path_ + ": expected " + std::to_string(bytes) + " bytes free" + spare +
                                   ", got " + std::to_string(disk.f_bavail * disk.f_frsize));
  }
  if (::fallocate(descriptor(), 0, 0, static_cast<off_t>(bytes)) != 0 && errno != EOPNOTSUPP && errno != ENOSYS) fail(errno);
}

int NewFile::write(const void* data, std::size_t bytes, std::uint64_t offset) const {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t written = ::pwrite(descriptor(), from, bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    from += written;
    offset += static_cast<std::uint64_t>(written);
    bytes -= static_cast<std::size_t>(written);
  }
  return 0;
}

void NewFile::finish(const char* like) {
  struct stat model{};
  const mode_t mode = like != nullptr && ::stat(like, &model) == 0 ? model.st_mode & 0666U : 0666U & ~current_umask();
  static_cast<void>(::fchmod(descriptor(), mode));
  if (::fsync(descriptor()) != 0 || ::rename(name_.c_str(), final_path_.c_str()) != 0) fail(errno);
  finished_ = true;
}

}  // namespace couplet
