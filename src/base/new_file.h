#pragma once
// A file that comes to be: written beside its final name under one of its own, then renamed over it, so that what lies under
// the final name is whole. Until then it goes with the object, and other processes see by its lock that it is being written.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace couplet {

// A file descriptor, closed with the object; below 0: nothing was opened.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

class NewFile {
 public:
  // Errors are Error{io}, "[part] <final path>: <what the system says>".
  NewFile(const std::filesystem::path& final_path, std::string part);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int descriptor() const { return file_.number(); }
  // Takes room for so many bytes, and refuses now what would fail late, also where less than `spare_bytes` would stay free.
  void reserve(std::uint64_t bytes, std::uint64_t spare_bytes = 0) const;
  // 0, or the system's number of what went wrong. From any thread.
  int write(const void* data, std::size_t bytes, std::uint64_t offset) const;
  [[noreturn]] void fail(int code) const;
  // Gives it its final name. Only its owner may read it until then; from now on the umask rules, or `like` does.
  void finish(const char* like = nullptr);

 private:
  std::string final_path_, part_, name_;
  Descriptor file_;
  bool finished_ = false;
};

}  // namespace couplet
