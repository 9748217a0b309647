#pragma once
// Finished pages by the tokens that led to them, so that a prompt which begins like an earlier one starts where they
// part. A node is one whole page: 16 tokens under a parent, found by a hash of (parent, tokens) and compared in full.
// The tree holds one reference to each of its pages and allocates nothing after construction. Engine thread only.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/page_pool.h"
#include "couplet/tokenizer.h"

namespace couplet::cache {

class PrefixTree {
 public:
  explicit PrefixTree(PagePool& pool);
  ~PrefixTree() { clear(); }
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  // The longest known prefix of `tokens` in whole pages, at most min(max_pages, out.size()). Writes the pages, each
  // retained for the caller, and returns how many. Different salts share nothing: a salt stands for all that makes
  // the same tokens give other bits (weights, precision, format), or for who may see them.
  int match(std::uint64_t salt, std::span<const TokenId> tokens, int max_pages, std::span<PageId> out);
  // Adds page n for tokens [16n, 16n + 16), each retained by the tree. Where the tree has that prefix already, its own
  // page stays. Returns how many were new.
  int insert(std::uint64_t salt, std::span<const TokenId> tokens, std::span<const PageId> pages);

  // Gives back the least recently used page that nothing else refers to. A page in use counts as used now.
  // False: there is none.
  bool evict_one();
  void clear();

  int num_nodes() const { return num_nodes_; }
  std::uint64_t queried_tokens() const { return queried_tokens_; }
  std::uint64_t hit_tokens() const { return hit_tokens_; }
  std::uint64_t touches() const { return clock_; }  // work done on the recency list, for tests of growth

 private:
  using NodeId = std::int32_t;  // -1: none
  struct Key {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool operator==(const Key&) const = default;
  };
  struct Node {
    Key key;
    std::uint64_t salt = 0;
    std::uint64_t touched = 0;
    std::array<TokenId, kernels::kPagePositions> tokens{};
    PageId page = -1;
    NodeId parent = -1;
    NodeId next_in_bucket = -1;
    NodeId newer = -1;
    NodeId older = -1;
    int num_children = 0;
  };

  static Key root_key(std::uint64_t salt);
  static Key child_key(const Key& parent, std::span<const TokenId> tokens);
  NodeId& bucket(const Key& key);
  NodeId find(const Key& key, NodeId parent, std::uint64_t salt, std::span<const TokenId> tokens);
  NodeId add(const Key& key, NodeId parent, std::uint64_t salt, std::span<const TokenId> tokens, PageId page);
  void remove(NodeId id);
  void touch_path(NodeId id);
  void link_newest(NodeId id);
  void unlink(NodeId id);

  PagePool* pool_;
  std::vector<Node> nodes_;      // [num_pages]: a node holds a page, so there can't be more
  std::vector<NodeId> free_;     // unused nodes
  std::vector<NodeId> buckets_;  // a power of two
  // Recency. A touch goes from a node up to its root, so a parent is always newer than its children and the oldest
  // node is a leaf.
  NodeId newest_ = -1;
  NodeId oldest_ = -1;
  int num_nodes_ = 0;
  std::uint64_t clock_ = 0;
  std::uint64_t queried_tokens_ = 0;
  std::uint64_t hit_tokens_ = 0;
};

}  // namespace couplet::cache
