#pragma once

#include <vector>

#include "cortado/plan/elimination.h"

namespace cortado::plan {

// What a finished elimination knows when it is walked back.
struct Marginals {
  std::vector<std::vector<double>> vertices;  // per vertex and candidate: least seconds with it
  // Per bucket, over its message's scope: least seconds of all that is outside of the message, which is the
  // sum of tables that neither its bucket nor those below hold. Values empty where the message is a number.
  std::vector<Table> outside;
};

// The elimination must have kept its messages. In reverse order, each bucket has its tables and the cost of
// what lies outside; together they cost what the whole problem costs. Minimized to the scope of a message m
// that came in, that is T(S), the least cost of all with S; exactly T(S) - m(S) of it is outside of m, for
// sums are exact.
Marginals marginals_of(const Elimination& elimination);

}  // namespace cortado::plan
