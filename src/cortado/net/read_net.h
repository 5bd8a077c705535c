#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cortado/net/net_file.h"

namespace cortado {

// Reads a prototxt, or a net within another message (`net_param` of a solver file; lines are then unknown),
// and upgrades it. Throws UserError naming file, line, column and field.
NetFile read_net(const std::string& path);
NetFile parse_net(std::string_view text, const std::string& path);
NetFile net_of_message(caffe::NetParameter net, const std::string& path);

// Gives blobs whose shapes the file leaves open (`input`, and Input layers, without any) those that `shapes`
// has for so many of them.
void give_input_shapes(NetFile& file, const std::function<std::vector<Shape>(size_t blobs)>& shapes);

}  // namespace cortado
