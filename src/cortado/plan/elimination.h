#pragma once

#include <span>
#include <vector>

#include "cortado/plan/minimize.h"
#include "cortado/plan/order.h"

namespace cortado::plan {

// How many eliminations of each kind a search made.
struct EliminationCounts {
  int leaves = 0;   // vertices with one neighbour or none: their minimum goes into the neighbour's costs
  int nodes = 0;    // vertices with two neighbours: node elimination (DeePa, Eq. 2)
  int edges = 0;    // edges beside another: edge elimination (DeePa, Eq. 3)
  int general = 0;  // vertices with more neighbours: tables over three vertices and more
};

// Vertices of a graph eliminated one after the other. All costs are multiples of one quantum (quantum_of), so
// every sum is exact.
//
// Why the result is the optimum: the cost of an assignment is the sum of all tables. Those that contain v
// form its *bucket*; the others do not depend on v's candidate, so
//   min over all = min over the others of (other tables + min over v of v's bucket),
// and the inner minimum is a table over the vertices that share the bucket, v's *message*. That takes v out
// of the problem without changing its optimum; at the end one number is left.
class Elimination {
 public:
  struct Bucket {
    int vertex = -1;
    std::vector<Table> tables;
    Table message;    // its values are kept when the Elimination keeps messages; scope and sizes always
    int parent = -1;  // the bucket that the message goes to; -1: it is a number
  };

  // Eliminates all vertices of a graph without parallel edges.
  Elimination(const CostGraph& graph, const std::vector<int>& order, bool keep_messages);

  double optimum() const { return optimum_; }  // infinite: nothing is possible
  // The candidate of each vertex: buckets in reverse order, each the lowest one that is best.
  std::vector<int> assignment() const;
  const std::vector<Bucket>& buckets() const { return buckets_; }
  const EliminationCounts& counts() const { return counts_; }

 private:
  void hold(Table table);
  void eliminate(int vertex, bool keep_message);

  std::vector<Table> tables_;  // of the problem that is left; empty scopes: gone
  std::vector<std::vector<int>> of_vertex_;
  std::vector<int> bucket_of_;
  std::vector<Bucket> buckets_;
  EliminationCounts counts_;
  double optimum_ = 0;
};

}  // namespace cortado::plan
