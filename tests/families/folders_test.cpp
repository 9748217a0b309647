// Every tiny model as the folder that transformers' save_pretrained writes (tests/data/folders): it must give the bits of
// the GGUF file, so config.json and tensors mean the same in either form.

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>
#include <set>
#include <string>

#include "formats/hf_folder.h"
#include "formats/json.h"
#include "formats/safetensors_builder.h"
#include "model/families/family.h"
#include "tests/families/tiny_files.h"
#include "tests/property/runner.h"

namespace couplet {
namespace {

using formats::JsonObject;
using testing::Generator;
using testing::Golden;
using testing::Loaded;
using testing::make_model;
using testing::read_data;
using testing::Runner;

std::string filled(std::string text, std::uint64_t layer, std::uint64_t expert) {
  for (const auto& [mark, number] : {std::pair("{layer}", layer), {"{expert}", expert}})
    if (const std::size_t at = text.find(mark); at != text.npos) text.replace(at, std::strlen(mark), std::to_string(number));
  return text;
}

// A tensor of the folder by its recipe: values of one or two tensors of the GGUF file (two: by turns in the last
// dimension), whose halves of a head are put apart ("heads"), whose matrices are turned over, or of which every head has the
// "keys", turned over, before the "values".
class Recipe {
 public:
  Recipe(const JsonObject& json, std::uint64_t layer, std::uint64_t expert)
      : shape_(json.get_uints("shape").value()),
        heads_(json.get_uint("heads").value_or(0)),
        keys_(json.get_uint("keys").value_or(0)),
        values_(json.get_uint("values").value_or(0)),
        turned_(json.get_bool("turned").value_or(false)),
        plus_(static_cast<float>(json.get_float("plus").value_or(0))) {
    const std::vector<std::string_view> names = json.get_strings("of").value();
    for (const std::string_view name : names) sources_.emplace_back(filled(std::string(name), layer, expert));
    for (const std::uint64_t dim : shape_) size_ *= dim;
    first_ = expert * size_;
  }

  const std::vector<std::uint64_t>& shape() const { return shape_; }
  std::vector<float> values() const {
    std::vector<float> values;
    for (std::uint64_t i = 0; i < size_; ++i) values.push_back(value(i));
    return values;
  }

 private:
  float value(std::uint64_t i) const {
    const std::uint64_t num = sources_.size(), cols = shape_.back(), col = i % cols;
    std::uint64_t place = first_ + i;
    if (keys_ > 0) {
      const std::uint64_t head = i / cols / (keys_ + values_), row = i / cols % (keys_ + values_);
      return row < keys_ ? sources_[0].value((head * cols + col) * keys_ + row)
                         : sources_[1].value((head * values_ + row - keys_) * cols + col);
    }
    if (turned_) {
      const std::uint64_t inputs = shape_[1], outputs = cols / num;
      place = (i / (inputs * cols) * outputs + col / num) * inputs + i / cols % inputs;
    } else if (num > 1) {
      place = i / cols * (cols / num) + col / num;
    } else if (heads_ > 0) {
      const std::uint64_t width = shape_.size() > 1 ? cols : 1, in_head = shape_[0] / heads_, row = i / width % in_head;
      const std::uint64_t paired = row % (in_head / 2) * 2 + row / (in_head / 2);
      place = (i / width - row + paired) * width + i % width;
    }
    return sources_[col % num].value(place) + plus_;
  }

  std::vector<std::uint64_t> shape_;
  std::uint64_t heads_, keys_, values_;
  bool turned_;
  float plus_;
  std::vector<Generator> sources_;
  std::uint64_t size_ = 1, first_ = 0;
};

struct FolderBytes {
  std::string config;
  std::vector<std::byte> weights;
};

FolderBytes make_folder(const std::string& name) {
  const std::vector<std::byte> text = read_data("folders/" + name + ".json");
  const formats::JsonDocument document(text, name, text.size());
  const JsonObject root = document.root(), numbers = root.get_object("numbers").value();
  const std::uint64_t layers = numbers.get_uint("layer").value(), experts = numbers.get_uint("expert").value();
  formats::SafetensorsBuilder weights;
  const JsonObject tensors = root.get_object("tensors").value();
  for (const auto& [key, json] : tensors.all_objects()) {
    const bool of_layer = key.find("{layer}") != key.npos, of_expert = key.find("{expert}") != key.npos;
    std::vector<std::uint64_t> numbers_of(of_layer ? layers : 1);
    std::iota(numbers_of.begin(), numbers_of.end(), 0);
    if (const auto some = json.get_uints("layers")) numbers_of = *some;
    for (const std::uint64_t layer : numbers_of)
      for (std::uint64_t expert = 0; expert < (of_expert ? experts : 1); ++expert) {
        const Recipe recipe(json, layer, expert);
        weights.add_floats(filled(std::string(key), layer, expert), recipe.shape(), recipe.values());
      }
  }
  return {simdjson::minify(root.get_object("config").value().object()), weights.build()};
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(COUPLET_SOURCE_DIR) + "/tests/data/families"))
    if (entry.path().extension() == ".head") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class Folders : public ::testing::TestWithParam<std::string> {};

TEST_P(Folders, GiveTheBitsOfTheGgufFile) {
  const Golden golden(GetParam());
  const Loaded gguf(make_model(GetParam(), golden.model_bytes));
  const FolderBytes bytes = make_folder(GetParam());
  Loaded folder(std::make_unique<formats::HfFolder>(std::as_bytes(std::span(bytes.config)), bytes.weights));
  EXPECT_STREQ(folder.config.family->name, gguf.config.family->name);
  // The tool gives the dynamic one another context in GGUF: there scaling goes by it, in transformers by the prompt.
  if (GetParam() != "llama_dynamic") {
    EXPECT_EQ(folder.config.context_length, gguf.config.context_length);
  }
  folder.config.context_length = gguf.config.context_length;
  EXPECT_TRUE(Runner(gguf, {}).run_alone(golden.prompt) == Runner(folder, {}).run_alone(golden.prompt));
}

INSTANTIATE_TEST_SUITE_P(Tiny, Folders, ::testing::ValuesIn(all_names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(FolderList, HasEveryFamily) {
  std::set<std::string> read;
  for (const std::string& name : all_names()) {
    const FolderBytes bytes = make_folder(name);
    const formats::HfFolder folder(std::as_bytes(std::span(bytes.config)), bytes.weights);
    read.insert(model::read_config(folder).family->name);
  }
  for (const model::Family* family : model::families()) EXPECT_TRUE(read.contains(family->name)) << family->name;
}

}  // namespace
}  // namespace couplet
