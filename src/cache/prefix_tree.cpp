#include "cache/prefix_tree.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace couplet::cache {
namespace {

constexpr std::size_t kTokens = kernels::kPagePositions;

template <class T>
auto& at(T& values, std::int32_t index) {
  return values[static_cast<std::size_t>(index)];
}

}  // namespace

PrefixTree::PrefixTree(PagePool& pool)
    : pool_(&pool),
      nodes_(static_cast<std::size_t>(pool.num_pages())),
      buckets_(std::bit_ceil(2 * nodes_.size()), -1) {
  free_.reserve(nodes_.size());
  for (NodeId id = pool.num_pages() - 1; id >= 0; --id) free_.push_back(id);
}

PrefixTree::Place PrefixTree::root(std::uint64_t salt) {
  Place place;
  place.salt_ = place.key_[0] = salt;
  return place;
}

void PrefixTree::move(Place& place, NodeId node, const Key& key) {
  place.node_ = node;
  place.key_[0] = key.low;
  place.key_[1] = key.high;
  ++place.num_pages_;
}

PageId PrefixTree::step(Place& place, std::span<const TokenId> tokens) {
  const Key key = child_key(place, tokens);
  const NodeId id = find(key, place, tokens);
  if (id < 0) return -1;
  move(place, id, key);
  pool_->retain(at(nodes_, id).page);
  return at(nodes_, id).page;
}

PageId PrefixTree::enter(Place& place, std::span<const TokenId> tokens, PageId page) {
  const Key key = child_key(place, tokens);
  NodeId id = find(key, place, tokens);
  if (id < 0)
    id = add(key, place, tokens, page);
  else if (at(nodes_, id).page != page)
    pool_->retain(at(nodes_, id).page);
  move(place, id, key);
  return at(nodes_, id).page;
}

bool PrefixTree::evict_one() {
  // The oldest node is a leaf. In use, it is used now: it goes to the front, its ancestors after it, and the look
  // goes on; the clock says when the whole tree was seen.
  const std::uint64_t start = clock_;
  while (oldest_ >= 0 && at(nodes_, oldest_).touched <= start) {
    if (pool_->references(at(nodes_, oldest_).page) == 1) {
      remove(oldest_);
      return true;
    }
    touch_path(oldest_);
  }
  return false;
}

void PrefixTree::clear() {
  while (oldest_ >= 0) remove(oldest_);
}

PrefixTree::Key PrefixTree::child_key(const Place& parent, std::span<const TokenId> tokens) {
  COUPLET_CHECK(tokens.size() == kTokens);
  struct {
    Key parent;
    std::array<TokenId, kTokens> tokens;
  } content{{parent.key_[0], parent.key_[1]}, {}};
  static_assert(sizeof content == sizeof(Key) + kTokens * sizeof(TokenId));  // no padding is hashed
  std::copy(tokens.begin(), tokens.end(), content.tokens.begin());
  const XXH128_hash_t hash = XXH3_128bits(&content, sizeof content);
  return {hash.low64, hash.high64};
}

PrefixTree::NodeId& PrefixTree::bucket(const Key& key) {
  return buckets_[static_cast<std::size_t>(key.low) & (buckets_.size() - 1)];
}

PrefixTree::NodeId PrefixTree::find(const Key& key, const Place& parent, std::span<const TokenId> tokens) {
  for (NodeId id = bucket(key); id >= 0; id = at(nodes_, id).next_in_bucket) {
    const Node& node = at(nodes_, id);
    if (node.key == key && node.parent == parent.node_ && node.salt == parent.salt_ && std::ranges::equal(node.tokens, tokens))
      return id;
  }
  return -1;
}

PrefixTree::NodeId PrefixTree::add(const Key& key, const Place& parent, std::span<const TokenId> tokens, PageId page) {
  COUPLET_CHECK(!free_.empty());  // every node holds a page of its own
  const NodeId id = free_.back();
  free_.pop_back();
  pool_->retain(page);
  pool_->set_cached(page, true);
  Node& node = at(nodes_, id);
  node.key = key;
  node.salt = parent.salt_;
  std::ranges::copy(tokens, node.tokens.begin());
  node.page = page;
  node.parent = parent.node_;
  node.num_children = 0;
  node.next_in_bucket = std::exchange(bucket(key), id);
  if (node.parent >= 0) {
    ++at(nodes_, node.parent).num_children;
    link_behind(node.parent, id);
  } else {
    link_newest(id);
  }
  ++num_nodes_;
  return id;
}

void PrefixTree::remove(NodeId id) {
  Node& node = at(nodes_, id);
  COUPLET_CHECK(node.num_children == 0);
  NodeId* link = &bucket(node.key);
  while (*link != id) link = &at(nodes_, *link).next_in_bucket;
  *link = node.next_in_bucket;
  if (node.parent >= 0) --at(nodes_, node.parent).num_children;
  unlink(id);
  pool_->set_cached(node.page, false);
  pool_->release(node.page);
  free_.push_back(id);
  --num_nodes_;
}

void PrefixTree::touch_path(NodeId id) {
  for (; id >= 0; id = at(nodes_, id).parent) {
    unlink(id);
    link_newest(id);
  }
}

void PrefixTree::link_newest(NodeId id) {
  Node& node = at(nodes_, id);
  node.touched = ++clock_;
  node.newer = -1;
  node.older = newest_;
  (newest_ >= 0 ? at(nodes_, newest_).newer : oldest_) = id;
  newest_ = id;
}

void PrefixTree::link_behind(NodeId newer, NodeId id) {
  Node& node = at(nodes_, id);
  Node& ahead = at(nodes_, newer);
  node.touched = ahead.touched;
  node.newer = newer;
  node.older = std::exchange(ahead.older, id);
  (node.older >= 0 ? at(nodes_, node.older).newer : oldest_) = id;
}

void PrefixTree::unlink(NodeId id) {
  const Node& node = at(nodes_, id);
  (node.newer >= 0 ? at(nodes_, node.newer).older : newest_) = node.older;
  (node.older >= 0 ? at(nodes_, node.older).newer : oldest_) = node.newer;
}

}  // namespace couplet::cache
