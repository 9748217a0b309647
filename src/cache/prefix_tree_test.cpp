#include "cache/prefix_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <random>
#include <utility>

#include "cache/page_table.h"

namespace couplet::cache {
namespace {

constexpr CacheShape kShape{.num_layers = 1, .num_kv_heads = 1, .head_dim = 16};
constexpr int kPage = kernels::kPagePositions;

// Whole pages of one repeated number each, then `tail` more tokens.
std::vector<TokenId> tokens_of(const std::vector<int>& pages, int tail = 0) {
  std::vector<TokenId> tokens;
  for (int value : pages) tokens.insert(tokens.end(), kPage, value);
  tokens.insert(tokens.end(), static_cast<std::size_t>(tail), 99);
  return tokens;
}

// The longest known prefix of `tokens`, at most max_pages, each page retained for the caller.
std::vector<PageId> match(PrefixTree& tree, std::uint64_t salt, std::span<const TokenId> tokens, int max_pages) {
  std::vector<PageId> found;
  PrefixTree::Place place = PrefixTree::root(salt);
  for (; static_cast<int>(found.size()) < max_pages && tokens.size() >= kPage; tokens = tokens.subspan(kPage)) {
    const PageId page = tree.step(place, tokens.first(kPage));
    if (page < 0) break;
    found.push_back(page);
  }
  tree.touch(place);
  return found;
}

// Enters all pages; those that the tree has already stay the caller's.
void insert(PrefixTree& tree, PagePool& pool, std::uint64_t salt, std::span<const TokenId> tokens,
            std::span<const PageId> pages) {
  PrefixTree::Place place = PrefixTree::root(salt);
  for (std::size_t n = 0; n < pages.size(); ++n) {
    const PageId page = tree.enter(place, tokens.subspan(n * kPage, kPage), pages[n]);
    if (page != pages[n]) pool.release(page);
  }
  EXPECT_EQ(place.num_pages(), static_cast<int>(pages.size()));
  tree.touch(place);
}

class PrefixTreeTest : public ::testing::Test {
 protected:
  // What a sequence leaves behind: its pages enter the tree and it lets go of them.
  std::vector<PageId> run(const std::vector<int>& pages, std::uint64_t salt = 0) {
    std::vector<PageId> ids;
    for (std::size_t n = 0; n < pages.size(); ++n) ids.push_back(pool_.allocate());
    insert(tree_, pool_, salt, tokens_of(pages), ids);
    for (PageId id : ids) pool_.release(id);
    return ids;
  }
  // Matched pages, let go of at once.
  std::vector<PageId> look(const std::vector<TokenId>& tokens, int max_pages = 100, std::uint64_t salt = 0) {
    std::vector<PageId> found = match(tree_, salt, tokens, max_pages);
    for (PageId id : found) pool_.release(id);
    return found;
  }

  PagePool pool_{kShape, 16};
  PrefixTree tree_{pool_};
};

TEST_F(PrefixTreeTest, FindsTheLongestPrefixInWholePages) {
  const auto ids = run({1, 2, 3});
  EXPECT_EQ(look(tokens_of({1, 2, 3})), ids);
  EXPECT_EQ(look(tokens_of({1, 2, 4})), std::vector<PageId>(ids.begin(), ids.begin() + 2));
  EXPECT_EQ(look(tokens_of({1, 2}, 15)), std::vector<PageId>(ids.begin(), ids.begin() + 2));
  EXPECT_TRUE(look(tokens_of({2, 3})).empty());
  EXPECT_TRUE(look(tokens_of({}, 15)).empty());
  EXPECT_TRUE(look({}).empty());
}

TEST_F(PrefixTreeTest, KeepsToTheLimits) {
  const auto ids = run({1, 2, 3});
  EXPECT_EQ(look(tokens_of({1, 2, 3}), 2).size(), 2U);
  EXPECT_TRUE(look(tokens_of({1, 2, 3}), 0).empty());
  EXPECT_TRUE(look(tokens_of({1, 2, 3}), -1).empty());
  EXPECT_EQ(match(tree_, 0, tokens_of({1, 2, 3}), 1).size(), 1U);
  EXPECT_EQ(pool_.references(ids[0]), 2);
  EXPECT_EQ(pool_.references(ids[1]), 1);
}

TEST_F(PrefixTreeTest, OnlyWholePagesEnter) {
  const PageId id = pool_.allocate();
  PrefixTree::Place place = PrefixTree::root(0);
  EXPECT_ANY_THROW(tree_.enter(place, tokens_of({}, 15), id));
  EXPECT_ANY_THROW(tree_.step(place, tokens_of({}, 15)));
  EXPECT_EQ(place, PrefixTree::root(0));
  EXPECT_EQ(pool_.references(id), 1);
}

TEST_F(PrefixTreeTest, APageIsFoundAsSoonAsItEnters) {
  PrefixTree::Place writer = PrefixTree::root(3), reader = PrefixTree::root(3);
  const auto tokens = tokens_of({1, 2});
  const std::span<const TokenId> first(tokens.data(), kPage), second(tokens.data() + kPage, kPage);
  EXPECT_EQ(tree_.step(reader, first), -1);
  EXPECT_EQ(reader, PrefixTree::root(3));
  const PageId page = pool_.allocate();
  EXPECT_EQ(tree_.enter(writer, first, page), page);
  EXPECT_EQ(tree_.step(reader, first), page);
  EXPECT_EQ(reader, writer);
  EXPECT_EQ(pool_.references(page), 3);
  // Both make the second page: one of them counts.
  const PageId ours = pool_.allocate(), theirs = pool_.allocate();
  EXPECT_EQ(tree_.enter(writer, second, ours), ours);
  EXPECT_EQ(tree_.enter(reader, second, theirs), ours);
  EXPECT_EQ(reader, writer);
  EXPECT_EQ(pool_.references(ours), 3);
  EXPECT_EQ(pool_.references(theirs), 1);
}

TEST_F(PrefixTreeTest, IdlePagesAreThoseOfTheTreeAlone) {
  const auto ids = run({1, 2});
  EXPECT_EQ(pool_.idle_pages(), 2);
  const auto held = match(tree_, 0, tokens_of({1, 2}), 1);
  EXPECT_EQ(pool_.idle_pages(), 1);
  pool_.retain(held[0]);
  EXPECT_EQ(pool_.idle_pages(), 1);
  pool_.release(held[0]);
  pool_.release(held[0]);
  EXPECT_EQ(pool_.idle_pages(), 2);
  EXPECT_TRUE(tree_.evict_one());
  EXPECT_EQ(pool_.idle_pages(), 1);
  tree_.clear();
  EXPECT_EQ(pool_.idle_pages(), 0);
}

TEST_F(PrefixTreeTest, OneDifferentTokenIsAnotherPage) {
  run({1, 2});
  for (std::size_t n = 0; n < kPage; ++n) {
    auto tokens = tokens_of({1, 2});
    tokens[n] = 7;
    EXPECT_TRUE(look(tokens).empty());
    tokens = tokens_of({1, 2});
    tokens[kPage + n] = 7;
    EXPECT_EQ(look(tokens).size(), 1U);
  }
}

TEST_F(PrefixTreeTest, SaltsShareNothing) {
  const auto ids = run({1, 2}, 5);
  EXPECT_TRUE(look(tokens_of({1, 2}), 100, 6).empty());
  const auto others = run({1, 2}, 6);
  EXPECT_EQ(look(tokens_of({1, 2}), 100, 5), ids);
  EXPECT_EQ(look(tokens_of({1, 2}), 100, 6), others);
}

TEST_F(PrefixTreeTest, TheFirstPageOfAPrefixStays) {
  const auto first = run({1, 2});
  const auto second = run({1, 2, 3});
  EXPECT_EQ(tree_.num_nodes(), 3);
  EXPECT_EQ(look(tokens_of({1, 2, 3})), (std::vector{first[0], first[1], second[2]}));
  EXPECT_EQ(pool_.used_pages(), 3);
}

TEST_F(PrefixTreeTest, EvictsTheLeastRecentlyUsedLeafFirst) {
  const auto old = run({1, 2});
  const auto other = run({1, 3});
  look(tokens_of({1, 2}));
  EXPECT_TRUE(tree_.evict_one());  // {1, 3}, though {1, 2} came first
  EXPECT_EQ(look(tokens_of({1, 2})).size(), 2U);
  EXPECT_EQ(look(tokens_of({1, 3})).size(), 1U);
  EXPECT_EQ(pool_.references(other[1]), 0);
  EXPECT_TRUE(tree_.evict_one());
  EXPECT_TRUE(tree_.evict_one());
  EXPECT_FALSE(tree_.evict_one());
  EXPECT_EQ(pool_.used_pages(), 0);
  EXPECT_EQ(pool_.references(old[0]), 0);
}

TEST_F(PrefixTreeTest, NeverEvictsAPageInUse) {
  const auto ids = run({1, 2});
  run({3});
  PageTable table(pool_, 64);
  for (const PageId page : match(tree_, 0, tokens_of({1, 2}), 4)) table.adopt(page);
  look(tokens_of({3}));
  EXPECT_TRUE(tree_.evict_one());
  EXPECT_TRUE(look(tokens_of({3})).empty());
  EXPECT_FALSE(tree_.evict_one());
  EXPECT_EQ(look(tokens_of({1, 2})), ids);
  table.clear();
  EXPECT_TRUE(tree_.evict_one());
  EXPECT_EQ(look(tokens_of({1, 2})).size(), 1U);
}

TEST_F(PrefixTreeTest, ClearLetsGoOfEverything) {
  run({1, 2, 3});
  run({1, 4});
  tree_.clear();
  EXPECT_EQ(tree_.num_nodes(), 0);
  EXPECT_EQ(pool_.used_pages(), 0);
  EXPECT_TRUE(look(tokens_of({1})).empty());
  run({1, 2});  // and can be used again
  EXPECT_EQ(look(tokens_of({1, 2})).size(), 2U);
}

TEST(PrefixTree, EvictionCostsAConstantEvenBesideManyPagesInUse) {
  // 400 pages in use are the oldest in the list; 400 others are given back one by one.
  PagePool pool(kShape, 1000);
  PrefixTree tree(pool);
  std::vector<PageId> in_use;
  std::vector<TokenId> long_prompt;
  for (int n = 0; n < 400; ++n) {
    in_use.push_back(pool.allocate());
    long_prompt.insert(long_prompt.end(), kPage, n);
  }
  insert(tree, pool, 0, long_prompt, in_use);
  for (int n = 0; n < 400; ++n) {
    const PageId id = pool.allocate();
    insert(tree, pool, 0, tokens_of({1000 + n}), std::vector{id});
    pool.release(id);
  }
  const std::uint64_t before = tree.touches();
  for (int n = 0; n < 400; ++n) ASSERT_TRUE(tree.evict_one());
  EXPECT_LE(tree.touches() - before, 2U * 800);
  EXPECT_FALSE(tree.evict_one());
  EXPECT_EQ(pool.used_pages(), 400);
}

// The same tree, naively: prefixes of pages in a map, times of use, parents used after their children.
class Model {
 public:
  using Path = std::vector<int>;
  struct Entry {
    PageId page;
    std::uint64_t used;
  };

  std::size_t match(const Path& path, std::size_t max_pages) {
    std::size_t n = 0;
    while (n < std::min(path.size(), max_pages) && entries.contains(first(path, n + 1))) ++n;
    use(path, n);
    return n;
  }
  void insert(const Path& path, const std::vector<PageId>& pages) {
    for (std::size_t n = 0; n < pages.size(); ++n) entries.try_emplace(first(path, n + 1), Entry{pages[n], 0});
    use(path, pages.size());
  }
  // The evicted page or -1.
  template <class InUse>
  PageId evict(InUse in_use) {
    const std::uint64_t start = clock;
    while (!entries.empty()) {
      const auto oldest = std::ranges::min_element(entries, {}, [](const auto& e) { return e.second.used; });
      if (oldest->second.used > start) break;
      if (!in_use(oldest->second.page)) {
        const PageId page = oldest->second.page;
        entries.erase(oldest);
        return page;
      }
      const Path path = oldest->first;
      use(path, path.size());
    }
    return -1;
  }
  static Path first(const Path& path, std::size_t n) { return {path.begin(), path.begin() + std::ptrdiff_t(n)}; }

  std::map<Path, Entry> entries;

 private:
  void use(const Path& path, std::size_t n) {
    for (; n > 0; --n) entries.at(first(path, n)).used = ++clock;
  }
  std::uint64_t clock = 0;
};

// Sequences come, share, grow, are cancelled at any point and go, in a pool that is too small for them.
class World {
 public:
  explicit World(unsigned seed) : random_(seed) {}

  void turn() {
    switch (random_() % 4) {
      case 0: start(); break;
      case 1: grow(); break;
      case 2: finish(); break;
      default: evict(); break;
    }
    verify();
  }
  void finish_all() {
    while (!running_.empty()) finish();
    while (evict()) verify();
    EXPECT_EQ(tree_.num_nodes(), 0);
    EXPECT_EQ(pool_.used_pages(), 0);
  }

 private:
  struct Sequence {
    Model::Path path;
    PageTable table;
    Sequence(PagePool& pool) : table(pool, 6 * kPage) {}
  };

  void start() {
    Sequence& sequence = running_.emplace_back(pool_);
    for (std::size_t n = 1 + random_() % 6; n > 0; --n) sequence.path.push_back(static_cast<int>(random_() % 3));
    const int max_pages = static_cast<int>(random_() % 7);
    const std::vector<PageId> found = match(tree_, 7, tokens_of(sequence.path), max_pages);
    ASSERT_EQ(found.size(), model_.match(sequence.path, static_cast<std::size_t>(max_pages)));
    for (std::size_t n = 0; n < found.size(); ++n)
      ASSERT_EQ(found[n], model_.entries.at(Model::first(sequence.path, n + 1)).page);
    for (const PageId page : found) sequence.table.adopt(page);
  }
  void grow() {
    if (running_.empty()) return;
    Sequence& sequence = any();
    const int wanted = std::min(sequence.table.num_positions() + static_cast<int>(random_() % 40),
                                kPage * static_cast<int>(sequence.path.size()));
    while (!sequence.table.reserve(wanted))
      if (!evict()) return;  // the pool is full of pages in use
    sequence.table.append(wanted - sequence.table.num_positions());
    if (random_() % 2 == 0) enter(sequence);
  }
  void enter(const Sequence& sequence) {
    const auto whole = sequence.table.pages().first(static_cast<std::size_t>(sequence.table.num_whole_pages()));
    insert(tree_, pool_, 7, tokens_of(sequence.path), whole);
    model_.insert(sequence.path, {whole.begin(), whole.end()});
  }
  void finish() {
    if (running_.empty()) return;
    Sequence& sequence = any();
    if (random_() % 2 == 0) enter(sequence);
    running_.remove_if([&](const Sequence& s) { return &s == &sequence; });
  }
  bool evict() {
    const PageId expected = model_.evict([&](PageId id) { return references_of_sequences(id) > 0; });
    EXPECT_EQ(tree_.evict_one(), expected >= 0);
    if (expected >= 0) {
      EXPECT_EQ(pool_.references(expected), 0);
    }
    return expected >= 0;
  }
  Sequence& any() { return *std::next(running_.begin(), std::ptrdiff_t(random_() % running_.size())); }
  int references_of_sequences(PageId id) const {
    int count = 0;
    for (const Sequence& sequence : running_) count += static_cast<int>(std::ranges::count(sequence.table.pages(), id));
    return count;
  }
  void verify() const {
    ASSERT_EQ(tree_.num_nodes(), static_cast<int>(model_.entries.size()));
    std::map<PageId, int> of_tree;
    int idle = 0;
    for (const auto& [path, entry] : model_.entries) ++of_tree[entry.page];
    for (PageId id = 0; id < pool_.num_pages(); ++id) {
      ASSERT_LE(of_tree[id], 1);
      ASSERT_EQ(pool_.references(id), of_tree[id] + references_of_sequences(id)) << "page " << id;
      idle += of_tree[id] == 1 && pool_.references(id) == 1 ? 1 : 0;
    }
    ASSERT_EQ(pool_.idle_pages(), idle);
  }

  std::mt19937 random_;
  PagePool pool_{kShape, 20};
  PrefixTree tree_{pool_};
  Model model_;
  std::list<Sequence> running_;
};

TEST(PrefixTree, EqualsANaiveModelOverRandomLives) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    World world(seed);
    for (int n = 0; n < 300; ++n) {
      world.turn();
      if (::testing::Test::HasFailure()) FAIL() << "seed " << seed << ", turn " << n;
    }
    world.finish_all();
  }
}

}  // namespace
}  // namespace couplet::cache
