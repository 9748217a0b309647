#include "fetch.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <system_error>

#include "couplet/error.h"
#include "part_file.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

namespace fs = std::filesystem;

struct ContentRange {
  std::uint64_t begin = 0, total = 0;
};

// "bytes 100-199/200"
std::optional<ContentRange> parse_content_range(const std::string* header) {
  ContentRange range;
  if (header == nullptr || !header->starts_with("bytes ")) return std::nullopt;
  const std::size_t dash = header->find('-'), slash = header->find('/');
  if (dash == std::string::npos || slash == std::string::npos || dash > slash) return std::nullopt;
  const auto read = [&](std::size_t begin, std::size_t end, std::uint64_t& value) {
    const auto [stop, error] = std::from_chars(header->data() + begin, header->data() + end, value);
    return error == std::errc() && stop == header->data() + end;
  };
  if (!read(6, dash, range.begin) || !read(slash + 1, header->size(), range.total)) return std::nullopt;
  return range;
}

// Only a strong one says that bytes are the same.
std::string strong_etag(const HttpAnswer& answer) {
  const std::string* etag = answer.header("etag");
  return etag != nullptr && etag->starts_with('"') ? *etag : "";
}

class Fetch {
 public:
  Fetch(HttpClient& client, const FileToFetch& file, Progress& progress, const Retries& retries)
      : client_(client), file_(file), progress_(progress), retries_(retries), part_(file.path, progress), total_(file.bytes) {}

  FetchedFile run() {
    if (const auto there = find_verified(file_.path, file_.digest, progress_)) return *there;  // another pull was faster
    go_on_from_part();
    retries_.run([this] {
      while (part_.bytes() != total_) request_rest();
    });
    return finish();
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::io, fmt::format("[pull] {}: {}", visible(file_.path.filename().string()), what));
  }

  [[noreturn]] void fail_for_now(const std::string& what) const {
    throw PassingFailure{fmt::format("{}: {}", visible(file_.path.filename().string()), what), std::nullopt};
  }

  void go_on_from_part() {
    const auto state = part_.state();
    const bool fits = state && state->hex == file_.digest.hex && (!file_.bytes || *file_.bytes == state->bytes) &&
                      (!file_.digest.hex.empty() || (state->url == file_.request.url && !state->etag.empty())) &&
                      part_.bytes() <= state->bytes;
    if (!fits) part_.clear();
    if (part_.bytes() > 0) {
      total_ = state->bytes;
      etag_ = state->etag;
    }
    start_hash();
    hasher_->add_file(part_path(file_.path), part_.bytes(), [this](std::uint64_t bytes) {
      progress_.had(bytes);
      throw_if_interrupted();
    });
  }

  void start_hash() { hasher_.emplace(file_.digest.kind, total_.value_or(0)); }

  void start_over() {
    progress_.take_back(part_.bytes());
    part_.clear();
    etag_.clear();
    total_ = file_.bytes;
    start_hash();
  }

  void request_rest() {
    HttpRequest request = file_.request;
    request.from = part_.bytes();
    request.if_range = etag_;
    const HttpAnswer answer = client_.get(
        request, [this](const HttpAnswer& begun) { return begin(begun); }, [this](std::string_view bytes) { take(bytes); });
    if (part_.bytes() == total_) return;
    if (answer.status == 416) start_over();
    fail_for_now(answer.status == 416 ? "the server has no such range" : "it ended early");
  }

  bool begin(const HttpAnswer& answer) {
    file_.check(answer);
    if (answer.status == 416) return false;
    if (const std::string* coding = answer.header("content-encoding"); coding && *coding != "identity")
      refuse(fmt::format("expected the file as it is, the server sends it as {}", *coding));
    if (answer.status == 206) return begin_rest(answer);
    if (part_.bytes() > 0) start_over();
    const auto length = answer.content_length();
    if (!length && !total_) refuse("expected a Content-Length, the server sends none");
    if (length && total_ && *length != *total_) refuse(fmt::format("expected {} bytes, the server announces {}", *total_, *length));
    if (length.value_or(0) > kMostFileBytes) refuse(fmt::format("expected at most {} bytes, the server announces {}", kMostFileBytes, *length));
    if (!total_) progress_.set_total(*length);
    if (length) total_ = length;
    require_space(file_.path.parent_path(), *total_);
    etag_ = strong_etag(answer);
    part_.write_state({file_.request.url, *total_, file_.digest.hex, etag_});
    return true;
  }

  bool begin_rest(const HttpAnswer& answer) {
    const auto range = parse_content_range(answer.header("content-range"));
    const std::string etag = strong_etag(answer);
    const bool changed = !etag_.empty() && !etag.empty() && etag != etag_;
    if (!changed && range && range->begin == part_.bytes() && range->total == total_) return true;
    start_over();
    fail_for_now("the server sent another range than was asked for");
  }

  void take(std::string_view bytes) {
    if (bytes.size() > *total_ - part_.bytes()) refuse(fmt::format("expected {} bytes, the server sends more", *total_));
    part_.append(bytes);
    hasher_->add(bytes);
    progress_.add(bytes.size());
    if (part_.bytes() <= most_bytes_) return;  // what came again is no progress
    most_bytes_ = part_.bytes();
    retries_.progressed();
  }

  FetchedFile finish() {
    const Digest digest = hasher_->finish();
    if (!file_.digest.hex.empty() && digest.hex != file_.digest.hex) {
      part_.discard();
      refuse(fmt::format("what came is not the file and was removed: expected {} {}, got {}", digest.kind_name(), file_.digest.hex, digest.hex));
    }
    std::string beginning(file_.begins_with.size(), '\0');
    std::ifstream(part_path(file_.path), std::ios::binary).read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
    if (beginning != file_.begins_with) {
      part_.discard();
      refuse(fmt::format("what came is not the file and was removed: expected \"{}\" at its beginning", file_.begins_with));
    }
    part_.finish();
    write_stamp(file_.path, digest.hex);
    return {*total_, digest, false};
  }

  HttpClient& client_;
  const FileToFetch& file_;
  Progress& progress_;
  Retries retries_;
  PartFile part_;
  std::optional<std::uint64_t> total_;
  std::uint64_t most_bytes_ = 0;  // that ever were there
  std::string etag_;
  std::optional<Hasher> hasher_;
};

}  // namespace

FetchedFile fetch_file(HttpClient& client, const FileToFetch& file, Progress& progress, const Retries& retries) {
  if (const auto there = find_verified(file.path, file.digest, progress)) return *there;
  return Fetch(client, file, progress, retries).run();
}

std::optional<FetchedFile> find_verified(const fs::path& path, const Digest& digest, Progress& progress) {
  std::error_code problem;
  const std::uint64_t bytes = fs::file_size(path, problem);
  if (problem) return std::nullopt;
  if (const auto hex = verified_as(path)) {
    if (!digest.hex.empty() && *hex != digest.hex) return std::nullopt;
    progress.had(bytes);
    return FetchedFile{bytes, {digest.kind, *hex}, true};
  }
  Hasher hasher(digest.kind, bytes);
  hasher.add_file(path, bytes, [&](std::uint64_t piece) {
    progress.had(piece);
    throw_if_interrupted();
  });
  const Digest found = hasher.finish();
  if (!digest.hex.empty() && found != digest) {
    progress.take_back(bytes);
    return std::nullopt;
  }
  write_stamp(path, found.hex);
  return FetchedFile{bytes, found, true};
}

}  // namespace couplet::cli
