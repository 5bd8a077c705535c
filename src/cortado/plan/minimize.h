#pragma once

#include <span>

#include "cortado/plan/table.h"

namespace cortado::plan {

// The table over the other vertices of the tables' scopes that holds, for each choice of their candidates,
// the least sum of `tables` over the candidates of `vertex`, which all scopes contain:
//   result(S) = min over a of sum over tables t of t(S, a)
// With two tables (u, v) and (v, w) and v's own costs this is Eq. 2 of DeePa; with more it is vertex
// elimination in general. Tables may come back with their scopes in another order, the one that the product
// reads. An empty scope leaves one value.
Table minimized(std::span<Table> tables, int vertex);

}  // namespace cortado::plan
