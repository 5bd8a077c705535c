#include "cortado/apply/feature_store.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "cortado/data/datum.h"
#include "cortado/data/lmdb.h"
#include "cortado/net/hdf5_file.h"

#include "tests/apply/support.h"

namespace cortado {
namespace {

const std::vector<FeatureArray> arrays{{"a/b", {3, 2, 1, 2}}, {"c", {3}}};

std::vector<float> counted(float first, int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(first + static_cast<float>(i));
  return values;
}

// Two samples, then the third.
void fill(FeatureStore& store) {
  const std::vector<float> a = counted(0, 12), c = counted(100, 3);
  store.add(0, std::span(a).first(8));
  store.add(1, std::span(c).first(2));
  store.add(0, std::span(a).subspan(8));
  store.add(1, std::span(c).subspan(2));
}

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST(FeatureStore, WritesCaffesDatabases) {
  ScratchFolder folder;
  const auto paths = feature_paths(FeatureFormat::lmdb, {folder / "out"}, {"a/b", "c"});
  EXPECT_EQ(paths, (std::vector<std::string>{folder / "out/a_b_lmdb", folder / "out/c_lmdb"}));
  auto store = make_feature_store(FeatureFormat::lmdb, paths, arrays, false);
  fill(*store);
  store->finish();
  LmdbReader reader(paths[0]);
  ASSERT_EQ(reader.size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(reader.at(i).key, "000000000" + std::to_string(i));
    caffe::Datum datum;
    parse_datum(reader.at(i).value, datum);
    EXPECT_EQ(datum.channels(), 2);
    EXPECT_EQ(datum.height(), 1);
    EXPECT_EQ(datum.width(), 2);
    EXPECT_FALSE(datum.has_data() || datum.has_label());
    const std::vector<float> expected = counted(static_cast<float>(4 * i), 4);
    EXPECT_EQ((std::vector<float>{datum.float_data().begin(), datum.float_data().end()}), expected);
  }
  caffe::Datum scalar;
  parse_datum(LmdbReader(paths[1]).at(2).value, scalar);
  EXPECT_EQ(scalar.channels() * scalar.height() * scalar.width(), 1);
  EXPECT_EQ(scalar.float_data(0), 102);
}

TEST(FeatureStore, WritesDatasetsOfOneFileOrOfSeveral) {
  ScratchFolder folder;
  for (bool one : {true, false}) {
    const std::vector<std::string> names =
        one ? std::vector{folder / "all.h5"} : std::vector{folder / "a.h5", folder / "c.h5"};
    const auto paths = feature_paths(FeatureFormat::hdf5, names, {"a/b", "c"});
    EXPECT_EQ(paths, names);
    auto store = make_feature_store(FeatureFormat::hdf5, paths, arrays, false);
    fill(*store);
    store->finish();
    EXPECT_EQ(Hdf5Reader(paths.front()).blob("a/b"), (Blob{{3, 2, 1, 2}, counted(0, 12)}));
    EXPECT_EQ(Hdf5Reader(paths.back()).blob("c"), (Blob{{3}, counted(100, 3)}));
  }
}

// The bytes that NumPy's format says (numpy.lib.format, version 1.0).
TEST(FeatureStore, WritesNumpysFiles) {
  ScratchFolder folder;
  const auto paths = feature_paths(FeatureFormat::npy, {folder / "x.npy", folder / "y.npy"}, {"a/b", "c"});
  auto store = make_feature_store(FeatureFormat::npy, paths, arrays, false);
  fill(*store);
  store->finish();
  for (size_t p = 0; p < 2; ++p) {
    const std::string file = content(paths[p]);
    EXPECT_EQ(file.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
    EXPECT_EQ(file[127], '\n');
    EXPECT_NE(file.find(p == 0 ? "'shape': (3, 2, 1, 2), }" : "'shape': (3,), }"), std::string::npos);
    std::vector<float> values((file.size() - 128) / sizeof(float));
    std::memcpy(values.data(), &file[128], values.size() * sizeof(float));
    EXPECT_EQ(values, p == 0 ? counted(0, 12) : counted(100, 3));
  }
}

TEST(FeatureStore, LeavesNothingUnlessFinished) {
  for (FeatureFormat format : {FeatureFormat::lmdb, FeatureFormat::hdf5, FeatureFormat::npy}) {
    ScratchFolder folder;
    const auto paths = feature_paths(format, {folder / "new/x", folder / "new/y"}, {"a/b", "c"});
    {
      auto store = make_feature_store(format, paths, arrays, false);
      fill(*store);
    }
    EXPECT_EQ(folder.entries(), 0);
  }
}

TEST(FeatureStore, KeepsWhatIsThereUnlessToReplaceIt) {
  for (FeatureFormat format : {FeatureFormat::hdf5, FeatureFormat::npy}) {
    ScratchFolder folder;
    std::ofstream(folder / "y") << "mine";
    const std::vector<std::string> paths{folder / "x", folder / "y"};
    auto make = [&](bool replace) { return make_feature_store(format, paths, arrays, replace); };
    EXPECT_NE(error_of([&] { make(false); }).find("exists already"), std::string::npos);
    EXPECT_EQ(folder.entries(), 1);
    { auto unfinished = make(true); }
    EXPECT_EQ(content(folder / "y"), "mine");
    auto store = make(true);
    fill(*store);
    store->finish();
    EXPECT_NE(content(folder / "y"), "mine");
    EXPECT_EQ(folder.entries(), 2);
  }
}

TEST(FeatureStore, RefusesWhatItCannotWrite) {
  ScratchFolder folder;
  auto refusal = [&](FeatureFormat format, const std::vector<std::string>& names,
                     const std::vector<FeatureArray>& of) {
    return error_of([&] {
      std::vector<std::string> blobs;
      for (const FeatureArray& array : of) blobs.push_back(array.blob);
      make_feature_store(format, feature_paths(format, names, blobs), of, false);
    });
  };
  EXPECT_NE(refusal(FeatureFormat::lmdb, {folder / "v"}, {{"v", {2, 1, 2, 2, 2}}}).find("5 axes"),
            std::string::npos);
  EXPECT_NE(refusal(FeatureFormat::npy, {"a", "b", "c"}, arrays).find("3 output names for 2 blobs"),
            std::string::npos);
  EXPECT_NE(refusal(FeatureFormat::npy, {folder / "f"}, {{"a/b", {1}}, {"a_b", {1}}}).find("two blobs"),
            std::string::npos);
  EXPECT_NE(refusal(FeatureFormat::npy, {folder / ""}, {{"a", {1}}}).find("is a folder"), std::string::npos);
  EXPECT_NE(refusal(FeatureFormat::npy, {folder / "none/below/x"}, {{"a", {1}}}).find("no folder"),
            std::string::npos);
  EXPECT_NE(refusal(FeatureFormat::hdf5, {folder / "x"}, {{"a", {1}}, {"a/b", {1}}}).find("HDF5"),
            std::string::npos);
  EXPECT_EQ(folder.entries(), 0);
}

}  // namespace
}  // namespace cortado
