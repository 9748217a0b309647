#include "part_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "couplet/error.h"
#include "http.h"
#include "terminal.h"

namespace couplet::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kLockPollMs = 100;

[[noreturn]] void fail_at(const fs::path& path, int code) {
  if (code == ENOSPC || code == EDQUOT || code == EFBIG)
    throw Error(ErrorKind::resource,
                fmt::format("[pull] {}: no space left ({}); what came is kept, the next pull goes on from there",
                            path.parent_path().string(), std::generic_category().message(code)));
  throw Error(ErrorKind::io, fmt::format("[pull] {}: {}", path.string(), std::generic_category().message(code)));
}

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

PartFile::PartFile(const fs::path& file, Progress& progress) : file_(file), part_(part_path(file)) {
  std::error_code problem;
  fs::create_directories(file.parent_path(), problem);
  if (problem) fail_at(file.parent_path(), problem.value());
  for (bool told = false; !open_and_lock(); told = true) {
    if (!told) progress.say(fmt::format("waiting for another pull of {}", visible(file.filename().string())));
    wait_for(kLockPollMs);
  }
}

PartFile::~PartFile() {
  if (descriptor_ < 0) return;
  if (!finished_ && bytes_ == 0) discard();  // nothing to go on from
  ::close(descriptor_);
}

// False: another process has it, or had it and gave it its name meanwhile.
bool PartFile::open_and_lock() {
  descriptor_ = ::open(part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) fail(errno);
  struct stat mine {}, there {};
  const bool is_taken = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;  // not every file system has locks
  if (!is_taken && ::fstat(descriptor_, &mine) == 0 && ::stat(part_.c_str(), &there) == 0 &&
      mine.st_ino == there.st_ino && mine.st_dev == there.st_dev) {
    bytes_ = static_cast<std::uint64_t>(mine.st_size);
    return true;
  }
  ::close(descriptor_);
  descriptor_ = -1;
  return false;
}

void PartFile::fail(int code) const { fail_at(part_, code); }

std::optional<PartState> PartFile::state() const {
  std::ifstream file(part_state_path(file_));
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  try {
    return PartState{json.at("url"), json.at("bytes"), json.at("digest"), json.at("etag")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

void PartFile::write_state(const PartState& state) const {
  const nlohmann::json json = {{"url", state.url}, {"bytes", state.bytes}, {"digest", state.hex}, {"etag", state.etag}};
  std::ofstream file(part_state_path(file_));
  file << json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) << '\n';
  file.flush();
  if (!file) fail(errno != 0 ? errno : EIO);
}

void PartFile::append(std::string_view data) {
  while (!data.empty()) {
    const ssize_t written = ::pwrite(descriptor_, data.data(), data.size(), static_cast<off_t>(bytes_));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(written < 0 ? errno : ENOSPC);
    bytes_ += static_cast<std::uint64_t>(written);
    data.remove_prefix(static_cast<std::size_t>(written));
  }
}

void PartFile::clear() {
  if (::ftruncate(descriptor_, 0) != 0) fail(errno);
  bytes_ = 0;
}

void PartFile::finish() {
  if (::fsync(descriptor_) != 0 || ::rename(part_.c_str(), file_.c_str()) != 0) fail(errno);
  finished_ = true;
  ::unlink(part_state_path(file_).c_str());
  sync_folder(file_.parent_path());
}

void PartFile::discard() {
  finished_ = true;
  ::unlink(part_.c_str());
  ::unlink(part_state_path(file_).c_str());
}

fs::path part_path(const fs::path& file) { return file.string() + ".part"; }
fs::path part_state_path(const fs::path& file) { return file.string() + ".part.state"; }

std::uint64_t part_bytes(const fs::path& file) {
  std::error_code problem;
  const std::uint64_t bytes = fs::file_size(part_path(file), problem);
  return problem ? 0 : bytes;
}

bool part_is_locked(const fs::path& file) {
  const int descriptor = ::open(part_path(file).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool locked = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return locked;
}

void require_space(const fs::path& folder, std::uint64_t bytes) {
  std::error_code ignored;
  fs::path there = fs::absolute(folder, ignored);
  while (!fs::exists(there, ignored) && there.has_relative_path()) there = there.parent_path();
  struct statvfs disk {};
  if (::statvfs(there.c_str(), &disk) != 0) return;  // a wish: what fails here, the writing will meet
  const std::uint64_t free_bytes = disk.f_bavail * disk.f_frsize;
  if (free_bytes < bytes)
    throw Error(ErrorKind::resource,
                fmt::format("[pull] {}: no space left: {} are needed, {} are free", folder.string(), amount(bytes), amount(free_bytes)));
}

}  // namespace couplet::cli
