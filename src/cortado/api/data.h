#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cortado/api/network.h"
#include "cortado/api/tensor.h"

namespace cortado::api {

// A request to fill a batch, or this rank's part of one, of a source layer.
struct BatchRequest {
  // A top of the layer: the rows of samples [begin, end), row-major in spoken order, to be written in whole.
  struct Top {
    std::string name;
    Shape shape;  // {end - begin, C, H, W}; of a top without a row a sample: the whole
    std::span<float> values;
  };
  std::string layer;
  Phase phase = Phase::train;
  int64_t number = 0;          // batches of this layer so far; goes on where a snapshot left off
  int64_t batch = 0;           // samples of the whole batch
  int64_t begin = 0, end = 0;  // samples of the batch that this rank needs; on one rank all
  std::vector<Top> tops;
};
// Must give the same values for the same number, whichever samples are asked for: then a training that goes
// on from a snapshot, and one on several ranks, see the same data. It is called on a thread of the trainer's,
// for one batch at a time, while step(), run() or test() runs. What it throws, those throw.
using FillBatch = std::function<void(BatchRequest&)>;

// Says what source layers read in place of what the net's file names: by layer and phase. Layers that are not
// named read what the file names.
class Data {
 public:
  // `sample_shapes`: a top's shape without N ({1, 28, 28}, then {} for a label), which Data, ImageData and
  // HDF5Data layers need; none: as the layer declares them (Input, MemoryData, DummyData).
  Data& fill(const std::string& layer, FillBatch fill, std::vector<Shape> sample_shapes = {});
  Data& fill(const std::string& layer, Phase phase, FillBatch fill, std::vector<Shape> sample_shapes = {});

  // Samples that lie in memory, row-major in spoken order, one span per top; read in order, over and over.
  // They must outlive every trainer of this Data. Throws UserError where the tops have different numbers of
  // samples, or no whole one.
  Data& spans(const std::string& layer, std::vector<std::span<const float>> tops,
              std::vector<Shape> sample_shapes);
  Data& spans(const std::string& layer, Phase phase, std::vector<std::span<const float>> tops,
              std::vector<Shape> sample_shapes);

  struct Source {
    FillBatch fill;
    std::vector<Shape> sample_shapes;
  };
  const Source* find(const std::string& layer, Phase phase) const;  // null: as the file says
  std::vector<std::string> layers() const;                          // that are named here

 private:
  std::map<std::pair<std::string, Phase>, Source> sources_;
};

}  // namespace cortado::api
