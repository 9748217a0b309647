#include "engine/weights_id.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace couplet::engine {
namespace {

constexpr std::uint64_t kPieceBytes = 4096;  // a page of the mapped file
constexpr std::uint64_t kMostPieces = 1024;

std::uint64_t hash_of(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

void add_samples(std::span<const std::byte> bytes, std::vector<std::uint64_t>& hashes) {
  const std::uint64_t num_pieces = (bytes.size() + kPieceBytes - 1) / kPieceBytes;
  const std::uint64_t num_samples = std::min(num_pieces, kMostPieces);
  for (std::uint64_t i = 0; i < num_samples; ++i) {
    const std::uint64_t begin = num_samples == num_pieces ? i * kPieceBytes : i * num_pieces / num_samples * kPieceBytes;
    hashes.push_back(hash_of(bytes.subspan(begin, std::min(kPieceBytes, bytes.size() - begin))));
  }
}

}  // namespace

std::string weights_id(const formats::CheckpointFile& file) {
  const std::string_view mix = file.quantized_as();
  std::vector<std::uint64_t> hashes = {XXH3_64bits(mix.data(), mix.size())};
  for (const formats::FilePart& part : file.parts()) {
    hashes.push_back(part.bytes.size());
    hashes.push_back(hash_of(part.headers));
    add_samples(part.bytes.subspan(part.headers.size()), hashes);
  }
  std::uint64_t hash = XXH3_64bits(hashes.data(), hashes.size() * sizeof hashes[0]);
  std::string name(16, '0');
  for (std::size_t digit = name.size(); digit-- > 0; hash >>= 4) name[digit] = "0123456789abcdef"[hash & 15];
  return name;
}

}  // namespace couplet::engine
