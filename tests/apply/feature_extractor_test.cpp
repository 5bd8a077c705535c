#include "cortado/apply/feature_extractor.h"

#include <gtest/gtest.h>

#include "cortado/net/read_net.h"

#include "tests/apply/whole_net.h"

namespace cortado {
namespace {

// Keeps what it is given.
class Kept : public FeatureStore {
 public:
  void add(size_t array, std::span<const float> rows) override {
    if (arrays.size() <= array) arrays.resize(array + 1);
    arrays[array].insert(arrays[array].end(), rows.begin(), rows.end());
  }
  void finish() override { FAIL() << "an extractor does not finish the store"; }
  std::vector<std::vector<float>> arrays;
};

class Extraction : public testing::Test {
 protected:
  Extraction() {
    write_images(folder_ / "db", 7);
    whole_.write_weights(folder_ / "weights.h5");
    net_ = {branched_net(), net_state(Phase::test), {folder_ / "weights.h5"}};
    options_.preprocess.mean_values = {100};
    options_.preprocess.scale = 1.0 / 64;
  }

  FeatureExtractor of_images(const std::vector<std::string>& blobs, int64_t batches = 0) {
    return {net_, blobs, batches, open_image_source(folder_ / "db", ""), options_};
  }

  ScratchFolder folder_;
  WholeNet whole_;
  TrainedNet net_;
  ImageOptions options_;
};

// 7 images in batches of 3: the last one is not full.
TEST_F(Extraction, GivesTheBlobsOfTheWholeNet) {
  const std::vector<std::string> blobs{"conv", "side", "data", "prob"};
  FeatureExtractor extractor = of_images(blobs);
  EXPECT_EQ(extractor.samples(), 7);
  EXPECT_EQ(extractor.arrays()[0].shape, (Shape{7, 4, 2, 3}));
  EXPECT_EQ(extractor.arrays()[3].shape, (Shape{7, 3}));
  Kept kept;
  std::vector<int64_t> told;
  extractor.run(kept, [&](int64_t done, int64_t) { told.push_back(done); });
  EXPECT_EQ(told, (std::vector<int64_t>{3, 6, 7}));
  for (size_t b = 0; b < blobs.size(); ++b) {
    SCOPED_TRACE(blobs[b]);
    expect_near(kept.arrays[b], whole_.values(blobs[b], 7));
  }
}

TEST_F(Extraction, DoesNotDependOnTheBatch) {
  for (int batch : {1, 2, 7, 50}) {
    SCOPED_TRACE(batch);
    options_.batch = batch;
    Kept kept;
    of_images({"score"}).run(kept, [](int64_t, int64_t) {});
    expect_near(kept.arrays[0], whole_.values("score", 7));
  }
}

TEST_F(Extraction, TakesAsManyBatchesAsAskedFor) {
  Kept kept;
  of_images({"score"}, 2).run(kept, [](int64_t, int64_t) {});
  expect_near(kept.arrays[0], whole_.values("score", 6));
  EXPECT_NE(error_of([&] { of_images({"score"}, 3); }).find("9 images, but there are 7"), std::string::npos);
  EXPECT_NE(error_of([&] { of_images({"score"}, int64_t{1} << 62); }).find("more samples"),
            std::string::npos);
}

// The net's own data: 'scores' of a database, in the order of its keys, and the labels.
TEST_F(Extraction, ReadsTheNetsOwnDataOnce) {
  std::string text =
      "layer { name: 'data' type: 'Data' top: 'data' top: 'label' "
      "transform_param { mean_value: 100 scale: 0.015625 } "
      "data_param { backend: LMDB batch_size: 3 source: '" +
      folder_ / "db" + "' } }";
  caffe::NetParameter with_data = parse_net(text, "data").net;
  const NetFile branched = branched_net();
  for (int i = 1; i < branched.net.layer_size(); ++i) *with_data.add_layer() = branched.net.layer(i);
  net_.file = net_of_message(with_data, "own.prototxt");
  FeatureExtractor once(net_, {"score", "label"}, 0, 2);
  EXPECT_EQ(once.samples(), 7);
  EXPECT_EQ(once.arrays()[1].shape, Shape{7});
  Kept kept;
  once.run(kept, [](int64_t, int64_t) {});
  expect_near(kept.arrays[0], whole_.values("score", 7));
  EXPECT_EQ(kept.arrays[1], (std::vector<float>{0, 1, 2, 0, 1, 2, 0}));
  Kept more;
  FeatureExtractor(net_, {"label"}, 3, 1).run(more, [](int64_t, int64_t) {});
  EXPECT_EQ(more.arrays[0], (std::vector<float>{0, 1, 2, 0, 1, 2, 0, 0, 1}));  // goes on from the start
}

TEST_F(Extraction, RefusesDataWithoutEnd) {
  EXPECT_NE(error_of([&] { FeatureExtractor(net_, {"score"}, 0, 1); }).find("no end"), std::string::npos);
}

TEST_F(Extraction, RefusesBlobsNamedTwiceAndNone) {
  EXPECT_NE(error_of([&] { of_images({"conv", "conv"}); }).find("named twice"), std::string::npos);
  EXPECT_NE(error_of([&] { of_images({}); }).find("name the blobs"), std::string::npos);
}

TEST_F(Extraction, RefusesBlobsWithoutARowASample) {
  caffe::LayerParameter& mean = *net_.file.net.add_layer();
  mean.set_name("mean");
  mean.set_type("Reduction");
  mean.add_bottom("score");
  mean.add_top("mean");
  net_.file.layer_lines.push_back(0);
  EXPECT_NE(error_of([&] { of_images({"mean"}); }).find("no row for each"), std::string::npos);
}

TEST_F(Extraction, RefusesWeightsThatLackALayer) {
  Weights weights = read_weights(folder_ / "weights.h5");
  std::erase_if(weights, [](const LayerWeights& layer) { return layer.layer == "score"; });
  write_weights_hdf5(folder_ / "weights.h5", weights);
  EXPECT_NE(error_of([&] { of_images({"prob"}); }).find("'score'"), std::string::npos);
  EXPECT_EQ(error_of([&] { of_images({"conv"}); }), "");  // which does not need it
}

TEST_F(Extraction, CountsSamplesThatAreNotFinite) {
  put_not_finite(folder_ / "weights.h5", "score");
  FeatureExtractor extractor = of_images({"score"});
  Kept kept;
  extractor.run(kept, [](int64_t, int64_t) {});
  EXPECT_EQ(extractor.not_finite()[0], 7);
}

}  // namespace
}  // namespace cortado
