#pragma once

#include <sched.h>

namespace cortado {

// The processors that the calling thread may use (sched_getaffinity(2)); number 0 where the system does not
// say.
cpu_set_t thread_processors();

// Keeps the calling thread, and those that it starts from now on, on these. A refusal changes nothing.
void keep_thread_on(const cpu_set_t& processors);

}  // namespace cortado
