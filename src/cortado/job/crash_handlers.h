#pragma once

namespace cortado {

// From the first CrashGuard on, a SIGSEGV, SIGBUS, SIGFPE or SIGABRT of a thread inside one ends the process
// with exit code 2 and the guard's line: the memory cannot be trusted any more, so nothing else runs, and no
// exception is thrown. Outside a guard the handlers that were installed before are called: a rank
// reports to its parent that it aborts (job/rank.cpp).
void end_process_on_guarded_crash();

}  // namespace cortado
