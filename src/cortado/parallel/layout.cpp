#include "cortado/parallel/layout.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

std::vector<Transfer> transfers(const Layout& owned, const Layout& needed) {
  std::vector<Transfer> moves;
  for (size_t to = 0; to < needed.size(); ++to) {
    if (!needed[to]) continue;
    const int receiver = static_cast<int>(to);
    if (owned[to] && owned[to]->contains(*needed[to])) {
      moves.push_back({receiver, receiver, *needed[to]});
      continue;
    }
    int64_t missing = needed[to]->shape().size();
    for (size_t from = 0; from < owned.size(); ++from) {
      if (!owned[from]) continue;
      const Box common = owned[from]->intersect(*needed[to]);
      if (common.empty()) continue;
      moves.push_back({static_cast<int>(from), receiver, common});
      missing -= common.shape().size();
    }
    if (missing == 0) continue;
    throw InternalError(fmt::format("layout [{}] does not hold exactly once what rank {} needs: {}",
                                    text(owned), to, needed[to]->text()));
  }
  return moves;
}

bool in_place(const Layout& owned, const Layout& needed) {
  for (size_t rank = 0; rank < needed.size(); ++rank) {
    if (needed[rank] && owned[rank] != needed[rank]) return false;
  }
  return true;
}

std::string text(const Layout& layout) {
  std::string text;
  for (size_t rank = 0; rank < layout.size(); ++rank) {
    if (layout[rank]) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", rank, layout[rank]->text());
  }
  return text;
}

}  // namespace cortado
