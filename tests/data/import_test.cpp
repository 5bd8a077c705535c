#include "cortado/data/import.h"

#include <cstdlib>
#include <fmt/format.h>

#include "cortado/data/datum.h"
#include "cortado/data/image_codecs.h"
#include "cortado/data/lmdb.h"

#include "tests/data/support.h"

namespace cortado {
namespace {

caffe::Datum datum_at(LmdbReader& reader, int64_t index) {
  caffe::Datum datum;
  parse_datum(reader.at(index).value, datum);
  return datum;
}

TEST(Import, ImagesRawAndEncoded) {
  ScratchFolder folder;
  const std::vector<ListedImage> list{{"rgb.png", 4}, {"orientation6.jpg", 9}};
  const std::string root = test_image("");
  EXPECT_EQ(import_images(root, list, folder / "raw", {.resize_height = 6, .resize_width = 10}), 2);
  LmdbReader raw(folder / "raw");
  EXPECT_EQ(raw.at(1).key, "00000001_orientation6.jpg");
  EXPECT_EQ(datum_at(raw, 0).data(),
            raw_datum(decode_image(read_bytes(test_image("rgb.png")), ColorMode::color), 4).data());
  EXPECT_EQ(datum_at(raw, 1).label(), 9);
  EXPECT_EQ(datum_at(raw, 1).width(), 10);

  EXPECT_EQ(import_images(root, list, folder / "encoded", {.encoded = true}), 2);
  LmdbReader encoded(folder / "encoded");
  auto file = read_bytes(test_image("rgb.png"));
  EXPECT_TRUE(datum_at(encoded, 0).encoded());
  EXPECT_EQ(datum_at(encoded, 0).data(), std::string(file.begin(), file.end()))
      << "a file that fits stays as it is";

  EXPECT_NE(error_of([&] {
              import_images(root, list, folder / "sized", {.check_size = true});
            }).find("--check-size"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "sized"));
  const std::vector<ListedImage> broken{{"rgb.png", 0}, {"expected.txt", 1}};
  EXPECT_NE(
      error_of([&] { import_images(root, broken, folder / "broken", {}); }).find("expected.txt: neither"),
      std::string::npos);
  std::vector<std::string> notices;
  ImportOptions lenient{.skip_corrupt = true,
                        .notice = [&](const std::string& line) { notices.push_back(line); }};
  EXPECT_EQ(import_images(root, broken, folder / "skipped", lenient), 1);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("warning: skipped "), std::string::npos) << notices[0];
  EXPECT_NE(notices[0].find("expected.txt: neither"), std::string::npos) << notices[0];
}

TEST(Import, Folders) {
  ScratchFolder folder;
  for (const char* name : {"images/b", "images/a"}) std::filesystem::create_directories(folder / name);
  std::filesystem::copy(test_image("rgb.png"), folder / "images/b/1.png");
  std::filesystem::copy(test_image("gray.png"), folder / "images/a/2.png");
  EXPECT_EQ(import_folders(folder / "images", folder / "db", {}), 2);
  auto lines = read_bytes(folder / "db/list.txt"), names = read_bytes(folder / "db/labels.txt");
  EXPECT_EQ(std::string(lines.begin(), lines.end()), "a/2.png 0\nb/1.png 1\n");
  EXPECT_EQ(std::string(names.begin(), names.end()), "a\nb\n");
}

TEST(Import, CifarAndMnist) {
  ScratchFolder folder;
  auto record = [](int label) {
    std::string bytes(3073, '\0');
    for (int i = 0; i < 3073; ++i) bytes[i] = static_cast<char>(i + label);
    bytes[0] = static_cast<char>(label);
    return bytes;
  };
  for (int i = 1; i <= 5; ++i)
    write_bytes(folder / fmt::format("data_batch_{}.bin", i), record(i) + record(9 - i));
  write_bytes(folder / "test_batch.bin", record(3));
  EXPECT_EQ(import_cifar(folder / "", folder / "out", {}), 11);
  LmdbReader train(folder / "out/cifar10_train_lmdb");
  ASSERT_EQ(train.size(), 10);
  EXPECT_EQ(datum_at(train, 3).label(), 7);
  EXPECT_EQ(datum_at(train, 3).data(), record(7).substr(1));
  write_bytes(folder / "test_batch.bin", record(3).substr(1));
  EXPECT_NE(
      error_of([&] { import_cifar(folder / "", folder / "out2", {}); }).find("not a whole number of records"),
      std::string::npos);

  write_bytes(folder / "test_batch.bin", record(3) + record(255));
  EXPECT_NE(error_of([&] {
              import_cifar(folder / "", folder / "out3", {});
            }).find("test_batch.bin: record 1 has label 255; labels of CIFAR-10 are 0 to 9"),
            std::string::npos);

  const std::string two("\0\0\0\2", 4), side("\0\0\0\3", 4);
  std::string pixels = std::string("\0\0\x08\x03", 4) + two + side + side;
  for (int i = 0; i < 18; ++i) pixels += static_cast<char>(10 * i);
  write_bytes(folder / "images", pixels);
  write_bytes(folder / "labels", std::string("\0\0\x08\x01", 4) + two + "\5\6");
  EXPECT_EQ(import_mnist(folder / "images", folder / "labels", folder / "mnist", {}), 2);
  LmdbReader mnist(folder / "mnist");
  EXPECT_EQ(datum_at(mnist, 1).label(), 6);
  EXPECT_EQ(datum_at(mnist, 1).data(), pixels.substr(16 + 9));
  write_bytes(folder / "images", pixels.substr(0, 30));
  EXPECT_NE(error_of([&] {
              import_mnist(folder / "images", folder / "labels", folder / "m2", {});
            }).find("truncated"),
            std::string::npos);
}

TEST(Import, MeanOfADatabase) {
  ScratchFolder folder;
  {
    LmdbWriter writer(folder / "db", false);
    for (int i = 0; i < 4; ++i)
      writer.put(std::to_string(i), raw_datum(pattern(2, 3, 3, i), 0).SerializeAsString());
    writer.finish();
  }
  MeanImage mean = compute_mean(folder / "db", {});
  write_mean(folder / "mean", mean);
  MeanImage read = read_mean(folder / "mean");
  ASSERT_EQ(read.values.size(), 18u);
  for (int k = 0; k < 18; ++k) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += pattern(2, 3, 3, i).pixels[k];
    EXPECT_FLOAT_EQ(read.values[k], static_cast<float>(sum / 4));
  }
}

TEST(Shapes, AreDeterministicBalancedAndDistinct) {
  ShapesOptions options{.seed = 3};
  std::vector<int> count(10);
  for (int i = 0; i < 50; ++i) {
    LabelledImage a = draw_shape(options, i), b = draw_shape(options, i);
    EXPECT_EQ(a.image, b.image);
    ++count[a.label];
    EXPECT_NE(a.image, draw_shape({.seed = 4}, i).image);
  }
  EXPECT_EQ(count, std::vector<int>(10, 5));
  EXPECT_EQ(error_of([] { check_shapes_options({.classes = 13}); }),
            "13 classes of shapes are not available; choose 2 to 12");
}

// Real photographs, unpacked with tar.
TEST(Import, Photographs) {
  const std::string data = real_data();
  if (data.empty()) GTEST_SKIP() << "photos-50.tar is not there; name its folder in CORTADO_DATA";
  ScratchFolder folder;
  std::filesystem::create_directories(folder / "photos/all");
  ASSERT_EQ(std::system(fmt::format("tar xf {}/photos-50.tar -C {}", data, folder / "photos/all").c_str()),
            0);
  EXPECT_EQ(import_folders(folder / "photos", folder / "db",
                           {.resize_height = 64, .resize_width = 64, .encode_type = "jpg"}),
            50);
  MeanImage mean = compute_mean(folder / "db", {});
  for (float value : mean.values) EXPECT_TRUE(value > 60 && value < 180) << value;
}

}  // namespace
}  // namespace cortado
