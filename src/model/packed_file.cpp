#include "model/packed_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/new_file.h"
#include "couplet/error.h"

namespace couplet::model {

namespace fs = std::filesystem;

struct PackedFile::Header {
  std::array<char, 8> magic = {'c', 'o', 'u', 'p', 'l', 'e', 't', '\n'};
  std::uint64_t version = 1;
  std::uint64_t fingerprint = 0;  // of the layout
  std::uint64_t bytes = 0;        // of packed weights
  std::uint64_t content = 0;      // hash of the pieces' hashes
  std::uint64_t source = 0;       // hash over all parts' stamps and headers
  std::uint64_t source_bytes = 0;  // the first part's stamp
  std::int64_t source_modified_ns = 0;
  std::int64_t source_changed_ns = 0;
  std::array<char, 8112> source_path = {};  // ends with a NUL
  std::uint64_t header = 0;                 // hash of all the above

  std::uint64_t own_hash() const { return XXH3_64bits(this, offsetof(Header, header)); }
  // Nothing but the content may differ.
  bool is_for_the_same(Header other) const {
    other.content = content;
    other.header = other.own_hash();
    return std::memcmp(this, &other, sizeof other) == 0;
  }
};

namespace {

constexpr std::string_view kSuffix = ".packed";
constexpr const char* kPart = "packed copy";
constexpr std::size_t kMostStemBytes = 100;

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorKind::io, "[" + std::string(kPart) + "] " + what); }
[[noreturn]] void fail(const fs::path& path, int code) {
  fail(path.string() + ": " + std::generic_category().message(code));
}

// Not open where there is none; a FIFO is not waited for.
Descriptor open_to_read(const fs::path& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

std::string hexadecimal(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

template <class Header>
bool read_header(int descriptor, Header& header) {
  return ::pread(descriptor, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
         header.magic == Header{}.magic && header.header == header.own_hash();
}

// A copy whose source is gone or has changed. What has no sound header is not ours to judge.
template <class Header>
bool is_orphan(int descriptor, Header& header) {
  if (!read_header(descriptor, header)) return false;
  const auto source = formats::stamp_of(header.source_path.data());
  return !source || source->bytes != header.source_bytes || source->modified_ns != header.source_modified_ns ||
         source->changed_ns != header.source_changed_ns;
}

// "-<16 hex digits>.packed.<6 characters>" ends the names that NewFile gives.
bool is_unfinished(std::string_view name) {
  constexpr std::size_t kHash = 16, kMark = 6;
  const std::size_t tail = 1 + kHash + kSuffix.size() + 1 + kMark;
  if (name.size() <= tail) return false;
  name.remove_prefix(name.size() - tail);
  return name[0] == '-' && name.substr(1, kHash).find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         name.substr(1 + kHash, kSuffix.size() + 1) == std::string(kSuffix) + ".";
}

// Left by a process that ended: nobody holds it, and nobody is about to, having just made it.
bool is_abandoned(int descriptor) {
  constexpr std::time_t kSurelySeconds = 60;
  struct stat status{};
  return descriptor >= 0 && ::fstat(descriptor, &status) == 0 && status.st_mtim.tv_sec + kSurelySeconds < std::time(nullptr) &&
         ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
}

std::uint64_t hash_of(std::span<const std::uint64_t> hashes) {
  return XXH3_64bits(hashes.data(), hashes.size_bytes());
}

int num_pieces(std::uint64_t bytes) {
  return static_cast<int>((bytes + PackedFile::kPieceBytes - 1) / PackedFile::kPieceBytes);
}

std::uint64_t content_hash(ThreadPool& threads, std::span<const std::byte> content) {
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(num_pieces(content.size())));
  threads.parallel_for(static_cast<int>(hashes.size()), [&](int piece, int) {
    const std::size_t begin = static_cast<std::size_t>(piece) * PackedFile::kPieceBytes;
    const std::size_t bytes = std::min(PackedFile::kPieceBytes, content.size() - begin);
    hashes[static_cast<std::size_t>(piece)] = XXH3_64bits(content.data() + begin, bytes);
  });
  return hash_of(hashes);
}

bool unchanged(const formats::CheckpointFile& file) {
  return std::all_of(file.parts().begin(), file.parts().end(),
                     [](const formats::FilePart& part) { return formats::stamp_of(part.stamp.path) == part.stamp; });
}

}  // namespace

PackedFile::PackedFile(const fs::path& folder, const formats::CheckpointFile& file, std::uint64_t fingerprint,
                       std::uint64_t bytes)
    : folder_(folder), file_(&file), fingerprint_(fingerprint), bytes_(bytes) {
  COUPLET_CHECK(!file.parts().empty());
  const std::string& source = file.parts()[0].stamp.path;
  const std::string stem = fs::path(source).stem().string().substr(0, kMostStemBytes);
  const std::string kind = std::string(file.quantized_as().empty() ? "" : "-") + std::string(file.quantized_as());
  path_ = folder_ / (stem + kind + "-" + hexadecimal(XXH3_64bits(source.data(), source.size())) + std::string(kSuffix));
}

PackedFile::Header PackedFile::expected_header() const {
  static_assert(sizeof(Header) == 8192 && std::has_unique_object_representations_v<Header>);
  const formats::FileStamp& first = file_->parts()[0].stamp;
  Header header;
  header.fingerprint = fingerprint_;
  header.bytes = bytes_;
  header.source_bytes = first.bytes;
  header.source_modified_ns = first.modified_ns;
  header.source_changed_ns = first.changed_ns;
  first.path.copy(header.source_path.data(), header.source_path.size() - 1);  // no path of the system's is longer
  std::vector<std::uint64_t> facts;
  for (const formats::FilePart& part : file_->parts()) {
    facts.insert(facts.end(), {part.stamp.bytes, static_cast<std::uint64_t>(part.stamp.modified_ns),
                               static_cast<std::uint64_t>(part.stamp.changed_ns),
                               XXH3_64bits(part.headers.data(), part.headers.size())});
    file_->drop(part.headers);
  }
  header.source = hash_of(facts);
  header.header = header.own_hash();
  return header;
}

bool PackedFile::fits(int descriptor, Header& header) const {
  struct stat status{};
  return descriptor >= 0 && ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
         static_cast<std::uint64_t>(status.st_size) == kDataOffset + bytes_ && read_header(descriptor, header) &&
         header.is_for_the_same(expected_header());
}

bool PackedFile::present() const {
  Header header;
  return fits(open_to_read(path_).number(), header);
}

std::optional<MappedMemory> PackedFile::map(ThreadPool& threads) const {
  const Descriptor file = open_to_read(path_);
  Header header;
  if (!fits(file.number(), header)) return std::nullopt;
  MappedMemory content(file.number(), kDataOffset, bytes_, kPart);
  if (content_hash(threads, {content.data(), content.size()}) != header.content) return std::nullopt;
  return content;
}

MappedMemory PackedFile::write(ThreadPool& threads, const Pack& pack, std::uint64_t spare_disk_bytes) const {
  Header header = expected_header();
  std::error_code problem;
  fs::create_directories(folder_, problem);
  if (problem) fail(folder_, problem.value());
  sweep();
  NewFile file(path_, kPart);
  file.reserve(kDataOffset + bytes_, spare_disk_bytes);

  const MappedMemory buffers(static_cast<std::size_t>(threads.num_threads()) * kPieceBytes, "pieces of a packed copy");
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(num_pieces(bytes_)));
  std::atomic<int> failure{0};
  threads.parallel_for(static_cast<int>(hashes.size()), [&](int piece, int thread) {
    if (failure.load(std::memory_order_relaxed) != 0) return;
    const std::size_t begin = static_cast<std::size_t>(piece) * kPieceBytes;
    const std::span<std::byte> out(buffers.data() + static_cast<std::size_t>(thread) * kPieceBytes,
                                   std::min<std::size_t>(kPieceBytes, bytes_ - begin));
    pack(begin, out, thread);
    hashes[static_cast<std::size_t>(piece)] = XXH3_64bits(out.data(), out.size());
    if (const int code = file.write(out.data(), out.size(), kDataOffset + begin)) failure = code;
  });
  if (failure != 0) file.fail(failure);
  if (!unchanged(*file_)) fail("the model's file changed while it was packed");
  file_->refuse_spoiled_rows();

  header.content = hash_of(hashes);
  header.header = header.own_hash();
  if (const int code = file.write(&header, sizeof header, 0)) file.fail(code);
  MappedMemory content(file.descriptor(), kDataOffset, bytes_, kPart);
  file.finish(header.source_path.data());  // who may read the model may read its copy
  return content;
}

// What nobody will use any more: copies whose source is gone or has changed, this source's own where it does not fit,
// and what processes that ended left unfinished.
void PackedFile::sweep() const {
  std::error_code problem;
  for (fs::directory_iterator entry(folder_, problem), end; !problem && entry != end; entry.increment(problem)) {
    const fs::path& path = entry->path();
    const Descriptor file = open_to_read(path);
    Header header;
    if (is_unfinished(path.filename().string())) {
      if (is_abandoned(file.number())) ::unlink(path.c_str());
    } else if (path == path_ ? !fits(file.number(), header) : is_orphan(file.number(), header)) {
      ::unlink(path.c_str());
    }
  }
}

}  // namespace couplet::model
