#pragma once

#include <utility>
#include <vector>

namespace cortado {

// A directed acyclic graph drawn from top to bottom (Sugiyama's way): a vertex stands in the row below all
// that it depends on; an edge that passes rows has an item in each of them, shared by all edges of one
// vertex; items of a row are ordered so that few edges cross.
struct LayeredGraph {
  struct Item {
    int vertex = -1;  // -1: an edge passes
    int row = 0;
    double centre = 0, width = 0;  // within [0, 1]; width 0: an edge passes
  };
  struct Link {
    int from = 0, to = 0;    // items of successive rows
    std::vector<int> edges;  // that run along it
  };
  std::vector<Item> items;
  std::vector<Link> links;
  int rows = 0;
  // The rows in pieces that are drawn apart, [first, last), cut where the graph is one vertex wide if it is
  // so somewhere near.
  std::vector<std::pair<int, int>> pieces;
};

// `edges`: from a vertex to one of higher number. Pieces have about `most_rows` rows or fewer, and are as
// many as fill lines of `beside` pieces, if they have rows enough. `least`: the width that each vertex asks
// for, of 1; empty: none does. Where vertices stand side by side, those that ask for more get more.
LayeredGraph layered(int vertices, const std::vector<std::pair<int, int>>& edges, int most_rows,
                     int beside = 1, const std::vector<double>& least = {});

}  // namespace cortado
