#include "cortado/data/reader.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "cortado/data/datum.h"
#include "cortado/data/image_codecs.h"
#include "cortado/data/lmdb.h"
#include "cortado/data/memory_reader.h"
#include "cortado/data/open_reader.h"

#include "tests/data/support.h"

namespace cortado {
namespace {

// `count` raw 3x8x8 images, label i; those in `broken` hold no Datum.
void write_images(const std::string& path, int count, const std::set<int>& broken = {}) {
  LmdbWriter writer(path, false);
  for (int i = 0; i < count; ++i)
    writer.put(fmt::format("{:08}_image", i), broken.contains(i)
                                                  ? "\xFF\xFF broken"
                                                  : raw_datum(pattern(8, 8, 3, i), i).SerializeAsString());
  writer.finish();
}

SourceOptions database(const std::string& path, int batch) {
  SourceOptions source;
  source.source = path;
  source.batch_size = batch;
  return source;
}

ReaderOptions options(int threads = 1, int tops = 2) {
  ReaderOptions options;
  options.seed = 11;
  options.layer_name = "data";
  options.threads = threads;
  options.tops = tops;
  return options;
}

// All values of the next `batches` batches.
std::vector<float> values(Reader& reader, int batches) {
  std::vector<float> all;
  for (int b = 0; b < batches; ++b) {
    Batch batch = reader.next();
    auto shapes = reader.shapes();
    for (size_t t = 0; t < shapes.size(); ++t)
      all.insert(all.end(), batch.tensors[t], batch.tensors[t] + shapes[t].size());
  }
  return all;
}

std::vector<int> labels(Reader& reader, int batches) {
  std::vector<int> all;
  for (int b = 0; b < batches; ++b) {
    Batch batch = reader.next();
    all.insert(all.end(), batch.tensors[1], batch.tensors[1] + reader.shapes()[1].size());
  }
  return all;
}

TEST(DataReader, ShapesValuesAndWrapAround) {
  ScratchFolder folder;
  write_images(folder / "db", 5);
  auto reader = open_reader(database(folder / "db", 3), options());
  EXPECT_EQ(reader->shapes(), (std::vector<Shape>{{3, 3, 8, 8}, {3}}));
  for (int b = 0; b < 5; ++b) {
    Batch batch = reader->next();
    EXPECT_EQ(batch.first_sample, 3 * b);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(batch.tensors[0]) % 64, 0u);
    for (int i = 0; i < 3; ++i) {
      int record = (3 * b + i) % 5;
      EXPECT_EQ(batch.tensors[1][i], record);
      Image image = pattern(8, 8, 3, record);
      EXPECT_TRUE(std::equal(image.pixels.begin(), image.pixels.end(), batch.tensors[0] + i * 192));
    }
  }
}

TEST(DataReader, ShufflesEachEpochAndGoesOnAnywhere) {
  ScratchFolder folder;
  write_images(folder / "db", 10);
  SourceOptions source = database(folder / "db", 5);
  source.shuffle = true;
  auto reader = open_reader(source, options(3));
  const auto first = labels(*reader, 2), second = labels(*reader, 2);
  EXPECT_NE(first, second);
  for (const auto* epoch : {&first, &second}) {
    EXPECT_FALSE(std::is_sorted(epoch->begin(), epoch->end()));
    EXPECT_EQ(std::set<int>(epoch->begin(), epoch->end()).size(), 10u);
  }
  auto later = open_reader(source, options(1));
  later->seek(10);
  EXPECT_EQ(labels(*later, 2), second);
}

TEST(DataReader, ABatchIsSeenBeforeItIsTaken) {
  ScratchFolder folder;
  write_images(folder / "db", 10);
  auto reader = open_reader(database(folder / "db", 3), options(2));
  EXPECT_FALSE(reader->peek());  // nothing is read before it is asked for
  reader->next();
  for (int64_t sample : {3, 9}) {
    std::optional<Batch> seen;
    while (!seen) seen = reader->peek();
    EXPECT_EQ(seen->first_sample, sample);
    EXPECT_EQ(seen->tensors[1][0], sample);
    const Batch taken = reader->next();
    EXPECT_EQ(taken.tensors, seen->tensors);
    EXPECT_EQ(taken.first_sample, sample);
    reader->seek(9);
  }
}

TEST(DataReader, ThreadsChangeNothing) {
  ScratchFolder folder;
  write_images(folder / "db", 50, {4, 5, 31});
  SourceOptions source = database(folder / "db", 16);
  source.skip_corrupt = true;
  source.transform = {.mirror = true, .crop_size = 5, .brightness = 0.3, .contrast = 0.3, .mixup_alpha = 0.5};
  auto one = open_reader(source, options(1, 4)), three = open_reader(source, options(3, 4));
  auto expected = values(*one, 12);
  EXPECT_EQ(values(*three, 12), expected);
  EXPECT_EQ(three->skipped().size(), 3u);
  three->seek(16 * 5);
  const size_t batch = expected.size() / 12;
  EXPECT_EQ(values(*three, 7), std::vector<float>(expected.begin() + 5 * batch, expected.end()));
}

TEST(DataReader, BrokenRecordIsFatalOrReplacedByTheNext) {
  ScratchFolder folder;
  write_images(folder / "db", 6, {2, 3});
  SourceOptions source = database(folder / "db", 6);
  auto strict = open_reader(source, options(2));
  EXPECT_EQ(
      error_of([&] { strict->next(); }),
      fmt::format(
          "{} key '00000002_image': not a Datum; repair or remove it, or set skip_corrupt to leave such "
          "records out",
          folder / "db"));
  source.skip_corrupt = true;
  auto lenient = open_reader(source, options(2));
  EXPECT_EQ(labels(*lenient, 1), (std::vector<int>{0, 1, 4, 4, 4, 5}));
  EXPECT_EQ(lenient->skipped().size(), 2u);
}

TEST(DataReader, WrongInputIsRefused) {
  ScratchFolder folder;
  write_images(folder / "db", 3);
  SourceOptions source = database(folder / "db", 2);
  source.leveldb = true;
  EXPECT_NE(error_of([&] { open_reader(source, options()); }).find("set backend: LMDB"), std::string::npos);
  source.leveldb = false;
  source.transform.mixup_alpha = 0.2;
  EXPECT_EQ(error_of([&] { open_reader(source, options()); }),
            "mixup_alpha needs four tops: data, label, the partner's label and lambda; there are 2");
  source = database(folder / "db", 0);
  EXPECT_EQ(error_of([&] { open_reader(source, options()); }), "batch_size is 0; it must be at least 1");
}

TEST(DataReader, ClosesWhileThreadsWork) {
  ScratchFolder folder;
  write_images(folder / "db", 20);
  for (int i = 0; i < 20; ++i) {
    auto reader = open_reader(database(folder / "db", 8), options(4));
    if (i % 2) reader->next();
    if (i % 3 == 0) reader->seek(5);
  }
}

// Ten PNG files and a list of them.
SourceOptions image_list(const ScratchFolder& folder) {
  std::string list;
  for (int i = 0; i < 10; ++i) {
    auto file = encode_image(pattern(6, 8, 3, i), "png");
    write_bytes(folder / fmt::format("image {}.png", i), {reinterpret_cast<char*>(file.data()), file.size()});
    list += fmt::format("image {}.png {}\n", i, i);
  }
  write_bytes(folder / "list.txt", list);
  SourceOptions source = database(folder / "list.txt", 5);
  source.kind = SourceOptions::Kind::image_data;
  source.root_folder = folder / "";
  return source;
}

TEST(ImageDataReader, ReadsResizesAndShufflesEachEpoch) {
  ScratchFolder folder;
  SourceOptions source = image_list(folder);
  EXPECT_EQ(labels(*open_reader(source, options()), 2), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  source.shuffle = true;
  source.new_height = source.new_width = 4;
  source.is_color = false;
  auto reader = open_reader(source, options(3));
  EXPECT_EQ(reader->shapes()[0], (Shape{5, 1, 4, 4}));
  auto first = labels(*reader, 2), second = labels(*reader, 2);
  EXPECT_NE(first, second);
  for (auto* epoch : {&first, &second}) {
    EXPECT_FALSE(std::is_sorted(epoch->begin(), epoch->end()));
    EXPECT_EQ(std::set<int>(epoch->begin(), epoch->end()).size(), 10u);
  }
}

TEST(ImageDataReader, NamesWhatIsWrong) {
  ScratchFolder folder;
  SourceOptions source = image_list(folder);
  std::filesystem::remove(folder / "image 7.png");
  auto reader = open_reader(source, options());
  reader->next();
  EXPECT_NE(error_of([&] { reader->next(); }).find("image 7.png (image 8 of"), std::string::npos);
  write_bytes(folder / "list.txt", "a.png 1\nb.png two\n");
  EXPECT_NE(error_of([&] { open_reader(source, options()); }).find("list.txt:2: expected \"PATH LABEL\""),
            std::string::npos);
}

TEST(MemoryReaders, GiveWhatIsSet) {
  SourceOptions source;
  source.kind = SourceOptions::Kind::memory_data;
  source.batch_size = 2;
  source.shapes = {{1, 1, 3}};
  MemoryReader memory(source, options());
  EXPECT_EQ(values(memory, 1), std::vector<float>(8, 0.0f));
  std::vector<float> data(12), classes{1, 2, 3, 4};
  for (int i = 0; i < 12; ++i) data[i] = static_cast<float>(i);
  memory.set(data, classes);
  EXPECT_EQ(labels(memory, 3), (std::vector<int>{1, 2, 3, 4, 1, 2}));
  EXPECT_NE(error_of([&] { memory.set(data, std::span(classes).first(3)); }), "");

  source.kind = SourceOptions::Kind::input;
  source.shapes = {{2, 2}};
  InputReader input(source, options(1, 1));
  input.values(0)[3] = 5;
  EXPECT_EQ(values(input, 1), (std::vector<float>{0, 0, 0, 5}));
}

TEST(DummyReader, FillsAndSeeks) {
  SourceOptions source;
  source.kind = SourceOptions::Kind::dummy_data;
  source.shapes = {{4, 3}, {4}};
  source.fillers = {{.type = Filler::Type::uniform, .min = 2, .max = 3}, {.value = 7}};
  auto reader = open_reader(source, options());
  auto first = values(*reader, 1), second = values(*reader, 1);
  EXPECT_NE(first, second);
  EXPECT_TRUE(std::all_of(first.begin(), first.begin() + 12, [](float v) { return v >= 2 && v < 3; }));
  EXPECT_TRUE(std::all_of(first.begin() + 12, first.end(), [](float v) { return v == 7; }));
  reader->seek(4);
  EXPECT_EQ(values(*reader, 1), second);
}

}  // namespace
}  // namespace cortado
