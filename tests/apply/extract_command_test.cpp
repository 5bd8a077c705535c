#include <filesystem>
#include <gtest/gtest.h>

#include "cortado/net/hdf5_file.h"

#include "tests/apply/trained_shapes.h"

namespace cortado {
namespace {

class Extract : public TrainedShapes {
 protected:
  static constexpr const char* trained =
      "extract --threads 1 --model train_val.prototxt --weights weights.caffemodel ";

  static std::vector<float> first_floats(const std::string& database) {
    LmdbReader reader(folder_->file(database));
    std::vector<float> values;
    for (int64_t i = 0; i < reader.size(); ++i) {
      caffe::Datum datum;
      parse_datum(reader.at(i).value, datum);
      values.push_back(datum.float_data(0));
    }
    return values;
  }
};

TEST_F(Extract, TakesTheWordsOfCaffesTool) {
  const std::string lines =
      must_run("extract weights.caffemodel train_val.prototxt ip,label a_lmdb,b_lmdb 7 lmdb CPU");
  EXPECT_NE(lines.find("Wrote 'ip' of 70x4 to a_lmdb"), std::string::npos) << lines;
  const std::vector<float> ip = first_floats("a_lmdb"), labels = first_floats("b_lmdb");
  ASSERT_EQ(ip.size(), 70u);  // 7 batches of 10; the database has 50
  for (size_t i = 50; i < 70; ++i) {
    EXPECT_EQ(ip[i], ip[i - 50]);
    EXPECT_EQ(labels[i], labels[i - 50]);
  }
}

// The samples of a database by the net's own layer, and as images.
TEST_F(Extract, GivesTheSameByEitherWay) {
  must_run(std::string(trained) + "--blobs pool,label --format hdf5 --out own.h5 --batch 25");
  must_run("extract" + std::string(deployed) +
           "--blobs pool --format hdf5 --out images.h5 --source test --batch 8");
  must_run("extract" + std::string(deployed) + "--blobs pool --format hdf5 --out files.h5 pngs");
  const Blob own = Hdf5Reader(folder_->file("own.h5")).blob("pool");
  EXPECT_EQ(own.shape, (Shape{50, 8, 6, 6}));
  for (const char* file : {"images.h5", "files.h5"}) {
    const Blob blob = Hdf5Reader(folder_->file(file)).blob("pool");
    ASSERT_EQ(blob.shape, own.shape);
    for (size_t i = 0; i < own.values.size(); ++i) ASSERT_NEAR(blob.values[i], own.values[i], 1e-4) << i;
  }
}

TEST_F(Extract, MakesAFolderForSeveralBlobs) {
  must_run(std::string(trained) + "--blobs conv,ip --format npy --out features --batches 1");
  EXPECT_TRUE(folder_->has("features/conv.npy") && folder_->has("features/ip.npy"));
  EXPECT_NE(
      refusal(std::string(trained) + "--blobs conv,ip --format npy --out features").find("exists already"),
      std::string::npos);
  must_run(std::string(trained) + "--blobs conv,ip --format npy --out features --force");
  EXPECT_EQ(std::filesystem::file_size(folder_->file("features/ip.npy")), 128u + 50 * 4 * sizeof(float));
}

TEST_F(Extract, KeepsTheStagesOfTheNetsOwnState) {
  folder_->write("staged.prototxt",
                 "state { stage: 'own' }\n" + folder_->read("train_val.prototxt") +
                     "layer { name: 'more' type: 'ReLU' bottom: 'ip' top: 'more' include { stage: 'own' } }");
  must_run(
      "extract --threads 1 --model staged.prototxt --weights weights.caffemodel --blobs more --format npy "
      "--out more.npy --batches 1");
  EXPECT_TRUE(folder_->has("more.npy"));
}

}  // namespace
}  // namespace cortado
