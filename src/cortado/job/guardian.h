#pragma once

#include <sys/types.h>

namespace cortado {

// Lets the rank that this process shall be run as a child of it, in a session of its own; returns in the
// child. A launcher that sees one of its processes killed may kill all others of the host at once (MPICH's
// hydra does, whatever its options say), before they can write what they have. It sees this process, which
// ends with an exit code however the child ended, and takes the child with it when it is killed. Call it
// before there are threads.
void run_under_guardian();

// The launcher's process that started this one or its guardian; 0: it is gone.
pid_t launchers_process();

}  // namespace cortado
