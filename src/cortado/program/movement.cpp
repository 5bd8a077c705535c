#include "cortado/program/movement.h"

#include <utility>

namespace cortado {

bool contiguous(const Box& part, const Box& held) {
  bool inside_run = false;  // an axis before, in the order of memory, has more than one index
  for (int i = 0; i < part.rank(); ++i) {
    const int axis = i == 0 ? 0 : i == part.rank() - 1 ? 1 : i + 1;
    if (inside_run && part[axis] != held[axis]) return false;
    inside_run |= part[axis].size() > 1;
  }
  return true;
}

bool Movement::direct_send(const Part& part) const { return contiguous(part.box, *from); }
bool Movement::direct_receive(const Part& part) const { return !sums && contiguous(part.box, *to); }

int64_t Movement::packed() const {
  int64_t floats = 0;
  for (const Part& part : sends) floats += direct_send(part) ? 0 : part.box.shape().size();
  for (const Part& part : receives) floats += direct_receive(part) ? 0 : part.box.shape().size();
  return floats;
}

Movement copy_movement(const Layout& owned, const Layout& needed, int rank) {
  Movement movement{.from = owned[rank], .to = needed[rank]};
  for (const Transfer& transfer : transfers(owned, needed)) {
    if (transfer.from == rank && transfer.to == rank) {
      movement.local = transfer.box;
    } else if (transfer.from == rank) {
      movement.sends.push_back({transfer.to, transfer.box});
    } else if (transfer.to == rank) {
      movement.receives.push_back({transfer.from, transfer.box});
    }
  }
  return movement;
}

Movement adjoint(const Movement& movement) {
  Movement back = movement;
  std::swap(back.from, back.to);
  std::swap(back.sends, back.receives);
  back.sums = !movement.sums;
  return back;
}

Movement sum_movement(const Layout& addends, const Layout& owned, int rank) {
  return adjoint(copy_movement(owned, addends, rank));
}

}  // namespace cortado
