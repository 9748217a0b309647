// Whole models with bytes changed anywhere: opening, loading and answering give an Error or a stop reason, nothing else.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "couplet/engine.h"
#include "tests/property/tiny_model.h"

namespace couplet {
namespace {

class Mutant {
 public:
  Mutant() {
    std::string pattern = (std::filesystem::temp_directory_path() / "couplet-mutant-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Mutant() { std::filesystem::remove_all(folder_); }
  Mutant(const Mutant&) = delete;
  Mutant& operator=(const Mutant&) = delete;

  // Counts: 0 the file was refused, 1 it answered.
  int answer(const std::vector<std::byte>& bytes) {
    const std::filesystem::path path = folder_ / "mutant.gguf";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    try {
      const auto checkpoint = Checkpoint::open(path);
      const auto engine = Engine::load(checkpoint, {.num_threads = 2, .context = 64});
      Request request;
      request.prompt = {1, 2, 3, 200, 5, 6};
      request.stop.max_tokens = 4;
      request.log_probabilities = true;
      const SubmitResult submitted = engine->submit(request);
      while (engine->has_work()) engine->step();
      return submitted ? 1 : 0;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      return 0;
    }
  }

 private:
  std::filesystem::path folder_;
};

void mutate(const testing::TinyModel& model, std::size_t header_share, int rounds) {
  const std::vector<std::byte> sound = testing::TinyModelWriter(model).builder().build();
  Mutant mutant;
  ASSERT_EQ(mutant.answer(sound), 1);
  std::mt19937_64 random(7);
  int answered = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::byte> bytes = sound;
    const std::size_t num_changes = 1 + random() % 4;
    for (std::size_t i = 0; i < num_changes; ++i)
      bytes[random() % (bytes.size() / header_share)] = static_cast<std::byte>(random());
    answered += mutant.answer(bytes);
  }
  EXPECT_GT(answered, 0) << "no mutant ran at all";
}

TEST(ModelMutation, BytesChangedAnywhere) {
  mutate(testing::tiny_llama(), 1, 150);
  mutate(testing::tiny_gemma(), 1, 150);
}

TEST(ModelMutation, BytesChangedInTheHeader) {
  mutate(testing::tiny_llama(), 10, 300);
  mutate(testing::tiny_gemma(), 10, 300);
}

// Scales that are infinite or no number: every block of one matrix.
TEST(ModelMutation, ScalesThatAreNotFinite) {
  testing::TinyModel model = testing::tiny_llama();
  const std::vector<std::byte> sound = testing::TinyModelWriter(model).builder().build();
  Mutant mutant;
  for (const unsigned bits : {0x7c00U, 0xfc00U, 0x7e00U}) {
    std::vector<std::byte> bytes = sound;
    for (std::size_t at = bytes.size() / 2; at + 1 < bytes.size() / 2 + 20000; at += 34) {
      bytes[at] = static_cast<std::byte>(bits & 0xff);
      bytes[at + 1] = static_cast<std::byte>(bits >> 8);
    }
    EXPECT_EQ(mutant.answer(bytes), 1);
  }
}

}  // namespace
}  // namespace couplet
