#include <algorithm>
#include <map>

#include "cortado/program/passes.h"

namespace cortado {

// A step waits for the last writer of what it reads or writes, and a writer for the readers since, wherever
// those run on the other lane; within a lane the order of steps is enough.
void add_waits(Program& program) {
  struct Access {
    int writer = -1;
    std::vector<int> readers;
  };
  std::map<int, Access> accesses;
  for (size_t index = 0; index < program.steps.size(); ++index) {
    Step& step = program.steps[index];
    auto wait_for = [&](int other) {
      if (other >= 0 && program.steps[other].lane != step.lane) step.waits.push_back(other);
    };
    for (int buffer : step.reads) {
      wait_for(accesses[buffer].writer);
      accesses[buffer].readers.push_back(static_cast<int>(index));
    }
    for (int buffer : step.writes) {
      wait_for(accesses[buffer].writer);
      for (int reader : accesses[buffer].readers) wait_for(reader);
      accesses[buffer] = {static_cast<int>(index), {}};
    }
    std::ranges::sort(step.waits);
    step.waits.erase(std::ranges::unique(step.waits).begin(), step.waits.end());
  }
}

}  // namespace cortado
