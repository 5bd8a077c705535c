#pragma once

#include <set>
#include <string>

#include "cortado/base/command_files.h"
#include "cortado/net/net_file.h"

namespace cortado {

// The files that layers of a net name: where samples and means come from (of an LMDB the folder and the file
// in it), and what HDF5Output layers write. Each name once.
std::set<std::string> files_read_by(const NetFile& file);
std::set<std::string> files_written_by(const NetFile& file);

// What running a net reads, its own file too, and writes.
void add_files(CommandFiles& files, const NetFile& net);

}  // namespace cortado
