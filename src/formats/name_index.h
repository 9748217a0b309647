#pragma once
// Names to positions, sorted once: no choice of names in a bad file makes a look-up or the search for
// duplicates slow.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace couplet::formats {

class NameIndex {
 public:
  NameIndex() = default;
  // Of things that have a name, in order. The names must outlive the index.
  template <class Things, class NameOf>
  NameIndex(const Things& things, NameOf name_of) {
    entries_.reserve(things.size());
    for (const auto& thing : things) entries_.emplace_back(name_of(thing), entries_.size());
    std::sort(entries_.begin(), entries_.end());
  }

  std::optional<std::size_t> find(std::string_view name) const {
    const auto entry = std::lower_bound(entries_.begin(), entries_.end(), Entry{name, 0});
    if (entry == entries_.end() || entry->first != name) return std::nullopt;
    return entry->second;
  }

  // A name that stands there more than once.
  std::optional<std::string_view> duplicate() const {
    const auto same = [](const Entry& a, const Entry& b) { return a.first == b.first; };
    const auto entry = std::adjacent_find(entries_.begin(), entries_.end(), same);
    if (entry == entries_.end()) return std::nullopt;
    return entry->first;
  }

 private:
  using Entry = std::pair<std::string_view, std::size_t>;
  std::vector<Entry> entries_;
};

}  // namespace couplet::formats
