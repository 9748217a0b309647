#pragma once
// Takes keys from a config.json over into GGUF's, one call a key.

#include <string>

#include "formats/hf_config.h"

namespace couplet::formats {

class HfConfigReader {
 public:
  HfConfigReader(const JsonObject& json, HfConfig& config) : json_(json), config_(config) {}

  const JsonObject& json() const { return json_; }
  const HfModelType& type() const { return *config_.type; }
  // Each takes the value of `from`, where there is one, as "<family>.<to>".
  void take_uint(const char* from, const char* to);
  void take_float(const char* from, const char* to);
  void set(const char* to, KeyValues::Value value);
  void set_missing(const char* to, KeyValues::Value value);
  void add_factors(std::string name, std::vector<float> values) {
    config_.factors.push_back({std::move(name), std::move(values)});
  }
  void leave_layers_behind(std::uint64_t num_layers_used) { config_.num_layers_used = num_layers_used; }
  // What was taken or set.
  std::optional<std::uint64_t> taken(const char* to) const;
  // At least 1; an error without it.
  std::uint64_t required_uint(std::string_view key) const;
  std::uint64_t head_dim() const;
  [[noreturn]] void refuse_option(std::string_view key, const std::string& built, const std::string& got) const;

 private:
  const JsonObject& json_;
  HfConfig& config_;
};

// Base and scaling of rope, in the spelling of any transformers version (hf_rope.cpp).
void add_rope_keys(HfConfigReader& reader);

}  // namespace couplet::formats
