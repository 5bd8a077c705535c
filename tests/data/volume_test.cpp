// VolumeData: NIfTI and raw files.
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <random>
#include <set>

#include "cortado/data/open_reader.h"
#include "cortado/data/volume_file.h"
#include "cortado/data/volume_layout.h"

#include "tests/data/support.h"
#include "tests/data/volume_files.h"

namespace cortado {
namespace {

using Element = VolumeOptions::Element;

constexpr Element elements[] = {Element::uint8, Element::int16, Element::float32};

// Values of a box, row-major.
std::vector<float> read(const VolumeFile& file, const Box& box) {
  std::vector<float> values;
  file.read(box, [&](int64_t, int64_t, int64_t, std::span<const float> row) {
    values.insert(values.end(), row.begin(), row.end());
  });
  return values;
}

TEST(VolumeFiles, HaveWhatWasWrittenInEveryRandomBox) {
  ScratchFolder folder;
  std::mt19937 random(5);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 120; ++i) {
    NiftiFile file{.extents = {pick(1, 3), pick(1, 6), pick(1, 7), pick(1, 8)},
                   .element = elements[i % 3],
                   .big_endian = pick(0, 1) == 1,
                   .offset = 352 + pick(0, 40)};
    const bool raw = i % 4 == 3;
    if (raw) file.big_endian = false;
    const std::vector<float> values =
        volume_values(file.extents.size(), i, 100, file.element == Element::uint8);
    const std::string path = folder / (raw ? "volume.raw" : "volume.nii");
    write_bytes(path, nifti(file, values));
    const VolumeFile volume(path, VolumeFile::Raw{file.extents, file.element, file.offset});
    ASSERT_EQ(volume.extents(), file.extents);
    const Box whole = Box::whole(file.extents);
    for (int b = 0; b < 5; ++b) {
      Box box = whole;
      for (int axis = 0; axis < 4 && b > 0; ++axis) {
        box[axis].begin = pick(0, file.extents[axis]);
        box[axis].end = pick(box[axis].begin, file.extents[axis]);
      }
      std::vector<float> expected(static_cast<size_t>(box.shape().size()));
      copy_common(whole, values.data(), box, expected.data());
      ASSERT_EQ(read(volume, box), expected) << box.text();
    }
  }
}

TEST(VolumeFiles, AreScaledAsTheirHeadersSay) {
  ScratchFolder folder;
  const std::vector<float> values{0, 1, 2, 250};
  NiftiFile file{.extents = {1, 1, 2, 2}, .element = Element::uint8, .slope = 0.5f, .intercept = -3};
  write_bytes(folder / "a.nii", nifti(file, values));
  EXPECT_EQ(read(VolumeFile(folder / "a.nii", {}), Box::whole(file.extents)),
            (std::vector<float>{-3, -2.5f, -2, 122}));
  file.slope = std::numeric_limits<float>::quiet_NaN();  // what some writers mean by no scaling
  write_bytes(folder / "b.nii", nifti(file, values));
  EXPECT_EQ(read(VolumeFile(folder / "b.nii", {}), Box::whole(file.extents)), values);
}

struct VolumeCase {
  ScratchFolder folder;
  SourceOptions source;
  ReaderOptions options;

  // `count` volumes of the extents, and labels.
  VolumeCase(int count, const Shape& extents) {
    std::string list;
    for (int i = 0; i < count; ++i) {
      add(i, extents);
      list += fmt::format("volume {}.nii labels{}.nii\n", i, i);
    }
    write_bytes(folder / "list", list);
    source.kind = SourceOptions::Kind::volume_data;
    source.source = folder / "list";
    source.root_folder = folder / "";
    source.batch_size = 2;
    options.layer_name = "data";
  }
  void add(int i, const Shape& extents) const {
    Shape labels = extents;
    labels.set(0, 1);
    write_bytes(folder / fmt::format("volume {}.nii", i),
                nifti({.extents = extents, .element = Element::int16},
                      volume_values(extents.size(), i, 1000, false)));
    write_bytes(folder / fmt::format("labels{}.nii", i), nifti({.extents = labels, .element = Element::uint8},
                                                               volume_values(labels.size(), i, 4, true)));
  }
  std::string error() const {
    return error_of([&] { open_reader(source, options)->next(); });
  }
};

TEST(VolumeReader, GivesVolumesAndLabelsChannelsLast) {
  VolumeCase test(3, {2, 3, 4, 5});
  test.source.transform.scale = 0.25;
  test.source.transform.mean_values = {7, -2};
  auto reader = open_reader(test.source, test.options);
  EXPECT_EQ(reader->shapes(), (std::vector<Shape>{{2, 2, 3, 4, 5}, {2, 1, 3, 4, 5}}));
  for (int b = 0; b < 3; ++b) {
    const Batch batch = reader->next();
    for (int n = 0; n < 2; ++n) {
      const int record = (2 * b + n) % 3;
      const std::vector<float> volume = volume_values(120, record, 1000, false),
                               labels = volume_values(60, record, 4, true);
      for (int i = 0; i < 60; ++i) {
        EXPECT_EQ(batch.tensors[0][(n * 60 + i) * 2], (volume[i] - 7) * 0.25f);
        EXPECT_EQ(batch.tensors[0][(n * 60 + i) * 2 + 1], (volume[60 + i] + 2) * 0.25f);
        EXPECT_EQ(batch.tensors[1][n * 60 + i], labels[i]);
      }
    }
  }
}

// Volumes say in each value where it lies, so that a sample says where it was cut out and how it was
// mirrored.
TEST(VolumeReader, CropsAndMirrorsVolumeAndLabelsTheSameWay) {
  VolumeCase test(1, {1, 6, 7, 8});
  std::vector<float> places, labels;
  for (int i = 0; i < 6 * 7 * 8; ++i) {
    places.push_back(static_cast<float>(i));
    labels.push_back(static_cast<float>(i % 251));
  }
  write_bytes(test.folder / "volume 0.nii", nifti({.extents = {1, 6, 7, 8}}, places));
  write_bytes(test.folder / "labels0.nii",
              nifti({.extents = {1, 6, 7, 8}, .element = Element::uint8}, labels));
  test.source.volumes = {.crop = {3, 4, 5}, .mirror = "dw"};
  auto reader = open_reader(test.source, test.options);
  std::set<int> corners, steps_of_d, steps_of_h, steps_of_w;
  for (int b = 0; b < 60; ++b) {
    const Batch batch = reader->next();
    for (int n = 0; n < 2; ++n) {
      const float* sample = batch.tensors[0] + n * 60;
      const int first = static_cast<int>(sample[0]), d = static_cast<int>(sample[20]) - first,
                h = static_cast<int>(sample[5]) - first, w = static_cast<int>(sample[1]) - first;
      for (int i = 0; i < 60; ++i) {
        ASSERT_EQ(sample[i], first + i / 20 * d + i / 5 % 4 * h + i % 5 * w);
        ASSERT_EQ(batch.tensors[1][n * 60 + i], static_cast<int>(sample[i]) % 251);
      }
      corners.insert(first);
      steps_of_d.insert(d), steps_of_h.insert(h), steps_of_w.insert(w);
    }
  }
  EXPECT_GT(corners.size(), 40u);
  EXPECT_EQ(steps_of_d, (std::set<int>{-56, 56}));
  EXPECT_EQ(steps_of_h, (std::set<int>{8}));
  EXPECT_EQ(steps_of_w, (std::set<int>{-1, 1}));
  test.options.phase = Phase::test;
  EXPECT_EQ(open_reader(test.source, test.options)->next().tensors[0][0], (1 * 7 + 1) * 8 + 1);
}

TEST(VolumeReader, ShufflesEveryEpoch) {
  VolumeCase test(5, {1, 1, 1, 2});
  test.source.batch_size = 5;
  test.source.shuffle = true;
  auto reader = open_reader(test.source, test.options);
  std::set<std::vector<float>> orders;
  for (int epoch = 0; epoch < 6; ++epoch) {
    const Batch batch = reader->next();
    orders.insert(std::vector<float>(batch.tensors[0], batch.tensors[0] + 10));
  }
  EXPECT_GT(orders.size(), 3u);
  EXPECT_EQ(reader->records(), 5);
}

TEST(VolumeReader, SaysWhatIsWrongWithTheList) {
  VolumeCase test(1, {1, 2, 2, 2});
  test.source.source = test.folder / "none";
  EXPECT_EQ(test.error(),
            fmt::format("cannot open the list of volumes {}; check `source`", test.folder / "none"));
  test.source.source = test.folder / "list";
  write_bytes(test.folder / "list", "\n \n");
  EXPECT_EQ(test.error(), fmt::format("the list of volumes {} is empty", test.folder / "list"));
  write_bytes(test.folder / "list", "alone.nii\n");
  EXPECT_EQ(test.error(), fmt::format("{}:1: expected \"VOLUME LABELS\", two paths, found \"alone.nii\"",
                                      test.folder / "list"));
  write_bytes(test.folder / "list", "there.nii absent.nii\n");
  EXPECT_NE(test.error().find("there.nii: No such file"), std::string::npos) << test.error();
  std::filesystem::create_directory(test.folder / "there.nii");
  EXPECT_NE(test.error().find("there.nii is no file"), std::string::npos) << test.error();
}

TEST(VolumeReader, SaysWhichVolumesDoNotFit) {
  VolumeCase test(2, {1, 4, 4, 4});
  test.add(1, {1, 4, 4, 5});
  EXPECT_NE(test.error().find("list line 2: "), std::string::npos) << test.error();
  EXPECT_NE(
      test.error().find("volume 1.nii is 1x4x4x5 (channels, depth, height, width) where 1x4x4x4 is needed"),
      std::string::npos)
      << test.error();
  test.source.volumes.crop = {4, 4, 4};
  EXPECT_EQ(test.error(), "");
  test.source.volumes.crop = {4, 5, 4};
  EXPECT_NE(test.error().find("where at least 1x4x5x4 is needed"), std::string::npos) << test.error();
  test.source.volumes.crop = {};
  test.add(1, {2, 4, 4, 4});
  EXPECT_NE(test.error().find("volume 1.nii is 2x4x4x4"), std::string::npos) << test.error();
  test.add(1, {1, 4, 4, 4});
  write_bytes(test.folder / "labels1.nii",
              nifti({.extents = {1, 4, 4, 2}, .element = Element::uint8}, std::vector<float>(32)));
  EXPECT_NE(test.error().find("labels1.nii is 1x4x4x2"), std::string::npos) << test.error();
  test.source.volumes.crop = {2, 2, 2};
  EXPECT_NE(test.error().find("labels1.nii are 1x4x4x2"), std::string::npos) << test.error();
  test.source.volumes.crop = {};
  test.add(1, {1, 4, 4, 4});
  test.source.transform.mean_values = {1, 2};
  EXPECT_NE(test.error().find("2 mean_value fields for volumes of 1 channels"), std::string::npos);
}

TEST(VolumeReader, NamesASampleThatIsNotFinite) {
  VolumeCase test(1, {1, 2, 2, 2});
  std::vector<float> values(8);
  values[5] = std::numeric_limits<float>::infinity();
  write_bytes(test.folder / "volume 0.nii", nifti({.extents = {1, 2, 2, 2}}, values));
  EXPECT_NE(test.error().find("list line 1: sample 0 of the batch has the value inf"), std::string::npos)
      << test.error();
}

// What changes of a good header, and what the error says of it.
struct Hostile {
  std::string name;
  std::function<void(std::string& bytes)> change;
  std::string said;
};

TEST(VolumeFiles, HostileHeadersAreOneClearError) {
  const NiftiFile good{.extents = {2, 3, 4, 5}, .element = Element::int16};
  const std::vector<Hostile> cases{
      {"empty", [](auto& b) { b.clear(); }, "it has 0 bytes, fewer than a NIfTI header"},
      {"short header", [](auto& b) { b.resize(347); }, "it has 347 bytes, fewer than a NIfTI header"},
      {"truncated", [](auto& b) { b.pop_back(); }, "more values than the 119 for which it has bytes"},
      {"nothing but a header", [](auto& b) { b.resize(352); }, "more values than the 0"},
      {"header alone", [](auto& b) { b.resize(348); }, "its values begin at byte 352 of 348"},
      {"compressed", [](auto& b) { b[0] = '\x1f', b[1] = '\x8b'; }, "it is compressed"},
      {"NIfTI-2", [](auto& b) { put_number<int32_t>(b, 0, 540); }, "it is of format NIfTI-2"},
      {"no size of the header", [](auto& b) { put_number<int32_t>(b, 0, 349); }, "it is no NIfTI file"},
      {"no magic", [](auto& b) { b[345] = 'x'; }, "its header does not end in n+1"},
      {"pair of files", [](auto& b) { std::memcpy(&b[344], "ni1", 4); }, "in a file of their own (.img)"},
      {"no axes", [](auto& b) { put_number<int16_t>(b, 40, 0); }, "its header has 0 axes"},
      {"many axes", [](auto& b) { put_number<int16_t>(b, 40, 8); }, "its header has 8 axes"},
      {"negative extent", [](auto& b) { put_number<int16_t>(b, 44, -4); }, "extent 2 of its header is -4"},
      {"extent 0", [](auto& b) { put_number<int16_t>(b, 48, 0); }, "extent 4 of its header is 0"},
      {"extents that overflow",
       [](auto& b) {
         put_number<int16_t>(b, 40, 7);
         for (size_t i = 1; i < 8; ++i) put_number<int16_t>(b, 40 + 2 * i, 32767);
       },
       "more values than the 120 for which it has bytes"},
      {"one more row", [](auto& b) { put_number<int16_t>(b, 44, 5); }, "more values than the 120"},
      {"doubles", [](auto& b) { put_number<int16_t>(b, 70, 64), put_number<int16_t>(b, 72, 64); },
       "its values are of type 64 of 64 bits; convert them"},
      {"no type", [](auto& b) { put_number<int16_t>(b, 70, -1); }, "its values are of type -1"},
      {"bits of another type", [](auto& b) { put_number<int16_t>(b, 72, 32); }, "of type 4, but of 32 bits"},
      {"offset in the header", [](auto& b) { put_number(b, 108, 100.0f); },
       "its values begin at byte 100 of 592"},
      {"negative offset", [](auto& b) { put_number(b, 108, -352.0f); }, "its values begin at byte -352"},
      {"offset beyond the file", [](auto& b) { put_number(b, 108, 1e30f); }, "its values begin at byte 1"},
      {"offset of half a byte", [](auto& b) { put_number(b, 108, 352.5f); },
       "its values begin at byte 352.5"},
      {"offset that is no number", [](auto& b) { put_number(b, 108, NAN); }, "its values begin at byte nan"},
      {"infinite intercept", [](auto& b) { put_number(b, 112, 1.0f), put_number(b, 116, INFINITY); },
       "are scaled by 1 and inf"},
  };
  ScratchFolder folder;
  for (const Hostile& hostile : cases) {
    std::string bytes = nifti(good, std::vector<float>(120));
    hostile.change(bytes);
    const std::string path = folder / "hostile.nii";
    write_bytes(path, bytes);
    const std::string said = error_of([&] { VolumeFile(path, {}); });
    EXPECT_TRUE(said.starts_with(path + ": ")) << hostile.name << ": " << said;
    EXPECT_NE(said.find(hostile.said), std::string::npos) << hostile.name << ": " << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << hostile.name;
  }
}

// Whatever the bytes, a layout's values lie within the file.
TEST(VolumeFiles, ChangedBytesOfHeadersGiveErrorsOrValuesWithinTheFile) {
  std::mt19937 random(9);
  int64_t read = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const NiftiFile good{.extents = {2, 3, 4, 5}, .element = elements[i % 3], .big_endian = i % 2 == 1};
    std::string header = good.header();
    for (int changes = 1 + i % 4; changes > 0; --changes) {
      static constexpr size_t fields[] = {0, 40, 42, 44, 46, 48, 50, 70, 72, 108, 110, 112, 344};
      header[fields[random() % std::size(fields)] + random() % 2] = static_cast<char>(random());
    }
    const auto file_bytes = static_cast<int64_t>(random() % 2000);
    try {
      const VolumeLayout layout = nifti_layout(header, file_bytes);
      ASSERT_LE(layout.offset + layout.extents.size() * bytes_of(layout.element), file_bytes);
      ++read;
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 100);
}

TEST(VolumeFiles, RawFilesAreOneVolume) {
  ScratchFolder folder;
  write_bytes(folder / "a.raw", std::string(2 * 24 + 7, '\0'));
  const auto error = [&](const VolumeFile::Raw& raw) {
    return error_of([&] { VolumeFile(folder / "a.raw", raw); });
  };
  EXPECT_EQ(error({{1, 2, 3, 4}, Element::int16, 7}), "");
  for (const VolumeFile::Raw& raw :
       std::vector<VolumeFile::Raw>{{{1, 2, 3, 4}, Element::int16, 6},
                                    {{1, 2, 3, 4}, Element::int16, 56},
                                    {{1, 2, 3, 4}, Element::int16, std::numeric_limits<int64_t>::max()},
                                    {{1, 2, 3, 4}, Element::float32, 7},
                                    {{1, 2, 3, 5}, Element::int16, 7},
                                    {{1, 2, 3, 3}, Element::int16, 7},
                                    {{4294967295, 4294967295, 4294967295, 4294967295}, Element::int16, 7}})
    EXPECT_NE(error(raw).find("a.raw: it has 55 bytes, which are not one volume of"), std::string::npos)
        << error(raw);
  EXPECT_NE(error_of([&] { VolumeFile(folder / "a.raw", {}); }).find("give raw_shape"), std::string::npos);
}

}  // namespace
}  // namespace cortado
