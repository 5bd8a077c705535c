#pragma once

#include <cmath>
#include <gtest/gtest.h>

#include "cortado/data/datum.h"
#include "cortado/data/lmdb.h"
#include "cortado/exec/executor.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/weights.h"

#include "tests/apply/support.h"

namespace cortado {

// Image `index` of those that the tests draw: no two are alike.
inline Image drawn_image(int index) {
  Image image(4, 5, 3);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(31 * i + 57 * static_cast<size_t>(index) * (i + 3));
  return image;
}

inline void write_images(const std::string& database, int count) {
  LmdbWriter writer(database, false);
  for (int i = 0; i < count; ++i)
    writer.put("image" + std::to_string(i), raw_datum(drawn_image(i), i % 3).SerializeAsString());
  writer.finish();
}

// branched_net() with random weights as a whole, every tensor kept, which the parts that are applied are
// compared with. Pixels are fed as (pixel - 100) / 64.
class WholeNet {
 public:
  WholeNet()
      : loaded_(load_network(branched_net(), net_state(Phase::test), declared_source_shapes)),
        executor_(loaded_.network,
                  compile(loaded_.network, {.kernels = {.kernels = "reference"}, .keep_tensors = true}),
                  parameters_, {{"data", [this] { return next(); }}}, {.seed = 3}) {}

  void write_weights(const std::string& path) const {
    write_weights_hdf5(path, collect_weights(loaded_.network, [&](ParameterIndex parameter) {
                         return parameters_.canonical(executor_.parameter_entries()[parameter]);
                       }));
  }

  // The blob for images 0 .. count-1, row-major.
  std::vector<float> values(const std::string& blob, int count) {
    std::vector<float> all;
    for (first_ = 0; first_ < count; first_ += 3) {
      executor_.run(0);
      const TensorIndex tensor = loaded_.network.tensor(blob);
      const std::vector<float> batch = executor_.canonical_tensor(tensor);
      const int64_t row = loaded_.network.tensors()[tensor].shape.count(1);
      all.insert(all.end(), batch.begin(), batch.begin() + std::min(3, count - first_) * row);
    }
    return all;
  }

 private:
  std::vector<const float*> next() {
    batch_.clear();
    for (int i = 0; i < 3; ++i)
      for (uint8_t pixel : drawn_image(first_ + i).pixels)
        batch_.push_back((static_cast<float>(pixel) - 100) / 64);
    return {batch_.data()};
  }

  int first_ = 0;
  std::vector<float> batch_;
  LoadedNetwork loaded_;
  ParameterStore parameters_;
  Executor executor_;
};

// Makes the weights of a layer so large that its outputs are not finite.
inline void put_not_finite(const std::string& file, const std::string& layer) {
  Weights weights = read_weights(file);
  std::ranges::fill(std::ranges::find(weights, layer, &LayerWeights::layer)->blobs[0].values, 3e38f);
  write_weights_hdf5(file, weights);
}

inline void expect_near(const std::vector<float>& values, const std::vector<float>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-4) << i;
}

}  // namespace cortado
