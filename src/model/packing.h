#pragma once
// Which bytes a checkpoint's matrices become when they are packed (kernels/packed.h), one matrix behind the other, each
// at a multiple of 64. Any stretch of those bytes can be made by itself, so that threads, and a file that is written
// in pieces, may take them as they like.

#include <cstdint>
#include <span>
#include <vector>

#include "formats/checkpoint_file.h"
#include "kernels/kernels.h"
#include "model/config.h"

namespace couplet::model {

// Bytes that a tensor's matrices take when they are packed, but for what fills up last panels; of a type that the kernels
// read as it is, as many as in the file.
std::uint64_t packed_bytes(const formats::Tensor& tensor);

// How the outputs of a projection divide into heads, and which of a head's rope turns.
struct HeadRows {
  int size, rope_begin, rope_dims;
};

class PackingPlan {
 public:
  PackingPlan(const formats::CheckpointFile& file, const ModelConfig& config)
      : file_(&file), heads_{config.head_dim, config.rope_begin, config.rope_dims} {}

  // Rows [first_row, first_row + num_rows) of `tensor` come next, a matrix of their own; `into` gets its type and sizes now
  // and its panels in place(). Heads are those of the config.
  void add(const formats::Tensor& tensor, int first_row, int num_rows, kernels::PackedMatrix& into) {
    add(tensor, first_row, num_rows, into, heads_);
  }
  void add(const formats::Tensor& tensor, int first_row, int num_rows, kernels::PackedMatrix& into, const HeadRows& heads);
  void add(const formats::Tensor& tensor, kernels::PackedMatrix& into) {
    add(tensor, 0, static_cast<int>(tensor.num_rows()), into);
  }
  // The same rows as columns, in F32: blocks of a quantized type run along the other side.
  void add_transposed(const formats::Tensor& tensor, int first_row, int num_rows, kernels::PackedMatrix& into);
  std::uint64_t bytes() const { return bytes_; }
  // Of all that decides the packed bytes but for the tensors' own: names, types, sizes, order and the layout itself.
  std::uint64_t fingerprint() const;

  // Writes the packed bytes from `begin` on into `out`, while the system reads on in the file; what was read is dropped
  // from memory again. `scratch` has scratch_bytes() bytes of the calling thread's own.
  void pack(std::size_t begin, std::span<std::byte> out, const kernels::KernelTable& kernels, std::byte* scratch) const;
  std::size_t scratch_bytes() const { return most_panel_bytes_ + most_made_bytes_ + most_coded_bytes_; }
  // Points every matrix into the packed bytes.
  void place(const std::byte* packed) const;
  // File row, of a matrix or a vector, that holds output `row`: where the file interleaves the halves of a head, they are
  // put apart again.
  int file_row(int row, formats::RopeOrder order) const { return file_row(row, order, heads_); }

 private:
  struct Matrix {
    const formats::Tensor* tensor;
    int first_row;      // of the tensor's
    kernels::PackedMatrix* into;
    std::size_t begin;  // among the packed bytes
    HeadRows heads;
    bool transposed;

    std::size_t end() const { return begin + static_cast<std::size_t>(into->num_panels()) * into->panel_bytes; }
    // The file's share of the packed bytes [from, to) of this matrix; packed and file bytes run along together, but for the
    // rows of a head. None where they don't: a transposed panel is of all rows.
    std::span<const std::byte> file_bytes(std::size_t from, std::size_t to) const;
  };
  static int file_row(int row, formats::RopeOrder order, const HeadRows& heads);
  void append(Matrix matrix);
  static void pack_transposed(const Matrix& matrix, int panel, std::byte* out, const kernels::KernelTable& kernels);
  void pack_panel(const Matrix& matrix, int panel, std::byte* out, const kernels::KernelTable& kernels,
                  std::byte* rows_scratch) const;
  void pack_matrix(const Matrix& matrix, std::size_t begin, std::span<std::byte> out, const kernels::KernelTable& kernels,
                   std::byte* scratch) const;
  template <class Body>
  void for_matrices(std::size_t begin, std::size_t end, const Body& body) const;
  void read_ahead(std::size_t begin, std::size_t end) const;
  void drop_behind(std::span<const std::byte> read) const;

  const formats::CheckpointFile* file_;
  HeadRows heads_;
  std::vector<Matrix> matrices_;
  std::uint64_t bytes_ = 0;
  std::size_t most_panel_bytes_ = 0, most_made_bytes_ = 0, most_coded_bytes_ = 0;
};

}  // namespace couplet::model
