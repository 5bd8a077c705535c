#include "cortado/plan/exchange_tables.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "cortado/cost/exchange_volume.h"
#include "cortado/plan/threads.h"

namespace cortado::plan {
namespace {

// Layouts, each once, in the order in which they came.
class Layouts {
 public:
  int number_of(const GridLayout& layout) {
    const auto [begin, end] = known_.equal_range(layout.hash());
    for (auto known = begin; known != end; ++known)
      if (list_[static_cast<size_t>(known->second)] == layout) return known->second;
    const int number = static_cast<int>(list_.size());
    known_.emplace(layout.hash(), number);
    list_.push_back(layout);
    return number;
  }

  std::vector<int> numbers_of(const std::vector<GridLayout>& layouts) {
    std::vector<int> numbers;
    for (const GridLayout& layout : layouts) numbers.push_back(number_of(layout));
    return numbers;
  }

  const std::vector<GridLayout>& list() const { return list_; }
  std::vector<GridLayout> take() { return std::move(list_); }

 private:
  std::vector<GridLayout> list_;
  std::unordered_multimap<size_t, int> known_;  // numbers, by hash
};

// Exchanges of tensors of one shape and type.
class Alike {
 public:
  Alike(const std::vector<Column>& columns, const std::vector<Exchange>& exchanges,
        std::vector<size_t> members)
      : columns_(columns), exchanges_(exchanges), members_(std::move(members)) {
    for (size_t member : members_) {
      const auto [owner, reader] = columns_of(member);
      if (const auto [of, is_new] = owned_of_.try_emplace(owner); is_new)
        of->second = owned_.numbers_of(columns_[owner].layouts);
      if (const auto [of, is_new] = needed_of_.try_emplace(reader); is_new)
        of->second = needed_.numbers_of(columns_[reader].layouts);
      pairs_apart_ += columns_[owner].layouts.size() * columns_[reader].layouts.size();
    }
  }

  const std::vector<size_t>& members() const { return members_; }  // numbers of exchanges
  size_t pairs() const { return owned_.list().size() * needed_.list().size(); }
  // Whether their layouts have more pairs together than each exchange by itself.
  bool better_apart() const { return members_.size() > 1 && pairs() > pairs_apart_; }

  // To be called in this order: begin(), price() of each block of owned layouts, table() of each member,
  // end().
  void begin(const std::vector<int>& node_of_device) {
    volumes_.emplace(owned_.list(), needed_.list(), node_of_device, exchanges_[members_[0]].type);
    seconds_.resize(owned_.list().size());
  }

  int64_t blocks() const { return (std::ssize(owned_.list()) + block_rows - 1) / block_rows; }

  void price(int64_t block, CostModel& costs) {
    ExchangeVolumes::Room room = volumes_->room();
    const int64_t end = std::min((block + 1) * block_rows, std::ssize(seconds_));
    for (auto row = static_cast<size_t>(block * block_rows); row < static_cast<size_t>(end); ++row) {
      seconds_[row].reserve(needed_.list().size());
      for (const ExchangeVolume& volume : volumes_->row(row, room))
        seconds_[row].push_back(costs.exchange(volume).count);
    }
  }

  // Seconds of candidates by candidates.
  Costs table(size_t m) const {
    const double times = exchanges_[members_[m]].backward ? 2 : 1;
    const auto [owner, reader] = columns_of(members_[m]);
    const std::vector<int>&needed = needed_of_.at(reader), &owned = owned_of_.at(owner);
    std::vector<int> columns;
    for (int layout : columns_[reader].of_candidate) columns.push_back(needed[static_cast<size_t>(layout)]);
    const std::vector<int>& rows = columns_[owner].of_candidate;
    auto table = std::make_shared<std::vector<double>>();
    table->reserve(rows.size() * columns.size());
    for (int layout : rows) {
      const std::vector<double>& row = seconds_[static_cast<size_t>(owned[static_cast<size_t>(layout)])];
      for (int column : columns) table->push_back(times * row[static_cast<size_t>(column)]);
    }
    return table;
  }

  void end() {
    volumes_.reset();
    seconds_ = {};
  }

 private:
  static constexpr int64_t block_rows = 50;

  // The numbers of the owners' and the readers' columns.
  std::pair<size_t, size_t> columns_of(size_t member) const {
    return {static_cast<size_t>(exchanges_[member].owns), static_cast<size_t>(exchanges_[member].reads)};
  }

  const std::vector<Column>& columns_;
  const std::vector<Exchange>& exchanges_;
  std::vector<size_t> members_;
  Layouts owned_, needed_;                                   // of all members
  std::map<size_t, std::vector<int>> owned_of_, needed_of_;  // per column: numbers of its layouts
  size_t pairs_apart_ = 0;
  std::optional<ExchangeVolumes> volumes_;
  std::vector<std::vector<double>> seconds_;  // owned layouts by needed layouts
};

// Sets the tables of all that these have. All threads take part in each of them.
void price(std::vector<Alike> alike, size_t devices, const std::vector<int>& node_of_device, CostModel& costs,
           std::vector<CostGraph::Edge>& tables) {
  constexpr double operations = 20;         // for a device and a pair, about
  std::vector<size_t> order(alike.size());  // the largest first, for which others should not wait
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t a) { return alike[a].pairs(); });
  double work = 0;
  std::vector<std::pair<size_t, int64_t>> blocks;
  std::vector<std::pair<size_t, size_t>> members;
  for (size_t a = 0; a < alike.size(); ++a) {
    work += operations * static_cast<double>(devices * alike[a].pairs());
    for (int64_t block = 0; block < alike[a].blocks(); ++block) blocks.emplace_back(a, block);
    for (size_t m = 0; m < alike[a].members().size(); ++m) members.emplace_back(a, m);
  }
  parallel_for_each(std::ssize(alike), work,
                    [&](int64_t i) { alike[order[static_cast<size_t>(i)]].begin(node_of_device); });
  parallel_for_each(std::ssize(blocks), work, [&](int64_t b) {
    const auto& [a, block] = blocks[static_cast<size_t>(b)];
    alike[a].price(block, costs);
  });
  parallel_for_each(std::ssize(members), work, [&](int64_t i) {
    const auto& [a, m] = members[static_cast<size_t>(i)];
    tables[alike[a].members()[m]] = CostGraph::checked_edge(0, 1, alike[a].table(m));
  });
  parallel_for_each(std::ssize(alike), work, [&](int64_t i) { alike[static_cast<size_t>(i)].end(); });
}

// Lists of exchanges of tensors of one shape and type.
std::vector<std::vector<size_t>> by_shape(const std::vector<Exchange>& exchanges) {
  std::vector<std::vector<size_t>> lists;
  for (size_t e = 0; e < exchanges.size(); ++e) {
    const auto same = std::ranges::find_if(lists, [&](const std::vector<size_t>& list) {
      return exchanges[list[0]].shape == exchanges[e].shape && exchanges[list[0]].type == exchanges[e].type;
    });
    same == lists.end() ? lists.push_back({e}) : same->push_back(e);
  }
  return lists;
}

}  // namespace

Column column_of(const Candidates& candidates, std::vector<GridLayout> Priced::*member, size_t index) {
  Layouts layouts;
  Column column;
  for (const Priced& candidate : candidates)
    column.of_candidate.push_back(layouts.number_of((candidate.*member)[index]));
  column.layouts = layouts.take();
  return column;
}

std::vector<CostGraph::Edge> exchange_tables(const std::vector<Column>& columns,
                                             const std::vector<Exchange>& exchanges,
                                             const std::vector<int>& node_of_device, CostModel& costs) {
  constexpr size_t most_pairs = 1'000'000;  // whose seconds are held at a time
  std::vector<CostGraph::Edge> tables(exchanges.size());
  std::vector<Alike> next;
  size_t pairs = 0;
  const auto add = [&](Alike alike) {
    pairs += alike.pairs();
    next.push_back(std::move(alike));
    if (pairs < most_pairs) return;
    price(std::move(next), columns[0].layouts[0].ranks(), node_of_device, costs, tables);
    next.clear();
    pairs = 0;
  };
  for (const std::vector<size_t>& list : by_shape(exchanges)) {
    Alike together(columns, exchanges, list);
    if (!together.better_apart()) {
      add(std::move(together));
      continue;
    }
    for (size_t exchange : list) add(Alike(columns, exchanges, {exchange}));
  }
  if (!next.empty()) price(std::move(next), columns[0].layouts[0].ranks(), node_of_device, costs, tables);
  return tables;
}

}  // namespace cortado::plan
