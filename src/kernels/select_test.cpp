#include <cstdlib>

#include "couplet/error.h"
#include "kernels/kernel_testing.h"

namespace couplet::kernels::testing {
namespace {

TEST(SelectTest, ReferenceRunsEverywhereAndComesLast) {
  const std::vector<const KernelTable*> levels = levels_of_this_machine();
  ASSERT_FALSE(levels.empty());
  EXPECT_STREQ(levels.back()->name, "reference");
  for (const KernelTable* level : levels) EXPECT_EQ(&select_kernels(level->name), level);
}

TEST(SelectTest, KnownLevelsThatRunAreTheRunnableOnes) {
  LevelInfo known[8];
  const int count = known_levels(known);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    if (known[i].runs) names.push_back(known[i].name);
    EXPECT_EQ(std::string(known[i].needs).empty(), std::string(known[i].name) == "reference");
    if (!known[i].runs) {
      EXPECT_THROW(select_kernels(known[i].name), Error);
    }
  }
  std::vector<std::string> runnable;
  for (const KernelTable* level : levels_of_this_machine()) runnable.push_back(level->name);
  EXPECT_EQ(names, runnable);
}

TEST(SelectTest, TheEnvironmentNamesALevelWhereNothingElseDoes) {
  const char* before = std::getenv("COUPLET_KERNELS");
  const std::string saved = before ? before : "";
  ASSERT_EQ(setenv("COUPLET_KERNELS", "reference", 1), 0);
  EXPECT_STREQ(select_kernels().name, "reference");
  EXPECT_EQ(&select_kernels(levels_of_this_machine().front()->name), levels_of_this_machine().front());
  ASSERT_EQ(setenv("COUPLET_KERNELS", "", 1), 0);
  EXPECT_EQ(&select_kernels(), levels_of_this_machine().front());
  before ? setenv("COUPLET_KERNELS", saved.c_str(), 1) : unsetenv("COUPLET_KERNELS");
}

TEST(SelectTest, AnUnknownLevelIsRefusedByName) {
  try {
    select_kernels("sse9");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_STREQ(error.what(), "[kernels] level: expected amx, avx512, avx2_vnni, avx2 or reference, got \"sse9\"");
  }
}

TEST(SelectTest, EveryTableIsComplete) {
  for (const KernelTable* level : all_levels()) {
    EXPECT_NE(level->many_rows, nullptr) << level->name;
    EXPECT_NE(level->one_row, nullptr) << level->name;
    EXPECT_NE(level->float_rows, nullptr) << level->name;
  }
}

}  // namespace
}  // namespace couplet::kernels::testing
