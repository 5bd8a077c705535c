#pragma once

#include <string>
#include <vector>

#include "cortado/net/net_file.h"

namespace cortado {

// The part of a net that some of its blobs need, as a net of its own.
struct PartOfNet {
  NetFile file;
  std::vector<std::string> outputs;  // per blob asked for: what it is called in this net, which nobody reads
};

// The layers of `file` in `state` that `blobs` depend on, in order, with their names in the whole net but
// without fillers. A blob is what it is after the last layer that works on it in place. A blob that other
// layers of the part read, or that a source layer brings, is put out as a copy. Throws UserError naming an
// unknown blob and the nearest one.
PartOfNet part_of_net(const NetFile& file, const caffe::NetState& state,
                      const std::vector<std::string>& blobs);

// What the net computes and no layer reads, in order: Caffe's net outputs.
std::vector<std::string> net_outputs(const NetFile& file, const caffe::NetState& state);

// The one Input layer of a net to which images are brought.
struct ImageInput {
  std::string layer;
  int batch = 0, channels = 0, height = 0, width = 0;
};
// Throws UserError, with what to do, where samples come from elsewhere or are no images.
ImageInput image_input_of(const NetFile& part);
// Gives that layer another number of samples.
void set_input_batch(NetFile& part, const std::string& layer, int batch);

}  // namespace cortado
