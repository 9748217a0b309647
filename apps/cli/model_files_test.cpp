#include "model_files.h"

#include <gtest/gtest.h>

#include "couplet/error.h"

namespace couplet::cli {
namespace {

using Paths = std::vector<std::string>;

// What is chosen, or the refusal.
std::string chosen(const Paths& paths, std::string_view wanted = "") {
  const auto models = gguf_models(paths);
  try {
    return choose_gguf(models, wanted, "x").path();
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ModelFiles, TheBestIsAFourBitOneThenAnEightBitOneThenTheOnlyOne) {
  EXPECT_EQ(chosen({"m-Q8_0.gguf", "m-Q4_K_M.gguf", "m-F16.gguf"}), "m-Q4_K_M.gguf");
  EXPECT_EQ(chosen({"m-Q8_0.gguf", "m-Q4_K_S.gguf", "m-F16.gguf"}), "m-Q8_0.gguf");
  EXPECT_EQ(chosen({"README.md", "m.gguf", "mmproj-m.gguf", "m.imatrix.gguf"}), "m.gguf");
  EXPECT_EQ(chosen({"b.gguf", "a.gguf"}), "x: expected :FILE that says which, there are a.gguf, b.gguf");
  EXPECT_EQ(chosen({"README.md", ".gguf", "gguf"}), "x: expected a GGUF file, there is none");
  EXPECT_EQ(chosen({"mmproj-m.gguf"}), "x: expected a GGUF file, there is mmproj-m.gguf");
}

TEST(ModelFiles, ATagIsAPieceOfTheNameWhateverItsCase) {
  const Paths paths = {"m.q5_k_m.gguf", "m.Q5_K_S.gguf", "m-UD-Q4_K_XL.gguf", "IQ4_NL/m.gguf", "m_f16.gguf"};
  EXPECT_EQ(chosen(paths, "Q5_K_M"), "m.q5_k_m.gguf");
  EXPECT_EQ(chosen(paths, "q5_k_s"), "m.Q5_K_S.gguf");
  EXPECT_EQ(chosen(paths, "Q4_K_XL"), "m-UD-Q4_K_XL.gguf");
  EXPECT_EQ(chosen(paths, "UD-Q4_K_XL"), "m-UD-Q4_K_XL.gguf");
  EXPECT_EQ(chosen(paths, "IQ4_NL"), "IQ4_NL/m.gguf");
  EXPECT_EQ(chosen(paths, "F16"), "m_f16.gguf");
  for (const char* none : {"Q4_NL", "Q5_K", "Q4_K", "GGUF", "q"}) EXPECT_NE(chosen(paths, none).find("or quantization"), std::string::npos) << none;
  EXPECT_EQ(chosen({"mmproj-f16.gguf", "m-f16.gguf"}, "mmproj-f16.gguf"), "mmproj-f16.gguf");  // asked for by its name
}

TEST(ModelFiles, PartsOfASplitModelAreOne) {
  const Paths paths = {"d/m-00002-of-00002.gguf", "d/m-00001-of-00002.gguf", "n-00001-of-00003.gguf", "n-00003-of-00003.gguf"};
  const auto models = gguf_models(paths);
  ASSERT_EQ(models.size(), 2U);
  EXPECT_EQ(models[0].parts, (Paths{"d/m-00001-of-00002.gguf", "d/m-00002-of-00002.gguf"}));
  EXPECT_TRUE(models[0].whole());
  EXPECT_FALSE(models[1].whole());
  EXPECT_EQ(chosen(paths, "d/m-00002-of-00002.gguf"), "d/m-00001-of-00002.gguf");
  EXPECT_EQ(chosen(paths, "n-00001-of-00003.gguf"), "x: expected 3 parts of n-00001-of-00003.gguf, there are 2");
}

TEST(ModelFiles, NamesThatOnlyLookLikeParts) {
  for (const char* path : {"m-00000-of-00002.gguf", "m-00003-of-00002.gguf", "m-0001-of-0002.gguf", "-00001-of-00002.gguf", "m-00001-of-0000x.gguf"})
    EXPECT_EQ(chosen({path}), path);
  EXPECT_EQ(gguf_models(Paths{"m-00001-of-00002.gguf", "m-00001-of-00003.gguf", "m.gguf"}).size(), 3U);
}

TEST(ModelFiles, AFolderEndsWithItsMark) {
  EXPECT_EQ(folder_files(Paths{"config.json", "tokenizer.json", "model.safetensors", "README.md", "original/model.safetensors"}),
            (Paths{"tokenizer.json", "model.safetensors", "config.json"}));
  EXPECT_EQ(folder_files(Paths{"model.safetensors.index.json", "model-1.safetensors", "config.json", "consolidated.safetensors"}),
            (Paths{"model.safetensors.index.json", "model-1.safetensors", "config.json"}));
  EXPECT_EQ(folder_files(Paths{"model.safetensors.index.json", "model-1.safetensors", "model.safetensors", "config.json"}),
            (Paths{"model.safetensors", "config.json"}));
  EXPECT_EQ(folder_files(Paths{"model.safetensors", "tokenizer.json"}), Paths{});
  EXPECT_EQ(folder_files(Paths{"config.json", "pytorch_model.bin"}), Paths{});
}

}  // namespace
}  // namespace couplet::cli
