#include "cortado/app/load_without_data.h"

#include "cortado/train/load_without_data.h"

namespace cortado {

LoadedNetwork load_without_data(const ModelOptions& options, Phase otherwise) {
  NetFile file = read_net(options.model);
  print_warnings(file.warnings);
  const caffe::NetState state = net_state_of(options, file, otherwise);
  apply(options, state, file);
  return load_without_data(std::move(file), state, options.input_shape, options.batch);
}

}  // namespace cortado
