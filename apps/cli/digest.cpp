#include "digest.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <vector>

#include "couplet/error.h"

namespace couplet::cli {

namespace fs = std::filesystem;

namespace {

void check(int done) {
  if (done != 1) throw Error(ErrorKind::resource, "[pull] libcrypto.so.3: it refuses to hash");
}

long long modified_ns(const struct stat& info) {
  return info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec;
}

}  // namespace

std::optional<Digest> parse_digest(Digest::Kind kind, std::string_view hex) {
  const std::size_t length = kind == Digest::Kind::sha256 ? 64 : 40;
  if (hex.size() != length || hex.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  return Digest{kind, std::string(hex)};
}

Hasher::Hasher(Digest::Kind kind, std::uint64_t bytes) : kind_(kind), context_(crypto().context_new()) {
  if (context_ == nullptr) throw std::bad_alloc();
  check(crypto().digest_init(context_, kind == Digest::Kind::sha256 ? crypto().sha256() : crypto().sha1(), nullptr));
  if (kind == Digest::Kind::git_blob) {
    const std::string header = fmt::format("blob {}", bytes);
    add({header.c_str(), header.size() + 1});
  }
}

Hasher::~Hasher() { crypto().context_free(context_); }

void Hasher::add(std::string_view bytes) { check(crypto().digest_update(context_, bytes.data(), bytes.size())); }

void Hasher::add_file(const fs::path& path, std::uint64_t bytes, const std::function<void(std::uint64_t)>& step) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  std::vector<char> piece(kPieceBytes);
  std::ifstream file(path, std::ios::binary);
  while (bytes > 0) {
    const std::uint64_t wanted = std::min<std::uint64_t>(bytes, piece.size());
    if (!file.read(piece.data(), static_cast<std::streamsize>(wanted)))
      throw Error(ErrorKind::io, fmt::format("[pull] {}: can't be read", path.string()));
    add({piece.data(), wanted});
    bytes -= wanted;
    step(wanted);
  }
}

Digest Hasher::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash;
  unsigned length = 0;
  check(crypto().digest_final(context_, hash.data(), &length));
  Digest digest{kind_, ""};
  for (unsigned i = 0; i < length; ++i) digest.hex += fmt::format("{:02x}", hash[i]);
  return digest;
}

fs::path stamp_path(const fs::path& file) { return file.string() + ".verified"; }

std::optional<std::string> verified_as(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  std::ifstream stamp(stamp_path(file));
  std::string hex;
  long long bytes = 0, modified = 0;
  if (!(stamp >> hex >> bytes >> modified)) return std::nullopt;
  return bytes == info.st_size && modified == modified_ns(info) ? std::optional(hex) : std::nullopt;
}

void write_stamp(const fs::path& file, const std::string& hex) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return;
  std::ofstream(stamp_path(file)) << hex << ' ' << info.st_size << ' ' << modified_ns(info) << '\n';
}

}  // namespace couplet::cli
