#pragma once

#include <string>

#include "cortado/net/network.h"

namespace cortado {

// A network's layers, their weights' and outputs' shapes, parameters and FLOPs: a table, the same as JSON,
// and the graph in Graphviz' language.
std::string net_text(const Network& network);
std::string net_json(const Network& network);
std::string net_dot(const Network& network);
// What is bf16 and what f32 in a network of precision bf16: by type of layer (layers/precision.h), and the
// type of each blob.
std::string precision_text(const Network& network);

int64_t batch_of(const Network& network);  // samples of an iteration; 0: there is no source

}  // namespace cortado
