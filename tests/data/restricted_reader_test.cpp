#include <fmt/format.h>
#include <functional>
#include <hdf5.h>
#include <limits>
#include <random>

#include "cortado/data/callback_reader.h"
#include "cortado/data/datum.h"
#include "cortado/data/image_codecs.h"
#include "cortado/data/lmdb.h"
#include "cortado/data/memory_reader.h"
#include "cortado/data/open_reader.h"
#include "cortado/data/reader.h"

#include "tests/base/part_of.h"
#include "tests/data/support.h"
#include "tests/data/volume_files.h"

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

void restrict_to(Reader& reader, Range samples) {
  reader.restrict_to(part_of_samples(reader.shapes(), samples));
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

// Some samples, and of each top that has rows a box of them, sometimes nothing. Labels of one number stay, as
// for ranks.
BatchPart random_part(const std::vector<Shape>& shapes, std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const int64_t begin = pick(0, batch);
  BatchPart part = part_of_samples(shapes, {begin, pick(begin, batch)});
  for (size_t top = 0; top < shapes.size(); ++top) {
    if (!has_row_per_sample(shapes[top], batch)) continue;
    const bool nothing = pick(0, 9) == 0;
    for (int axis = 1; axis < shapes[top].rank(); ++axis) {
      if (pick(0, 2) == 0 && !nothing) continue;
      const int64_t first = pick(0, shapes[top][axis] - 1);
      part.tops[top][axis] = {first, nothing ? first : pick(first + 1, shapes[top][axis])};
    }
  }
  return part;
}

// Tiles are bitwise those of whole batches, also after a seek.
void expect_same_boxes(const MakeReader& make) {
  std::mt19937 random(17);
  for (int i = 0; i < 12; ++i) {
    auto whole = make(), tile = make();
    const std::vector<Shape> shapes = whole->shapes();
    const BatchPart part = random_part(shapes, random);
    tile->restrict_to(part);
    EXPECT_EQ(tile->shapes(), shapes);
    for (int b = 0; b < 4; ++b) {
      const Batch expected = whole->next(), given = tile->next();
      EXPECT_EQ(given.first_sample, expected.first_sample);
      for (size_t top = 0; top < shapes.size(); ++top) {
        const std::vector<float> values(expected.tensors[top], expected.tensors[top] + shapes[top].size());
        const int64_t count = part.tops[top].shape().size();
        EXPECT_EQ(std::vector<float>(given.tensors[top], given.tensors[top] + count),
                  part_of(shapes[top], values, part.tops[top]))
            << "top " << top << " box " << part.tops[top].text();
      }
      if (b != 1) continue;
      whole->seek(3 * batch);
      tile->seek(3 * batch);
    }
  }
}

void expect_same_samples(const MakeReader& make) {
  expect_same_boxes(make);
  for (int64_t count : {1, 2, 3, 5, 8}) {
    SCOPED_TRACE(fmt::format("{} ranks", count));
    auto whole = make();
    std::vector<std::unique_ptr<Reader>> parts;
    for (Range range : ranges(count)) {
      parts.push_back(make());
      restrict_to(*parts.back(), range);
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
  restrict_to(*first, {0, 3});
  EXPECT_EQ(first->next().tensors[1][2], 2);
  auto second = open_reader(source, restricted_options(2));
  restrict_to(*second, {2, 4});
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

// Rows of so many values are read one by one. One dataset lies in compressed chunks.
TEST(RestrictedReader, Hdf5DataReadsBoxesOfLargeRows) {
  ScratchFolder folder;
  const hsize_t extents[] = {3, 2, 70, 80, 100}, chunk[] = {1, 1, 16, 16, 32};
  std::vector<float> values(3 * 2 * 70 * 80 * 100);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 9973);
  hid_t file = H5Fcreate((folder / "a.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  for (const char* name : {"data", "label"}) {
    const hsize_t channels = name[0] == 'd' ? 2 : 1;
    const hsize_t own[] = {extents[0], channels, extents[2], extents[3], extents[4]};
    hid_t space = H5Screate_simple(5, own, nullptr), how = H5Pcreate(H5P_DATASET_CREATE);
    if (name[0] == 'l') H5Pset_chunk(how, 5, chunk);
    hid_t set = H5Dcreate2(file, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, how, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(set);
    H5Pclose(how);
    H5Sclose(space);
  }
  H5Fclose(file);
  write_bytes(folder / "list", folder / "a.h5");
  SourceOptions source;
  source.kind = SourceOptions::Kind::hdf5_data;
  source.source = folder / "list";
  source.batch_size = 1;
  ReaderOptions reader = restricted_options(2);
  reader.top_names = {"data", "label"};
  auto whole = open_reader(source, reader), tile = open_reader(source, reader);
  BatchPart part = part_of_samples(whole->shapes(), {0, 1});
  part.tops[0][2] = {30, 61};
  part.tops[0][3] = {0, 41};
  part.tops[0][4] = {13, 99};
  part.tops[1][2] = {31, 60};
  tile->restrict_to(part);
  for (int b = 0; b < 4; ++b) {
    const Batch expected = whole->next(), given = tile->next();
    for (size_t top = 0; top < 2; ++top) {
      const Shape shape = whole->shapes()[top];
      const std::vector<float> all(expected.tensors[top], expected.tensors[top] + shape.size());
      const int64_t count = part.tops[top].shape().size();
      EXPECT_EQ(std::vector<float>(given.tensors[top], given.tensors[top] + count),
                part_of(shape, all, part.tops[top]));
    }
    // Of the file, in its own order.
    const int64_t rows = 70 * 80 * 100;
    EXPECT_EQ(expected.tensors[0][2 * 12345 + 1], values[(2 * (b % 3) + 1) * rows + 12345]);
    EXPECT_EQ(expected.tensors[1][12345], values[b % 3 * rows + 12345]);
  }
}

TEST(RestrictedReader, VolumeDataCropsAndMirrorsTilesAsWholeSamples) {
  ScratchFolder folder;
  std::string list;
  for (int i = 0; i < 3; ++i) {
    const Shape extents{2, 6 + i, 9 - i, 8}, labels{1, 6 + i, 9 - i, 8};
    write_bytes(folder / fmt::format("{}.nii", i),
                nifti({.extents = extents}, volume_values(extents.size(), i, 1000, false)));
    write_bytes(folder / fmt::format("l{}.nii", i),
                nifti({.extents = labels, .element = VolumeOptions::Element::uint8},
                      volume_values(labels.size(), i, 5, true)));
    list += fmt::format("{}.nii l{}.nii\n", i, i);
  }
  write_bytes(folder / "list", list);
  SourceOptions source;
  source.kind = SourceOptions::Kind::volume_data;
  source.source = folder / "list";
  source.root_folder = folder / "";
  source.batch_size = batch;
  source.shuffle = true;
  source.transform.scale = 0.3;
  source.transform.mean_values = {3, 4};
  source.volumes = {.crop = {5, 6, 7}, .mirror = "dhw"};
  expect_same_samples([&] { return open_reader(source, restricted_options(2)); });
  ReaderOptions testing = restricted_options(2);
  testing.phase = Phase::test;
  expect_same_samples([&] { return open_reader(source, testing); });
}

// Without a whole sample on this rank: the file lacks what lies outside of the box.
TEST(RestrictedReader, VolumeDataReadsNothingOutsideOfItsBox) {
  ScratchFolder folder;
  const Shape extents{1, 40, 64, 64};
  std::vector<float> values = volume_values(extents.size(), 1, 1000, false);
  values.back() = std::numeric_limits<float>::quiet_NaN();
  write_bytes(folder / "a.nii", nifti({.extents = extents}, values));
  write_bytes(folder / "list", "a.nii");
  SourceOptions source;
  source.kind = SourceOptions::Kind::volume_data;
  source.source = folder / "list";
  source.root_folder = folder / "";
  source.batch_size = 1;
  auto tile = open_reader(source, restricted_options(1)), whole = open_reader(source, restricted_options(1));
  BatchPart part = part_of_samples(tile->shapes(), {0, 1});
  part.tops[0][2] = {0, 39};
  tile->restrict_to(part);
  EXPECT_EQ(tile->next().tensors[0][39 * 64 * 64 - 1], values[39 * 64 * 64 - 1]);
  EXPECT_NE(error_of([&] { whole->next(); }).find("has the value nan"), std::string::npos);
}

TEST(RestrictedReader, CallbacksFillSamplesOfWhichBoxesAreKept) {
  const std::vector<Shape> shapes{{batch, 3, 2, 5}, {batch, 4}, {batch}, {2, 3}};
  expect_same_samples([&] {
    return std::make_unique<CallbackReader>(shapes, [](const CallbackReader::Request& request) {
      for (size_t top = 0; top < request.tops.size(); ++top) {
        const auto row = static_cast<int64_t>(request.shapes[top].count(1));
        const int64_t first = top == 3 ? 0 : request.samples.begin * row;
        for (int64_t i = 0; i < request.shapes[top].size(); ++i)
          request.tops[top][i] = static_cast<float>(1000 * request.number + 100 * top + first + i);
      }
    });
  });
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
  restrict_to(input, {2, 5});
  ASSERT_EQ(input.values(0).size(), 6u);
  input.values(0)[5] = 4;
  EXPECT_EQ(input.next().tensors[0][5], 4);
}

}  // namespace
}  // namespace cortado
