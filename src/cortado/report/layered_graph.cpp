#include "cortado/report/layered_graph.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "cortado/base/error.h"

namespace cortado {
namespace {

class Layering {
 public:
  Layering(int vertices, const std::vector<std::pair<int, int>>& edges, int most_rows, int beside,
           const std::vector<double>& least)
      : vertices_(vertices), edges_(edges), most_rows_(most_rows), beside_(beside), least_(least) {}

  LayeredGraph run() {
    add_vertices();
    for (size_t e = 0; e < edges_.size(); ++e) add_edge(static_cast<int>(e));
    rows_.resize(static_cast<size_t>(graph_.rows));
    for (size_t i = 0; i < graph_.items.size(); ++i)
      rows_[static_cast<size_t>(graph_.items[i].row)].push_back(static_cast<int>(i));
    constexpr int sweeps = 6;
    for (int sweep = 0; sweep < sweeps; ++sweep) order(sweep % 2 == 0);
    place_modules();
    cut_pieces();
    return std::move(graph_);
  }

 private:
  LayeredGraph::Item& item(int index) { return graph_.items[static_cast<size_t>(index)]; }
  const std::vector<int>& row(int index) const { return rows_[static_cast<size_t>(index)]; }

  void add_vertices() {
    graph_.items.resize(static_cast<size_t>(vertices_));
    source_.resize(static_cast<size_t>(vertices_));
    for (int v = 0; v < vertices_; ++v) item(v).vertex = source_[static_cast<size_t>(v)] = v;
    // Edges lead to higher numbers. So in the order of numbers the rows of all predecessors are final.
    std::vector<std::pair<int, int>> sorted = edges_;
    std::ranges::sort(sorted, {}, [](const auto& edge) { return edge.second; });
    for (const auto& [from, to] : sorted) {
      ensure(from < to, "edges lead to higher numbers");
      item(to).row = std::max(item(to).row, item(from).row + 1);
    }
    for (const auto& each : graph_.items) graph_.rows = std::max(graph_.rows, each.row + 1);
  }

  // Returns the item of the edges of `vertex` in a row that they pass.
  int passing(int vertex, int row) {
    const auto [found, added] = passing_.try_emplace({vertex, row}, static_cast<int>(graph_.items.size()));
    if (added) {
      graph_.items.push_back({.row = row});
      source_.push_back(vertex);
    }
    return found->second;
  }

  void add_edge(int edge) {
    const auto [from, to] = edges_[static_cast<size_t>(edge)];
    int at = from;
    for (int row = item(from).row + 1; row < item(to).row; ++row) {
      const int next = passing(from, row);
      link(at, next, edge);
      at = next;
    }
    link(at, to, edge);
  }

  void link(int from, int to, int edge) {
    const auto [found, added] = link_of_.try_emplace({from, to}, graph_.links.size());
    if (added) graph_.links.push_back({from, to, {}});
    graph_.links[found->second].edges.push_back(edge);
  }

  // Moves every item to the mean place of its neighbours in the row before (or after).
  void order(bool downward) {
    std::vector<double> place(graph_.items.size());
    for (int r = 0; r < graph_.rows; ++r) {
      const int at = downward ? r : graph_.rows - 1 - r;
      std::vector<std::pair<double, int>> keys;
      for (size_t i = 0; i < row(at).size(); ++i) {
        const int self = row(at)[i];
        double sum = 0;
        int count = 0;
        for (const auto& link : graph_.links) {
          if ((downward ? link.to : link.from) != self) continue;
          sum += place[static_cast<size_t>(downward ? link.from : link.to)];
          ++count;
        }
        const double self_place = (static_cast<double>(i) + 0.5) / static_cast<double>(row(at).size());
        keys.push_back({count > 0 ? sum / count : self_place, self});
      }
      std::ranges::stable_sort(keys, {}, &std::pair<double, int>::first);
      for (size_t i = 0; i < keys.size(); ++i) {
        rows_[static_cast<size_t>(at)][i] = keys[i].second;
        place[static_cast<size_t>(keys[i].second)] =
            (static_cast<double>(i) + 0.5) / static_cast<double>(keys.size());
      }
    }
  }

  int vertices_in(int r) {
    return static_cast<int>(std::ranges::count_if(row(r), [&](int i) { return item(i).vertex >= 0; }));
  }

  // Rows of one item separate modules. If no row of a module has two vertices, its vertices form one column
  // and passing edges go beside it. Else all items of a row have the same width, if that is enough.
  void place_modules() {
    for (int first = 0; first < graph_.rows;) {
      int last = first + 1, widest = vertices_in(first);
      if (row(first).size() > 1) {
        for (; last < graph_.rows && row(last).size() > 1; ++last)
          widest = std::max(widest, vertices_in(last));
      }
      for (int r = first; r < last; ++r) widest > 1 ? place_evenly(r) : place_column(r);
      first = last;
    }
  }

  void place_evenly(int r) {
    const std::vector<double> widths = widths_of(r);
    double left = 0;
    for (size_t i = 0; i < row(r).size(); left += widths[i++]) {
      LayeredGraph::Item& each = item(row(r)[i]);
      each.centre = left + widths[i] / 2;
      if (each.vertex >= 0) each.width = std::min(widths[i], 0.5);
    }
  }

  // Returns the same width for each item of the row if that is enough; else what each asks for and an equal
  // part of the rest. If they ask for more than there is, each gets proportionally less.
  std::vector<double> widths_of(int r) {
    constexpr double of_passing = 0.03;
    const double even = 1.0 / static_cast<double>(row(r).size());
    std::vector<double> widths;
    for (int i : row(r)) {
      const int vertex = item(i).vertex;
      widths.push_back(vertex < 0 ? of_passing : least_.empty() ? 0 : least_[static_cast<size_t>(vertex)]);
    }
    const bool enough = std::ranges::max(widths) <= even;
    const double sum = std::accumulate(widths.begin(), widths.end(), 0.0);
    for (double& width : widths) width = enough ? even : sum < 1 ? width + (1 - sum) * even : width / sum;
    return widths;
  }

  // Puts the vertex in the middle. Edges pass beside it, the one that began last nearest.
  void place_column(int r) {
    std::vector<int> beside = row(r);
    std::erase_if(beside, [&](int i) { return item(i).vertex >= 0; });
    std::ranges::sort(beside, std::greater<>(), [&](int i) { return source_[static_cast<size_t>(i)]; });
    constexpr double column = 0.6, left = 0.8;
    for (int i : row(r)) item(i).centre = 0.5, item(i).width = item(i).vertex >= 0 ? column : 0;
    const double step = std::min(0.06, (0.98 - left) / static_cast<double>(beside.size() + 1));
    for (size_t i = 0; i < beside.size(); ++i)
      item(beside[i]).centre = left + 0.03 + static_cast<double>(i) * step;
  }

  // Returns the rows of a piece: few enough that lines of pieces are full, but never just a few.
  int rows_of_piece() const {
    const auto up = [](int number, int by) { return (number + by - 1) / by; };
    constexpr int fewest = 6;
    const int pieces = beside_ * up(graph_.rows, beside_ * most_rows_);
    return std::max(up(graph_.rows, pieces), std::min(fewest, most_rows_));
  }

  void cut_pieces() {
    const int rows_of_piece = this->rows_of_piece();
    for (int first = 0; first < graph_.rows;) {
      int last = std::min(first + rows_of_piece, graph_.rows);
      if (last < graph_.rows) {
        // The cut goes after a row of one item, not far from where it should be.
        const int reach = rows_of_piece / 3;
        for (int away = 0; away <= reach; ++away) {
          const auto single = [&](int r) { return r > first && r < graph_.rows && row(r - 1).size() == 1; };
          if (single(last - away)) {
            last -= away;
            break;
          }
          if (single(last + away)) {
            last += away;
            break;
          }
        }
        if (graph_.rows - last < 3) last = graph_.rows;  // no piece of one or two rows
      }
      graph_.pieces.push_back({first, last});
      first = last;
    }
  }

  int vertices_;
  const std::vector<std::pair<int, int>>& edges_;
  int most_rows_, beside_;
  const std::vector<double>& least_;
  LayeredGraph graph_;
  std::vector<int> source_;  // per item: the vertex, or the one whose edge passes
  std::vector<std::vector<int>> rows_;
  std::map<std::pair<int, int>, int> passing_;
  std::map<std::pair<int, int>, size_t> link_of_;
};

}  // namespace

LayeredGraph layered(int vertices, const std::vector<std::pair<int, int>>& edges, int most_rows, int beside,
                     const std::vector<double>& least) {
  return Layering(vertices, edges, most_rows, beside, least).run();
}

}  // namespace cortado
