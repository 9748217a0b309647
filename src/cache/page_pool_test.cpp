#include "cache/page_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "base/check.h"
#include "cache/page_table.h"
#include "couplet/error.h"

namespace couplet::cache {
namespace {

constexpr CacheShape kShape{.num_layers = 3, .num_kv_heads = 2, .head_dim = 20};

TEST(PagePool, CountsBytesWithPaddedHeads) {
  EXPECT_EQ(kShape.head_bytes(), 2U * 16 * 32 * 2);  // f16, 20 pads to 32
  EXPECT_EQ(kShape.page_bytes(), kShape.head_bytes() * 3 * 2);
  CacheShape shape = kShape;
  shape.format = PageFormat::q16;  // a position: 32 keys and a scale, 32 values and a scale
  EXPECT_EQ(shape.head_bytes(), 16U * (32 * 2 + 4 + 32 + 4));
  shape.format = PageFormat::q16_fine;  // and 32 values more
  EXPECT_EQ(shape.head_bytes(), 16U * (32 * 2 + 4 + 32 + 4 + 32));
}

TEST(PagePool, GivesEveryPageOnceAndThenNone) {
  PagePool pool(kShape, 5);
  for (PageId expected = 0; expected < 5; ++expected) EXPECT_EQ(pool.allocate(), expected);
  EXPECT_EQ(pool.allocate(), -1);
  EXPECT_EQ(pool.free_pages(), 0);
  pool.release(3);
  EXPECT_EQ(pool.used_pages(), 4);
  EXPECT_EQ(pool.allocate(), 3);
}

TEST(PagePool, FreesAtTheLastReference) {
  PagePool pool(kShape, 1);
  const PageId id = pool.allocate();
  pool.retain(id);
  pool.release(id);
  EXPECT_EQ(pool.references(id), 1);
  EXPECT_EQ(pool.allocate(), -1);
  pool.release(id);
  EXPECT_EQ(pool.references(id), 0);
  EXPECT_EQ(pool.allocate(), id);
}

TEST(PagePool, EveryHeadHasItsOwnAlignedPlace) {
  constexpr PageId kPages = 2 * kernels::kSpanPages;  // whole groups leave no gaps
  PagePool pool(kShape, kPages);
  std::set<std::byte*> starts;
  for (int layer = 0; layer < 3; ++layer)
    for (PageId id = 0; id < kPages; ++id)
      for (int head = 0; head < 2; ++head) {
        std::byte* place = pool.page(layer, id, head);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place) % 64, 0U);
        place[0] = place[kShape.head_bytes() - 1] = std::byte{7};  // both ends can be written
        starts.insert(place);
      }
  ASSERT_EQ(starts.size(), 3U * kPages * 2);
  EXPECT_EQ(*starts.begin(), pool.page(0, 0, 0));
  const std::byte* previous = nullptr;
  for (const std::byte* start : starts) {
    if (previous != nullptr) {
      EXPECT_EQ(start - previous, std::ptrdiff_t(kShape.head_bytes()));
    }
    previous = start;
  }
}

TEST(PagePool, NeighboursLieTogetherLayerByLayer) {
  PagePool pool(kShape, 20);
  const auto apart = [&](const std::byte* a, const std::byte* b) {
    return static_cast<double>(b - a) / static_cast<double>(kShape.page_bytes());
  };
  EXPECT_EQ(apart(pool.page(1, 4, 0), pool.page(1, 5, 0)), 1.0 / kShape.num_layers);
  EXPECT_EQ(apart(pool.page(0, 0, 0), pool.page(2, 15, 1)), 16 - 0.5 / kShape.num_layers);  // a group is 16 pages large
  EXPECT_EQ(apart(pool.page(0, 0, 0), pool.page(0, 16, 0)), 16);
  *(pool.page(2, 19, 1) + kShape.head_bytes() - 1) = std::byte{1};  // a last group that is not full has its room too
}

TEST(PagePool, ReservesFarMoreThanItTouches) {
  // 64 GiB of address space; only what is written becomes memory.
  const CacheShape shape{.num_layers = 32, .num_kv_heads = 8, .head_dim = 128};
  const int num_pages = static_cast<int>((std::size_t{64} << 30) / shape.page_bytes());
  PagePool pool(shape, num_pages);
  EXPECT_EQ(pool.free_pages(), num_pages);
  *pool.page(31, num_pages - 1, 7) = std::byte{1};
}

TEST(PagePool, RefusesWhatCantBe) {
  const auto kind_of = [](const CacheShape& shape, int num_pages) {
    try {
      PagePool pool(shape, num_pages);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.kind();
    }
    return ErrorKind::io;  // none of those below
  };
  EXPECT_EQ(kind_of({.num_layers = 0, .num_kv_heads = 1, .head_dim = 64}, 1), ErrorKind::usage);
  EXPECT_EQ(kind_of({.num_layers = 1, .num_kv_heads = -1, .head_dim = 64}, 1), ErrorKind::usage);
  EXPECT_EQ(kind_of({.num_layers = 1, .num_kv_heads = 1, .head_dim = INT32_MAX}, 1), ErrorKind::usage);
  EXPECT_EQ(kind_of(kShape, 0), ErrorKind::usage);
  EXPECT_EQ(kind_of({.num_layers = 60000, .num_kv_heads = 60000, .head_dim = 60000}, INT32_MAX), ErrorKind::resource);
  EXPECT_EQ(kind_of({.num_layers = 1000, .num_kv_heads = 100, .head_dim = 1024}, INT32_MAX), ErrorKind::resource);
}

TEST(PagePool, MisuseIsAFault) {
  PagePool pool(kShape, 2);
  EXPECT_THROW(pool.release(0), Fault);
  EXPECT_THROW(pool.retain(-1), Fault);
  EXPECT_THROW(pool.references(2), Fault);
}

TEST(PageTable, ReservesAppendsTruncates) {
  PagePool pool(kShape, 8);
  PageTable table(pool, 100);
  EXPECT_EQ(table.max_positions(), 100);
  EXPECT_TRUE(table.reserve(17));
  EXPECT_EQ(table.pages().size(), 2U);
  EXPECT_EQ(table.num_positions(), 0);
  table.append(17);
  EXPECT_EQ(table.num_whole_pages(), 1);
  EXPECT_TRUE(table.reserve(32));  // fits already
  EXPECT_EQ(pool.used_pages(), 2);
  table.append(15);
  EXPECT_THROW(table.append(1), Fault);  // beyond what is reserved
}

TEST(PageTable, TruncateGivesWholePagesBack) {
  PagePool pool(kShape, 8);
  PageTable table(pool, 100);
  ASSERT_TRUE(table.reserve(100));
  EXPECT_EQ(pool.used_pages(), 7);
  table.append(40);
  table.truncate(33);  // reserved pages go too
  EXPECT_EQ(pool.used_pages(), 3);
  table.truncate(32);
  EXPECT_EQ(pool.used_pages(), 2);
  table.clear();
  EXPECT_EQ(pool.used_pages(), 0);
  EXPECT_TRUE(table.pages().empty());
}

TEST(PageTable, KeepsWhatItGotFromAnEmptyPool) {
  PagePool pool(kShape, 3);
  const PageId other = pool.allocate();
  PageTable table(pool, 48);
  EXPECT_FALSE(table.reserve(48));
  EXPECT_EQ(table.pages().size(), 2U);
  pool.release(other);
  EXPECT_TRUE(table.reserve(48));
}

TEST(PageTable, AdoptsSharedPagesAndNeverCutsIntoOne) {
  PagePool pool(kShape, 4);
  const PageId shared[] = {pool.allocate(), pool.allocate()};
  {
    PageTable table(pool, 64);
    for (PageId id : shared) {
      pool.retain(id);
      table.adopt(id);
    }
    EXPECT_EQ(table.num_positions(), 32);
    ASSERT_TRUE(table.reserve(33));
    table.append(1);
    EXPECT_EQ(table.pages()[2], 2);  // a page of its own
    table.truncate(32);
    EXPECT_THROW(table.truncate(31), Fault);
  }
  EXPECT_EQ(pool.references(shared[0]), 1);
  EXPECT_EQ(pool.references(shared[1]), 1);
}

TEST(PageTable, AnAdoptedPageTakesThePlaceOfWhatWasBegun) {
  PagePool pool(kShape, 4);
  PageTable table(pool, 64);
  ASSERT_TRUE(table.reserve(40));
  table.append(20);  // a whole page and a begun one
  const PageId known = pool.allocate();
  table.adopt(known);
  EXPECT_EQ(table.num_positions(), 32);
  EXPECT_EQ(table.pages()[1], known);
  EXPECT_EQ(pool.used_pages(), 2);
  const PageId same = pool.allocate();
  table.replace(0, same);
  EXPECT_EQ(table.pages()[0], same);
  EXPECT_EQ(pool.used_pages(), 2);
  EXPECT_THROW(table.replace(2, same), Fault);
  table.clear();
  EXPECT_EQ(pool.used_pages(), 0);
}

}  // namespace
}  // namespace couplet::cache
