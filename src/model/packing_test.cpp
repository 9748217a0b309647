#include "model/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "tests/property/tiny_model.h"

namespace couplet::model {
namespace {

using formats::CheckpointFile;
using formats::TensorType;
using kernels::PackedMatrix;

// All matrices of a file, in its order.
struct Plan {
  explicit Plan(const CheckpointFile& file, const ModelConfig& config) : plan(file, config) {
    matrices.reserve(file.tensors().size());
    for (const formats::Tensor& tensor : file.tensors())
      if (tensor.num_rows() > 1) plan.add(tensor, matrices.emplace_back());
  }
  std::vector<std::byte> packed(std::size_t piece_bytes) const {
    std::vector<std::byte> bytes(plan.bytes(), std::byte{0xee}), scratch(plan.scratch_bytes());
    for (std::size_t begin = 0; begin < bytes.size(); begin += piece_bytes)
      plan.pack(begin, std::span(bytes).subspan(begin, std::min(piece_bytes, bytes.size() - begin)),
                kernels::select_kernels("reference"), scratch.data());
    return bytes;
  }

  PackingPlan plan;
  std::vector<PackedMatrix> matrices;
};

struct Opened {
  explicit Opened(const testing::TinyModel& model)
      : source(model), file(CheckpointFile::open(source.path())), config(read_config(*file)), plan(*file, config) {}
  testing::TinyModelFile source;
  std::unique_ptr<CheckpointFile> file;
  ModelConfig config;
  Plan plan;
};

// Types whose packed rows are of another size than the file's.
testing::TinyModel repacked() {
  using enum TensorType;
  testing::TinyModel model = testing::tiny_llama_k();
  model.types = {iq1_s, q3_k, iq4_xs, tq1_0, iq3_s};
  return model;
}

TEST(PackingPlan, PackedBytesOfTensorsAreThoseOfThePlan) {
  for (const testing::TinyModel& model : {testing::tiny_llama_k(), repacked()}) {
    const Opened opened(model);
    std::uint64_t bytes = 0, file_bytes = 0, planned = 0;
    for (const formats::Tensor& tensor : opened.file->tensors()) {
      if (tensor.num_rows() == 1) continue;
      bytes += packed_bytes(tensor);
      file_bytes += tensor.bytes.size();
      // Last panels are filled up with rows of zeros; each matrix begins at a multiple of 64.
      const std::uint64_t rows = (tensor.num_rows() + 15) / 16 * 16;
      planned += (packed_bytes(tensor) / tensor.num_rows() * rows + 63) / 64 * 64;
    }
    EXPECT_EQ(opened.plan.plan.bytes(), planned);
    EXPECT_EQ(bytes > file_bytes, model.types[0] == TensorType::iq1_s);
  }
}

TEST(PackingPlan, AnyPiecesGiveTheSameBytes) {
  for (const testing::TinyModel& model :
       {testing::tiny_llama(), testing::tiny_llama_k(), testing::tiny_llama_f32(), repacked()}) {
    const Opened opened(model);
    const std::vector<std::byte> whole = opened.plan.packed(opened.plan.plan.bytes());
    for (const std::size_t piece : {std::size_t{997}, std::size_t{4096}, std::size_t{70'001}})
      EXPECT_EQ(opened.plan.packed(piece), whole) << "pieces of " << piece;
  }
}

TEST(PackingPlan, RowsOfATensorMakeMatricesOfTheirOwn) {
  constexpr int kCols = 5, kRows = 50, kFirst = 19;
  std::vector<float> values(kCols * kRows);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  const std::vector<std::byte> bytes = formats::GgufBuilder().add("general.name", "fused").add_tensor("fused", {kCols, kRows}, values).build();
  const auto file = CheckpointFile::parse(bytes);
  PackingPlan plan(*file, ModelConfig{});
  PackedMatrix parts[2];
  plan.add(file->tensors()[0], 0, kFirst, parts[0]);
  plan.add(file->tensors()[0], kFirst, kRows - kFirst, parts[1]);
  std::vector<std::byte> packed(plan.bytes()), scratch(plan.scratch_bytes());
  plan.pack(0, packed, kernels::select_kernels("reference"), scratch.data());
  plan.place(packed.data());
  for (int row = 0; row < kRows; ++row) {
    const PackedMatrix& part = parts[row < kFirst ? 0 : 1];
    const int r = row < kFirst ? row : row - kFirst;
    const std::byte* panel = part.panels + static_cast<std::size_t>(r / 16) * part.panel_bytes;
    for (int k = 0; k < kCols; ++k) {
      float value;
      std::memcpy(&value, panel + (k * 16 + r % 16) * 4, sizeof value);
      EXPECT_EQ(value, values[static_cast<std::size_t>(row * kCols + k)]) << row << " " << k;
    }
  }
}

// In every file type, from a row inside the tensor; the last panel is not full.
TEST(PackingPlan, RowsBecomeColumnsOfFloats) {
  using formats::TensorType;
  constexpr std::uint64_t kLength = 512 + 256;
  for (const TensorType type : {TensorType::f32, TensorType::bf16, TensorType::q8_0, TensorType::q4_k, TensorType::q6_k}) {
    constexpr int kRows = 9, kFirst = 2, kTaken = 5;
    const std::uint64_t length = type == TensorType::f32 ? 21 : kLength;
    const std::size_t row_bytes = length / formats::info(type).block_values * formats::info(type).block_bytes;
    std::vector<std::byte> data(kRows * row_bytes);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 % 60);  // no NaN
    const auto bytes = formats::GgufBuilder().add("general.name", "x").add_tensor("x", type, {length, kRows}, data).build();
    const auto file = CheckpointFile::parse(bytes);
    PackingPlan plan(*file, ModelConfig{});
    PackedMatrix turned;
    plan.add_transposed(file->tensors()[0], kFirst, kTaken, turned);
    EXPECT_EQ(turned.rows, static_cast<int>(length));
    EXPECT_EQ(turned.cols, kTaken);
    std::vector<std::byte> packed(plan.bytes()), scratch(plan.scratch_bytes());
    plan.pack(0, packed, kernels::select_kernels("reference"), scratch.data());
    plan.place(packed.data());
    std::vector<float> row(length);
    for (int k = 0; k < kTaken; ++k) {
      formats::dequantize(type, data.data() + static_cast<std::size_t>(kFirst + k) * row_bytes, length, row.data());
      for (std::size_t r = 0; r < length; ++r) {
        float value;
        std::memcpy(&value, turned.panels + r / 16 * turned.panel_bytes + (static_cast<std::size_t>(k) * 16 + r % 16) * 4, sizeof value);
        ASSERT_EQ(value, row[r]) << formats::info(type).name << " " << r << " " << k;
      }
    }
  }
}

TEST(PackingPlan, EveryMatrixStandsInItsPlaceAndGapsAreZeros) {
  const Opened opened(testing::tiny_llama());
  const std::vector<std::byte> packed = opened.plan.packed(10'000);
  opened.plan.plan.place(packed.data());
  std::size_t at = 0, matrix = 0;
  for (const formats::Tensor& tensor : opened.file->tensors()) {
    if (tensor.num_rows() == 1) continue;
    const PackedMatrix& m = opened.plan.matrices[matrix++];
    const auto begin = static_cast<std::size_t>(m.panels - packed.data());
    EXPECT_EQ(begin % 64, 0U);
    EXPECT_TRUE(std::all_of(packed.begin() + std::ptrdiff_t(at), packed.begin() + std::ptrdiff_t(begin),
                            [](std::byte byte) { return byte == std::byte{0}; }));
    at = begin + static_cast<std::size_t>(m.num_panels()) * m.panel_bytes;
    if (tensor.rope_order == formats::RopeOrder::pairs) continue;
    const std::size_t row_bytes = m.panel_bytes / kernels::kPanelRows;
    for (int panel = 0; panel < m.num_panels(); ++panel) {
      std::array<const std::byte*, kernels::kPanelRows> rows{};
      for (int r = 0; r < kernels::kPanelRows; ++r) {
        const int row = panel * kernels::kPanelRows + r;
        if (row < m.rows) rows[std::size_t(r)] = tensor.bytes.data() + std::size_t(row) * row_bytes;
      }
      std::vector<std::byte> expected(m.panel_bytes);
      kernels::select_kernels("reference").pack_panel(m.type, rows.data(), m.cols, expected.data());
      ASSERT_EQ(std::memcmp(m.panels + std::size_t(panel) * m.panel_bytes, expected.data(), m.panel_bytes), 0)
          << tensor.name << " panel " << panel;
    }
  }
  EXPECT_EQ(at, packed.size());
}

TEST(PackingPlan, TheFingerprintIsOfWhatDecidesTheLayout) {
  const testing::TinyModel model = testing::tiny_llama();
  const Opened opened(model);
  testing::TinyModel other = model;
  other.seed = 99;  // other weights, laid out the same
  EXPECT_EQ(Opened(other).plan.plan.fingerprint(), opened.plan.plan.fingerprint());

  other = model;
  std::rotate(other.types.begin(), other.types.begin() + 1, other.types.end());
  EXPECT_NE(Opened(other).plan.plan.fingerprint(), opened.plan.plan.fingerprint());
  other = model;
  other.family = "gemma3";  // rows of query heads are not interleaved there
  other.window = 24;
  EXPECT_NE(Opened(other).plan.plan.fingerprint(), opened.plan.plan.fingerprint());
  other = model;
  other.vocab_size += 1;
  EXPECT_NE(Opened(other).plan.plan.fingerprint(), opened.plan.plan.fingerprint());
  ModelConfig config = opened.config;
  config.rope_dims /= 2;
  EXPECT_NE(Plan(*opened.file, config).plan.fingerprint(), opened.plan.plan.fingerprint());
}

// Bytes of the mapping around `address` that are in this process's memory.
std::size_t resident_bytes(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    unsigned long kilobytes = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      inside = begin <= reinterpret_cast<std::uintptr_t>(address) && reinterpret_cast<std::uintptr_t>(address) < end;
    else if (inside && std::sscanf(line.c_str(), "Rss: %lu kB", &kilobytes) == 1)
      return kilobytes * 1024;
  }
  return SIZE_MAX;
}

TEST(PackingPlan, WhatWasReadIsDroppedFromMemory) {
  testing::TinyModel model;
  model.num_layers = 8, model.hidden_size = 512, model.intermediate_size = 2048, model.vocab_size = 2000;
  const Opened opened(model);
  static_cast<void>(opened.plan.packed(std::size_t{1} << 20));
  EXPECT_LT(resident_bytes(opened.file->parts()[0].bytes.data()), opened.file->file_bytes() / 8);
}

}  // namespace
}  // namespace couplet::model
