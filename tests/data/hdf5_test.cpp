#include <algorithm>
#include <fmt/format.h>
#include <hdf5.h>
#include <set>

#include "cortado/data/open_reader.h"
#include "cortado/data/reader.h"

#include "tests/data/support.h"

namespace cortado {
namespace {

// `rows` samples of 2x3 (channels, width) with value 100 * label + 3 * channel + column, labels from `first`.
void write_hdf5(const std::string& path, int rows, int first) {
  std::vector<float> data, label;
  for (int i = 0; i < rows; ++i) {
    label.push_back(static_cast<float>(first + i));
    for (int k = 0; k < 6; ++k) data.push_back(100 * label.back() + static_cast<float>(k));
  }
  hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  auto write = [&](const char* name, std::vector<hsize_t> extents, const std::vector<float>& values) {
    hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
    hid_t set = H5Dcreate2(file, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(set);
    H5Sclose(space);
  };
  write("data", {static_cast<hsize_t>(rows), 2, 3}, data);
  write("label", {static_cast<hsize_t>(rows)}, label);
  H5Fclose(file);
}

struct Hdf5Case {
  ScratchFolder folder;
  SourceOptions source;
  ReaderOptions options;
  Hdf5Case() {
    write_hdf5(folder / "a.h5", 4, 0);
    write_hdf5(folder / "b.h5", 3, 4);
    write_bytes(folder / "list", fmt::format("{}\n{}\n", folder / "a.h5", folder / "b.h5"));
    source.kind = SourceOptions::Kind::hdf5_data;
    source.source = folder / "list";
    source.batch_size = 7;
    options.top_names = {"data", "label"};
    options.threads = 2;
  }
};

TEST(Hdf5Reader, ReadsFilesInOrderChannelsLast) {
  Hdf5Case test;
  auto reader = open_reader(test.source, test.options);
  EXPECT_EQ(reader->shapes(), (std::vector<Shape>{{7, 2, 3}, {7}}));
  for (int epoch = 0; epoch < 2; ++epoch) {
    Batch batch = reader->next();
    for (int i = 0; i < 7; ++i) {
      EXPECT_EQ(batch.tensors[1][i], i);
      for (int x = 0; x < 3; ++x)
        for (int c = 0; c < 2; ++c) EXPECT_EQ(batch.tensors[0][i * 6 + x * 2 + c], 100 * i + 3 * c + x);
    }
  }
}

TEST(Hdf5Reader, ShufflesRowsWithinFiles) {
  Hdf5Case test;
  test.source.shuffle = true;
  auto reader = open_reader(test.source, test.options);
  std::set<std::vector<float>> orders;
  for (int epoch = 0; epoch < 6; ++epoch) {
    Batch batch = reader->next();
    std::vector<float> order(batch.tensors[1], batch.tensors[1] + 7);
    orders.insert(order);
    const bool a_first = order[0] < 4;
    for (int i = 0; i < 7; ++i) EXPECT_EQ(order[i] < 4, a_first ? i < 4 : i >= 3);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, (std::vector<float>{0, 1, 2, 3, 4, 5, 6}));
  }
  EXPECT_GT(orders.size(), 3u);
}

TEST(Hdf5Reader, NamesWhatIsWrong) {
  Hdf5Case test;
  auto opening = [&] { return error_of([&] { open_reader(test.source, test.options); }); };
  test.options.top_names = {"data", "labels"};
  EXPECT_NE(opening().find("a.h5 has no dataset 'labels'"), std::string::npos);
  test.options.top_names = {"data", "label"};
  std::filesystem::resize_file(test.folder / "b.h5", 700);
  EXPECT_NE(opening().find("cannot open HDF5 file"), std::string::npos);
  test.source.source = "absent";
  EXPECT_NE(opening().find("cannot open the list of HDF5 files absent"), std::string::npos);
}

}  // namespace
}  // namespace cortado
