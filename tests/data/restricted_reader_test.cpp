#include <fmt/format.h>
#include <functional>
#include <hdf5.h>

#include "cortado/data/datum.h"
#include "cortado/data/image_codecs.h"
#include "cortado/data/lmdb.h"
#include "cortado/data/memory_reader.h"
#include "cortado/data/open_reader.h"
#include "cortado/data/reader.h"

#include "tests/data/support.h"

namespace cortado {
namespace {

using MakeReader = std::function<std::unique_ptr<Reader>()>;

constexpr int64_t batch = 7;

// `parts` ranges of the batch, one after the other and of unequal sizes; with eight the first is empty.
std::vector<Range> ranges(int64_t parts) {
  std::vector<Range> ranges;
  for (int64_t i = 0; i < parts; ++i) ranges.push_back({batch * i / parts, batch * (i + 1) / parts});
  return ranges;
}

// Batches of readers of one range each, side by side with those of a reader of the whole batch.
void expect_parts_of_the_batch(Reader& whole, const std::vector<std::unique_ptr<Reader>>& parts,
                               const std::vector<Range>& samples, int batches) {
  for (int b = 0; b < batches; ++b) {
    Batch expected = whole.next();
    for (size_t p = 0; p < parts.size(); ++p) {
      Batch batch_part = parts[p]->next();
      EXPECT_EQ(batch_part.first_sample, expected.first_sample);
      ASSERT_EQ(batch_part.tensors.size(), expected.tensors.size());
      for (size_t t = 0; t < expected.tensors.size(); ++t) {
        const Shape shape = whole.shapes()[t];
        const bool rows = shape.rank() > 0 && shape[0] == batch;
        const int64_t row = shape.size() / (rows ? batch : 1);
        const Range range = rows ? samples[p] : Range{0, 1};
        const float* values = expected.tensors[t];
        EXPECT_EQ(std::vector<float>(values + range.begin * row, values + range.end * row),
                  std::vector<float>(batch_part.tensors[t], batch_part.tensors[t] + range.size() * row))
            << "batch " << b << " top " << t << " samples [" << range.begin << ", " << range.end << ")";
      }
    }
  }
}

void expect_same_samples(const MakeReader& make) {
  for (int64_t count : {1, 2, 3, 5, 8}) {
    SCOPED_TRACE(fmt::format("{} ranks", count));
    auto whole = make();
    std::vector<std::unique_ptr<Reader>> parts;
    for (Range range : ranges(count)) {
      parts.push_back(make());
      parts.back()->restrict_to(range);
      EXPECT_EQ(parts.back()->shapes(), whole->shapes());
    }
    expect_parts_of_the_batch(*whole, parts, ranges(count), 5);
    for (auto& part : parts) part->seek(2 * batch);
    whole->seek(2 * batch);
    expect_parts_of_the_batch(*whole, parts, ranges(count), 4);
  }
}

ReaderOptions restricted_options(int tops, int threads = 2) {
  ReaderOptions options;
  options.seed = 11;
  options.tops = tops;
  options.layer_name = "data";
  options.threads = threads;
  return options;
}

// 10 images, so that batches of 7 wrap around; records 4 and 9 hold no Datum when `broken`.
SourceOptions database(const ScratchFolder& folder, bool broken) {
  LmdbWriter writer(folder / "db", false);
  for (int i = 0; i < 10; ++i)
    writer.put(fmt::format("{:08}_image", i),
               broken && i % 5 == 4 ? "no datum" : raw_datum(pattern(8, 8, 3, i), i).SerializeAsString());
  writer.finish();
  SourceOptions source;
  source.source = folder / "db";
  source.batch_size = batch;
  source.skip_corrupt = broken;
  source.transform = {.scale = 0.37, .mirror = true, .crop_size = 5};
  return source;
}

TEST(RestrictedReader, DataGivesTheSamplesOfTheWholeBatch) {
  ScratchFolder folder;
  SourceOptions source = database(folder, false);
  expect_same_samples([&] { return open_reader(source, restricted_options(2)); });
  expect_same_samples([&] { return open_reader(source, restricted_options(1, 5)); });
}

TEST(RestrictedReader, DataPassesOverTheSameBrokenRecords) {
  ScratchFolder folder;
  SourceOptions source = database(folder, true);
  expect_same_samples([&] { return open_reader(source, restricted_options(2)); });
}

TEST(RestrictedReader, MixUpFindsItsPartners) {
  ScratchFolder folder;
  SourceOptions source = database(folder, false);
  source.transform.mixup_alpha = 0.4;
  source.transform.brightness = 0.2;
  expect_same_samples([&] { return open_reader(source, restricted_options(4)); });
  ReaderOptions testing = restricted_options(4);
  testing.phase = Phase::test;
  expect_same_samples([&] { return open_reader(source, testing); });
}

TEST(RestrictedReader, ImageDataGivesTheSamplesOfTheWholeBatch) {
  ScratchFolder folder;
  std::string list;
  for (int i = 0; i < 9; ++i) {
    auto file = encode_image(pattern(6, 8, 3, i), "png");
    write_bytes(folder / fmt::format("{}.png", i), {reinterpret_cast<char*>(file.data()), file.size()});
    list += fmt::format("{}.png {}\n", i, i);
  }
  write_bytes(folder / "list.txt", list);
  SourceOptions source;
  source.kind = SourceOptions::Kind::image_data;
  source.source = folder / "list.txt";
  source.root_folder = folder / "";
  source.batch_size = batch;
  source.shuffle = true;
  source.rand_skip = 5;
  source.transform = {.mirror = true, .crop_size = 4};
  expect_same_samples([&] { return open_reader(source, restricted_options(2)); });
}

TEST(RestrictedReader, ReadsNoImageOfOtherRanks) {
  ScratchFolder folder;
  auto file = encode_image(pattern(6, 8, 3), "png");
  write_bytes(folder / "there.png", {reinterpret_cast<char*>(file.data()), file.size()});
  std::string list = "there.png 1\n";
  for (int i = 1; i < batch; ++i) list += i < 3 ? "there.png 2\n" : "absent.png 3\n";
  write_bytes(folder / "list.txt", list);
  SourceOptions source;
  source.kind = SourceOptions::Kind::image_data;
  source.source = folder / "list.txt";
  source.root_folder = folder / "";
  source.batch_size = batch;
  auto first = open_reader(source, restricted_options(2));
  first->restrict_to({0, 3});
  EXPECT_EQ(first->next().tensors[1][2], 2);
  auto second = open_reader(source, restricted_options(2));
  second->restrict_to({2, 4});
  EXPECT_NE(error_of([&] { second->next(); }).find("absent.png (image 4 of"), std::string::npos);
}

TEST(RestrictedReader, Hdf5DataGivesTheSamplesOfTheWholeBatch) {
  ScratchFolder folder;
  for (int f = 0; f < 3; ++f) {
    std::vector<float> values(5 * 6);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(100 * f + i);
    hid_t file =
        H5Fcreate((folder / fmt::format("{}.h5", f)).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t extents[] = {5, 2, 3};
    hid_t space = H5Screate_simple(3, extents, nullptr);
    hid_t set = H5Dcreate2(file, "data", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
  }
  write_bytes(folder / "list",
              fmt::format("{}\n{}\n{}\n", folder / "0.h5", folder / "1.h5", folder / "2.h5"));
  SourceOptions source;
  source.kind = SourceOptions::Kind::hdf5_data;
  source.source = folder / "list";
  source.batch_size = batch;
  ReaderOptions reader = restricted_options(1);
  reader.top_names = {"data"};
  for (bool shuffle : {false, true}) {
    source.shuffle = shuffle;
    expect_same_samples([&] { return open_reader(source, reader); });
  }
}

TEST(RestrictedReader, DummyDataKeysItsNumbersByTheWholeBatch) {
  SourceOptions source;
  source.kind = SourceOptions::Kind::dummy_data;
  source.shapes = {{batch, 3, 2}, {batch}, {4, 2}, {}};
  source.fillers = {{.type = Filler::Type::uniform, .min = 2, .max = 3},
                    {.type = Filler::Type::gaussian},
                    {.type = Filler::Type::gaussian},
                    {.value = 7}};
  expect_same_samples([&] { return open_reader(source, restricted_options(4)); });
}

TEST(RestrictedReader, MemoryDataAndInputGiveTheRowsThatWereSet) {
  SourceOptions source;
  source.kind = SourceOptions::Kind::memory_data;
  source.batch_size = batch;
  source.shapes = {{1, 1, 3}};
  std::vector<float> data(3 * 2 * batch), labels(2 * batch);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<float>(i % 5);
  expect_same_samples([&] {
    auto reader = std::make_unique<MemoryReader>(source, restricted_options(2));
    reader->set(data, labels);
    return reader;
  });
  source.kind = SourceOptions::Kind::input;
  source.shapes = {{batch, 2}};
  InputReader input(source, restricted_options(1));
  input.restrict_to({2, 5});
  ASSERT_EQ(input.values(0).size(), 6u);
  input.values(0)[5] = 4;
  EXPECT_EQ(input.next().tensors[0][5], 4);
}

}  // namespace
}  // namespace cortado
