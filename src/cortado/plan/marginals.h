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

// The elimination must have kept its messages. It is walked in reverse order. A bucket's tables and the cost
// of what lies outside add up to the cost of the whole problem. Minimized to the scope S of a message m that
// came in, that sum is T(S), the least cost of all with S. Sums are exact, so exactly T(S) - m(S) of it is
// outside of m.
Marginals marginals_of(const Elimination& elimination);

}  // namespace cortado::plan
