#pragma once

#include <string>
#include <vector>

#include "cortado/machine/device_graph.h"

namespace cortado {

// JSON, version 1 (docs/reference/machines.md). UserErrors name `where` (the file), key, value and remedy.
DeviceGraph parse_machine(const std::string& json, const std::string& where);

// The file of a machine: parse_machine gives the same again, bit for bit.
std::string machine_text(const DeviceGraph& graph);

// What --machine names: a file (a path with '/' or ".json"), or a ready machine: NAME.json in the folder
// `machines` of the working directory, else one that is compiled in. Throws UserError.
DeviceGraph load_machine(const std::string& name_or_path);

// The names of the ready machines that load_machine finds, in order.
std::vector<std::string> ready_machines();

}  // namespace cortado
