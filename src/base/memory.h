#pragma once
// Memory straight from the system: page-aligned, touched only when used, given back on destruction.

#include <cstddef>
#include <utility>

namespace couplet {

inline constexpr std::size_t kLargePageBytes = std::size_t{2} << 20;

class MappedMemory {
 public:
  MappedMemory() = default;
  // Reserves `bytes` of zeros; throws Error{resource} naming `what` when the system refuses. Large pages are asked for.
  MappedMemory(std::size_t bytes, const char* what);
  // The file's bytes from `offset` (a multiple of kLargePageBytes) on, never to be written; `descriptor` may close.
  // Where the system keeps the file in large pages, it is mapped in large pages.
  MappedMemory(int descriptor, std::size_t offset, std::size_t bytes, const char* what);
  ~MappedMemory();
  MappedMemory(MappedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MappedMemory& operator=(MappedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// A fixed-size array in MappedMemory; elements start as zero bits.
template <class T>
class Array {
 public:
  Array() = default;
  Array(std::size_t count, const char* what) : memory_(count * sizeof(T), what), count_(count) {}

  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) const { return data()[i]; }

 private:
  MappedMemory memory_;
  std::size_t count_ = 0;
};

// Cuts one reservation into arrays, each aligned to 64 bytes. Run the same code twice: first without memory, to learn
// the size, then over it.
class Carver {
 public:
  explicit Carver(std::byte* base = nullptr) : base_(base) {}
  template <class T>
  T* take(std::size_t count) {
    T* place = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += (count * sizeof(T) + 63) / 64 * 64;
    return place;
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

}  // namespace couplet
