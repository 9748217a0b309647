#include "catalogue.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "couplet/error.h"

namespace couplet::cli {
namespace {

namespace fs = std::filesystem;

class Catalogue : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("catalogue." + std::to_string(getpid()));
    fs::create_directories(folder_);
    if (const char* before = std::getenv("COUPLET_MODELS")) before_ = before;
    setenv("COUPLET_MODELS", folder_.c_str(), 1);
  }
  void TearDown() override {
    setenv("COUPLET_MODELS", before_.c_str(), 1);
    fs::remove_all(folder_);
  }
  std::string refusal(const std::string& name) {
    try {
      return "resolved to " + resolve_model(name).string();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::not_found);
      return error.what();
    }
  }
  fs::path folder_;
  std::string before_;
};

TEST_F(Catalogue, NamesAreFoundInTheModelsFolder) {
  std::ofstream(folder_ / "smollm2.gguf") << "x";
  EXPECT_EQ(resolve_model("smollm2"), folder_ / "smollm2.gguf");
}

TEST_F(Catalogue, APathIsTakenAsItStands) {
  const fs::path file = folder_ / "a model é.gguf";
  std::ofstream(file) << "x";
  EXPECT_EQ(resolve_model(file.string()), file);
  EXPECT_EQ(resolve_model(folder_.string()), folder_);
}

TEST_F(Catalogue, AMissingModelSaysHowToGetIt) {
  EXPECT_EQ(refusal("gemma3"),
            "[model] gemma3 is not in " + folder_.string() + ": get it with: couplet pull gemma3");
}

TEST_F(Catalogue, AnUnknownNameListsTheCatalogue) {
  EXPECT_EQ(refusal("gpt5"), "[model] \"gpt5\" is neither a file nor a name in the catalogue (smollm2, gemma3)");
  EXPECT_EQ(refusal(""), "[model] \"\" is neither a file nor a name in the catalogue (smollm2, gemma3)");
}

TEST_F(Catalogue, TheFolderDefaultsToTheHomeCache) {
  setenv("COUPLET_MODELS", "", 1);
  EXPECT_EQ(models_folder(), fs::path(std::getenv("HOME")) / ".cache/couplet");
}

TEST_F(Catalogue, PackedCopiesAreKeptThereUnlessTheUserSaysOtherwise) {
  const char* const given = std::getenv("COUPLET_PACKED");
  const std::string before = given == nullptr ? "" : given;
  setenv("COUPLET_PACKED", "", 1);
  EXPECT_EQ(packed_folder(), folder_ / "packed");
  setenv("COUPLET_PACKED", "/elsewhere", 1);
  EXPECT_EQ(packed_folder(), "/elsewhere");
  setenv("COUPLET_PACKED", "off", 1);
  EXPECT_EQ(packed_folder(), "");
  setenv("COUPLET_PACKED", before.c_str(), 1);
}

TEST(CatalogueEntries, ArePinnedAndWhole) {
  ASSERT_EQ(catalogue_names(), "smollm2, gemma3");
  for (const CatalogueEntry& entry : catalogue()) {
    EXPECT_EQ(entry.sha256.size(), 64U) << entry.name;
    EXPECT_NE(entry.terms.requirement.find("=="), std::string_view::npos) << entry.name;
    EXPECT_FALSE(entry.parts.empty()) << entry.name;
    for (const PackagedFile& part : entry.parts)
      EXPECT_NE(part.requirement.find("=="), std::string_view::npos) << part.requirement;
  }
}

}  // namespace
}  // namespace couplet::cli
