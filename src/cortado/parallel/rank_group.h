#pragma once

#include <compare>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace cortado {

// Ranks that do something together, ascending. Copies share one list: each of a job's thousands of ranks
// knows the same groups.
class RankGroup {
 public:
  using value_type = int;
  using const_iterator = std::vector<int>::const_iterator;
  RankGroup() = default;
  RankGroup(std::vector<int> ranks) : ranks_(std::make_shared<const std::vector<int>>(std::move(ranks))) {}

  RankGroup(std::initializer_list<int> ranks) : RankGroup(std::vector<int>(ranks)) {}

  const std::vector<int>& ranks() const {
    static const std::vector<int> none;
    return ranks_ ? *ranks_ : none;
  }
  operator const std::vector<int>&() const { return ranks(); }
  bool empty() const { return ranks().empty(); }
  size_t size() const { return ranks().size(); }
  int operator[](size_t i) const { return ranks()[i]; }
  const_iterator begin() const { return ranks().begin(); }
  const_iterator end() const { return ranks().end(); }

  bool operator==(const RankGroup& other) const { return (*this <=> other) == 0; }
  std::strong_ordering operator<=>(const RankGroup& other) const {
    return ranks_ == other.ranks_ ? std::strong_ordering::equal : ranks() <=> other.ranks();
  }

 private:
  std::shared_ptr<const std::vector<int>> ranks_;
};

}  // namespace cortado
