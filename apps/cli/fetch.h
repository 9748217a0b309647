#pragma once
// One file from a URL to its place, by way of a part that a later fetch goes on from; only whole and verified does it get
// its name. Of two fetches of one file the second waits, and then finds it there.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "digest.h"
#include "http.h"
#include "progress.h"
#include "retries.h"

namespace couplet::cli {

inline constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 44;

struct FileToFetch {
  HttpRequest request;
  std::filesystem::path path;
  std::optional<std::uint64_t> bytes;  // not known: the server says it
  Digest digest;                       // no hex: not known
  std::string begins_with;             // what is no such file is refused
  // Throws for an answer that is not the file's. One of status 200, 206 or 416 is looked at further by the fetch.
  std::function<void(const HttpAnswer&)> check;
};

struct FetchedFile {
  std::uint64_t bytes = 0;
  Digest digest;
  bool was_there = false;
};

FetchedFile fetch_file(HttpClient& client, const FileToFetch& file, Progress& progress, const Retries& retries);

// The file as it lies there verified, or as what it is without a stamp: read, hashed and, where it fits, stamped. nullopt:
// there is none, or it is another than `digest` says.
std::optional<FetchedFile> find_verified(const std::filesystem::path& path, const Digest& digest, Progress& progress);

}  // namespace couplet::cli
