#pragma once
// Whole pages by the tokens that led to them, so that a prompt which begins like an earlier one starts where they part,
// even while that one still runs. A node is one page: 16 tokens under a parent, found by a hash of (parent, tokens) and
// compared in full. The tree holds one reference to each of its pages and allocates nothing after construction. Engine
// thread only.

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

  // The end of a known prefix. Its node stays as long as somebody refers to the node's page.
  class Place {
   public:
    int num_pages() const { return num_pages_; }
    bool operator==(const Place&) const = default;

   private:
    friend PrefixTree;
    std::int32_t node_ = -1;  // -1: nothing is known yet
    int num_pages_ = 0;
    std::uint64_t salt_ = 0;
    std::uint64_t key_[2] = {};
  };

  // The empty prefix. Different salts share nothing: a salt says who may see what the tokens led to. (One tree serves one
  // set of weights in one format and precision.)
  static Place root(std::uint64_t salt);
  // Moves on by the page of these 16 tokens and returns it, retained for the caller. Not known: -1, and nothing changes.
  PageId step(Place& place, std::span<const TokenId> tokens);
  // Moves on by the page of these 16 tokens, which is `page` unless the tree has one already. Returns the tree's, retained
  // for the caller if it is another: a page in the tree is as good as one's own, to the bit.
  PageId enter(Place& place, std::span<const TokenId> tokens, PageId page);
  // The whole prefix was used just now. (A page in use needs no touch.)
  void touch(const Place& place) { touch_path(place.node_); }

  // Gives back the least recently used page that nothing else refers to. A page in use counts as used now.
  // False: there is none.
  bool evict_one();
  void clear();

  int num_nodes() const { return num_nodes_; }
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

  static Key child_key(const Place& parent, std::span<const TokenId> tokens);
  NodeId& bucket(const Key& key);
  NodeId find(const Key& key, const Place& parent, std::span<const TokenId> tokens);
  NodeId add(const Key& key, const Place& parent, std::span<const TokenId> tokens, PageId page);
  static void move(Place& place, NodeId node, const Key& key);
  void remove(NodeId id);
  void touch_path(NodeId id);
  void link_newest(NodeId id);
  void link_behind(NodeId newer, NodeId id);
  void unlink(NodeId id);

  PagePool* pool_;
  std::vector<Node> nodes_;      // [num_pages]: a node holds a page, so there can't be more
  std::vector<NodeId> free_;     // unused nodes
  std::vector<NodeId> buckets_;  // a power of two
  // Recency. A touch goes from a node up to its root, and a new node stands behind its parent: so a parent is always newer
  // than its children, and the oldest node is a leaf.
  NodeId newest_ = -1;
  NodeId oldest_ = -1;
  int num_nodes_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace couplet::cache
