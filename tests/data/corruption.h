#pragma once

#include <functional>
#include <random>
#include <string>

namespace cortado {

// What a bad disk or a broken copy makes of a file: bytes flipped, zeroed, exchanged or copied over others,
// or the end cut off. `which` names the corruption; a run of the tests makes the same ones each time. Half of
// them fall into `block` bytes at the start of a random block, where formats keep what they count with.
std::string corrupted(std::string bytes, uint32_t which, size_t block);

// Runs read(case) for each case in a child process. It may return or throw UserError; that it throws
// something else, ends by a signal, takes more than 60 seconds, or more than a GiB of memory, is a failure,
// which names the case. No OpenMP in it: its threads are not the child's.
void expect_all_survive(int cases, const std::function<void(int)>& read);

}  // namespace cortado
