#include "cortado/device/queue.h"

#include "cortado/base/error.h"

namespace cortado::device {

void Queue::begin_capture() { throw InternalError("work is captured on a device that cannot"); }
std::unique_ptr<Graph> Queue::end_capture() { throw InternalError("a capture ends that did not begin"); }
void Queue::replay(Graph&) { throw InternalError("a graph is replayed on a device that has none"); }

}  // namespace cortado::device
