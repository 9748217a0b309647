#pragma once
// The tensors of a folder's safetensors files under GGUF's names and in GGUF's forms. They point into the files, or their
// rows are made when they are read (made_rows.h).

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint_file.h"
#include "formats/hf_config.h"
#include "formats/hf_names.h"
#include "formats/made_rows.h"
#include "formats/name_index.h"
#include "formats/safetensors.h"

namespace couplet::formats {

class HfTensors {
 public:
  HfTensors() = default;  // none
  // All that the files hold, whose bytes outlive the object. Throws Error{unsupported} for a name or type that isn't
  // built in, Error{format} where config and tensors do not agree.
  HfTensors(const HfConfig& config, std::span<const SafeTensor> found);

  std::span<const Tensor> all() const { return tensors_; }
  const Tensor* find(std::string_view name) const;

 private:
  // The parts of a tensor that GGUF holds as one, by expert.
  using ExpertParts = std::map<int, Tensor>;

  void find_scales(std::span<const SafeTensor> found);
  void take(const SafeTensor& from, const HfTensorName& name);
  void take_columns(const SafeTensor& from, const HfTensorName& name);
  void take_blocks(const SafeTensor& from, const HfTensorName& name);
  const SafeTensor* find_scale(const SafeTensor& weights);
  Tensor to_tensor(const SafeTensor& from);
  Tensor f8_tensor(const SafeTensor& from, Tensor tensor);
  F8Scales read_scales(const SafeTensor& codes, const SafeTensor& scales) const;
  void join_experts(const std::string& name, const ExpertParts& parts);
  void add_factors();
  void add(Tensor tensor, const std::string& name);
  const RowSource* keep(std::unique_ptr<RowSource> rows) { return sources_.emplace_back(std::move(rows)).get(); }
  std::span<const std::byte> made_bytes(const Tensor& tensor);
  void finish();

  const HfConfig* config_ = nullptr;  // while it is made
  struct Scale {
    const SafeTensor* tensor;
    bool is_used;
  };
  std::map<std::string, Scale> scales_;  // by the weights' name
  std::map<std::string, ExpertParts> experts_;
  std::vector<Tensor> tensors_;
  std::deque<std::string> names_;  // the tensors'
  std::vector<std::unique_ptr<RowSource>> sources_;
  std::vector<std::unique_ptr<std::byte[]>> bytes_;
  NameIndex index_;
};

}  // namespace couplet::formats
