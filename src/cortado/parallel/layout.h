#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cortado/base/box.h"

namespace cortado {

// How a tensor lies over the ranks: the box each of them holds, none where it holds nothing.
using Layout = std::vector<std::optional<Box>>;

// A box that one rank has and another one needs.
struct Transfer {
  int from = 0, to = 0;
  Box box;
  bool operator==(const Transfer&) const = default;
};

// What moves so that every rank gets its box of `needed`, ordered by receiver, then sender. What a rank has
// already is a transfer from it to itself. Boxes of `owned` are disjoint; but a rank whose own box contains
// what it needs takes nothing from others, even if they overlap. The movements of Programs come from it; the
// planner and the simulator count bytes with ExchangeVolumes (cost/exchange_volume.h), and a test finds them
// equal. The adjoint (DeePa, section 3; docs/explanation/cutting.md) moves the same boxes from `to` to `from`
// and sums them there.
std::vector<Transfer> transfers(const Layout& owned, const Layout& needed);

// True when each rank that needs something holds exactly that.
bool in_place(const Layout& owned, const Layout& needed);

std::string text(const Layout& layout);  // "0 [0,2)x[0,3), 1 [2,4)x[0,3)"

}  // namespace cortado
