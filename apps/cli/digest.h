#pragma once
// What a file must hash to, and the stamp beside a file that was checked: "FILE.verified" lets everyone see at once that
// this very file was, without reading it again. The script of the catalogue's pulls writes the same stamp.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "network_libraries.h"

namespace couplet::cli {

struct Digest {
  enum class Kind : std::uint8_t {
    sha256,
    git_blob,  // SHA-1 over "blob SIZE", a NUL and the file: by it git knows a small file
  };
  Kind kind = Kind::sha256;
  std::string hex;  // empty: not known

  std::string_view kind_name() const { return kind == Kind::sha256 ? "sha256" : "git blob"; }
  bool operator==(const Digest&) const = default;
};
// nullopt: `hex` isn't as many lower-case hexadecimal digits as `kind` has.
std::optional<Digest> parse_digest(Digest::Kind kind, std::string_view hex);

class Hasher {
 public:
  // `bytes` is the size of the whole file, which a git blob's hash begins with.
  Hasher(Digest::Kind kind, std::uint64_t bytes);
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void add(std::string_view bytes);
  // The first `bytes` of a file; throws Error{io} where it has fewer. `step` is called with each piece's size.
  void add_file(const std::filesystem::path& path, std::uint64_t bytes, const std::function<void(std::uint64_t)>& step);
  Digest finish();  // once

 private:
  Digest::Kind kind_;
  EVP_MD_CTX* context_;
};

// What `file` was verified as; empty where it never was, or has changed since.
std::optional<std::string> verified_as(const std::filesystem::path& file);
// Does its best: in a folder that can't be written to, the next pull verifies again.
void write_stamp(const std::filesystem::path& file, const std::string& hex);
std::filesystem::path stamp_path(const std::filesystem::path& file);

}  // namespace couplet::cli
