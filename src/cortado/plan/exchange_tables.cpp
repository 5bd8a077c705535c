#include "cortado/plan/exchange_tables.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "cortado/cost/exchange_volume.h"
#include "cortado/plan/threads.h"

namespace cortado::plan {
namespace {

// Layouts, each once, in the order in which they came.
class Layouts {
 public:
  int number_of(const GridLayout& layout) {
    std::vector<int>& of_one_hash = known_[layout.hash()];
    const auto same = std::ranges::find_if(
        of_one_hash, [&](int number) { return list_[static_cast<size_t>(number)] == layout; });
    if (same != of_one_hash.end()) return *same;
    of_one_hash.push_back(static_cast<int>(list_.size()));
    list_.push_back(layout);
    return of_one_hash.back();
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
  std::unordered_map<size_t, std::vector<int>> known_;  // numbers, by hash
};

// Exchanges of tensors of one shape and type.
class Alike {
 public:
  Alike(const std::vector<Column>& columns, const std::vector<Exchange>& exchanges,
        std::vector<size_t> members)
      : columns_(columns), exchanges_(exchanges), members_(std::move(members)) {
    for (size_t member : members_) {
      owned_of_.push_back(owned_.numbers_of(owns(member).layouts));
      needed_of_.push_back(needed_.numbers_of(reads(member).layouts));
      pairs_apart_ += owned_of_.back().size() * needed_of_.back().size();
    }
  }

  // Whether their layouts have more pairs together than each exchange by itself.
  bool better_apart() const {
    return members_.size() > 1 && owned_.list().size() * needed_.list().size() > pairs_apart_;
  }

  // Sets the tables of all members.
  void price(const std::vector<int>& node_of_device, CostModel& costs, std::vector<CostGraph::Edge>& tables) {
    const std::vector<std::vector<double>> seconds = seconds_of_pairs(node_of_device, costs);
    double work = 0;
    for (size_t member : members_)
      work += static_cast<double>(owns(member).of_candidate.size() * reads(member).of_candidate.size());
    parallel_for_each(std::ssize(members_), work, [&](int64_t i) {
      const auto m = static_cast<size_t>(i);
      tables[members_[m]] = CostGraph::checked_edge(0, 1, table_of(m, seconds));
    });
  }

 private:
  const Column& owns(size_t member) const { return columns_[static_cast<size_t>(exchanges_[member].owns)]; }
  const Column& reads(size_t member) const { return columns_[static_cast<size_t>(exchanges_[member].reads)]; }

  // Owned layouts by needed layouts.
  std::vector<std::vector<double>> seconds_of_pairs(const std::vector<int>& node_of_device,
                                                    CostModel& costs) const {
    constexpr double operations = 20;  // for a rank and a pair, about
    constexpr int64_t rows_at_a_time = 50;
    const std::vector<GridLayout>&owned = owned_.list(), &needed = needed_.list();
    const ExchangeVolumes volumes(owned, needed, node_of_device, exchanges_[members_[0]].type);
    std::vector<std::vector<double>> seconds(owned.size());
    const double work = operations * owned[0].ranks() * static_cast<double>(owned.size() * needed.size());
    const int64_t blocks = (std::ssize(owned) + rows_at_a_time - 1) / rows_at_a_time;
    parallel_for_each(blocks, work, [&](int64_t block) {
      ExchangeVolumes::Room room = volumes.room();
      const int64_t end = std::min((block + 1) * rows_at_a_time, std::ssize(owned));
      for (int64_t row = block * rows_at_a_time; row < end; ++row)
        for (const ExchangeVolume& volume : volumes.row(static_cast<size_t>(row), room))
          seconds[static_cast<size_t>(row)].push_back(costs.exchange(volume).count);
    });
    return seconds;
  }

  // Candidates by candidates.
  Costs table_of(size_t m, const std::vector<std::vector<double>>& seconds) const {
    const Exchange& exchange = exchanges_[members_[m]];
    const double times = exchange.backward ? 2 : 1;
    std::vector<int> columns;
    for (int layout : reads(members_[m]).of_candidate)
      columns.push_back(needed_of_[m][static_cast<size_t>(layout)]);
    const std::vector<int>& rows = owns(members_[m]).of_candidate;
    auto table = std::make_shared<std::vector<double>>();
    table->reserve(rows.size() * columns.size());
    for (int layout : rows) {
      const std::vector<double>& row =
          seconds[static_cast<size_t>(owned_of_[m][static_cast<size_t>(layout)])];
      for (int column : columns) table->push_back(times * row[static_cast<size_t>(column)]);
    }
    return table;
  }

  const std::vector<Column>& columns_;
  const std::vector<Exchange>& exchanges_;
  const std::vector<size_t> members_;                   // numbers of exchanges
  Layouts owned_, needed_;                              // of all members
  std::vector<std::vector<int>> owned_of_, needed_of_;  // per member: numbers of its columns' layouts
  size_t pairs_apart_ = 0;
};

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
  std::vector<CostGraph::Edge> tables(exchanges.size());
  for (const std::vector<size_t>& list : by_shape(exchanges)) {
    Alike together(columns, exchanges, list);
    if (!together.better_apart()) {
      together.price(node_of_device, costs, tables);
      continue;
    }
    for (size_t exchange : list) Alike(columns, exchanges, {exchange}).price(node_of_device, costs, tables);
  }
  return tables;
}

}  // namespace cortado::plan
