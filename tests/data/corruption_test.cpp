// Every kind of file that samples come from, with wrong bytes: each is read, or refused by a UserError.
#include "tests/data/corruption.h"

#include <fmt/format.h>
#include <hdf5.h>

#include "cortado/data/datum.h"
#include "cortado/data/image_codecs.h"
#include "cortado/data/import.h"
#include "cortado/data/open_reader.h"
#include "cortado/data/reader.h"

#include "tests/data/support.h"

namespace cortado {
namespace {

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

void expect_images_survive(const std::vector<std::string>& names, int cases) {
  std::vector<std::string> files;
  for (const std::string& name : names) files.push_back(read_text_file(test_image(name)));
  const int kinds = static_cast<int>(files.size());
  expect_all_survive(cases * kinds, [&](int which) {
    const std::string file = corrupted(files[which % kinds], which, 256);
    decode_image(bytes_of(file), static_cast<ColorMode>(which / kinds % 3));
  });
}

TEST(Corruption, Jpeg) {
  expect_images_survive({"cmyk.jpg", "gray.jpg", "orientation6.jpg", "progressive.jpg", "subsampled.jpg"},
                        200);
}

TEST(Corruption, Png) {
  expect_images_survive({"gray.png", "gray16.png", "gray_alpha.png", "palette.png", "rgb.png", "rgba.png"},
                        200);
}

std::string big_endian(uint32_t number) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(number >> shift);
  return text;
}

std::string png_header(uint32_t width, uint32_t height) {
  const std::string header = "IHDR" + big_endian(width) + big_endian(height) + std::string("\x8\x2\0\0\0", 5);
  uint32_t rest = ~0U;  // the polynomial division of PNG's specification, annex D
  for (const char byte : header)
    for (int bit = 0; bit < 8; ++bit)
      rest = rest >> 1 ^ ((rest ^ static_cast<uint8_t>(byte) >> bit) & 1 ? 0xEDB88320U : 0);
  return "\x89PNG\r\n\x1a\n" + big_endian(13) + header + big_endian(~rest) + big_endian(9) + "IDAT";
}

// A few bytes that announce more than a machine holds: 3 GiB and, in a PNG, a row of as much.
TEST(Corruption, AnnouncedSizesTakeNoMemory) {
  std::string jpeg = read_text_file(test_image("progressive.jpg"));
  const size_t frame = jpeg.find("\xFF\xC2");
  jpeg.replace(frame + 5, 4, big_endian(60000u << 16 | 60000u));
  const std::vector<std::string> files{jpeg, png_header(60000, 60000), png_header(0x7FFFFFFF, 1)};
  expect_all_survive(static_cast<int>(files.size()), [&](int which) {
    const std::string error = error_of([&] { decode_image(bytes_of(files[which]), ColorMode::native); });
    const char* expected = which < 2 ? "of 60000x60000 pixels is larger than supported" : "corrupt PNG";
    if (error.find(expected) == std::string::npos) throw std::runtime_error(error);
  });
}

// Sizes that a machine holds, but the file cannot: told by its bytes, before there is memory for the pixels.
TEST(Corruption, AnnouncedSizesAreThoseOfTheFile) {
  std::string jpeg = read_text_file(test_image("progressive.jpg"));
  const size_t frame = jpeg.find("\xFF\xC2");
  jpeg.replace(frame + 5, 4, big_endian(9000u << 16 | 9000u));
  for (const std::string& file : {jpeg, png_header(9000, 9000)}) {
    const std::string error = error_of([&] { decode_image(bytes_of(file), ColorMode::native); });
    EXPECT_NE(error.find(fmt::format("9000x9000 pixels cannot be in {} bytes", file.size())),
              std::string::npos)
        << error;
  }
}

// The densest that there is: black, at which a bit stands for a block, and 1032 bytes for one.
TEST(Corruption, BlankImagesAreDenseAndSound) {
  const Image blank(1500, 1500, 1);
  for (const char* format : {"png", "jpg"}) {
    const std::vector<uint8_t> file = encode_image(blank, format);
    EXPECT_EQ(decode_image(file, ColorMode::native).pixels, blank.pixels) << format << " " << file.size();
  }
}

TEST(Corruption, Datum) {
  caffe::Datum raw = raw_datum(pattern(7, 5, 3), 2), floats = raw;
  for (unsigned char byte : raw.data()) floats.add_float_data(byte);
  floats.clear_data();
  const std::vector<std::string> files{raw.SerializeAsString(), floats.SerializeAsString()};
  expect_all_survive(1000, [&](int which) {
    caffe::Datum datum;
    DatumPixels pixels;
    const std::string file = corrupted(files[which % 2], which, 32);
    parse_datum(bytes_of(file), datum);
    datum_pixels(datum, ColorMode::native, pixels);
    const PixelView& view = pixels.view;
    const int64_t last = int64_t{view.channels} * view.height * view.width - 1;
    volatile float value = view.bytes ? view.bytes[last] : view.floats[last];
    static_cast<void>(value);
  });
}

TEST(Corruption, Mean) {
  ScratchFolder folder;
  MeanImage mean{3, 6, 5, std::vector<float>(90, 1.5F)};
  write_mean(folder / "mean", mean);
  const std::string file = read_text_file(folder / "mean");
  expect_all_survive(300, [&](int which) {
    write_bytes(folder / "corrupt", corrupted(file, which, 16));
    read_mean(folder / "corrupt");
  });
}

std::string idx(uint8_t magic, const std::vector<uint8_t>& extents, size_t values) {
  std::string file{0, 0, 8, static_cast<char>(magic)};
  for (uint8_t extent : extents) file += {0, 0, 0, static_cast<char>(extent)};
  return file + std::string(values, '\3');
}

TEST(Corruption, Idx) {
  ScratchFolder folder;
  const std::string images = idx(3, {6, 5, 4}, 120), labels = idx(1, {6}, 6);
  expect_all_survive(200, [&](int which) {
    write_bytes(folder / "images", which % 2 == 0 ? corrupted(images, which, 16) : images);
    write_bytes(folder / "labels", which % 2 == 0 ? labels : corrupted(labels, which, 8));
    import_mnist(folder / "images", folder / "labels", folder / "db", {.force = true});
  });
}

TEST(Corruption, Cifar) {
  ScratchFolder folder;
  std::string records;
  for (char label = 0; label < 3; ++label) records += std::string(3074, label);
  write_bytes(folder / "test.bin", records);
  expect_all_survive(100, [&](int which) {
    write_bytes(folder / "train.bin", corrupted(records, which, 3074));
    import_cifar(folder / "", folder / "out", {.force = true});
  });
}

// A dataset as HDF5's users write them: in one piece, or in compressed chunks.
void write_dataset(hid_t file, const char* name, std::vector<hsize_t> extents, bool chunked) {
  hsize_t count = 1;
  for (hsize_t extent : extents) count *= extent;
  std::vector<float> values(count, 0.25F);
  for (hsize_t i = 0; i < count; ++i) values[i] += static_cast<float>(i % 17);
  const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
  const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
  if (chunked) {
    std::vector<hsize_t> chunk = extents;
    chunk[0] = 2;
    H5Pset_chunk(how, static_cast<int>(chunk.size()), chunk.data());
    H5Pset_shuffle(how);
    H5Pset_deflate(how, 4);
  }
  const hid_t set = H5Dcreate2(file, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, how, H5P_DEFAULT);
  H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Dclose(set);
  H5Pclose(how);
  H5Sclose(space);
}

std::string hdf5_file(const std::string& path, bool chunked, bool newest) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (newest) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  write_dataset(file, "data", {9, 3, 4, 5}, chunked);
  write_dataset(file, "label", {9}, chunked);
  H5Fclose(file);
  H5Pclose(access);
  return read_text_file(path);
}

TEST(Corruption, Hdf5) {
  ScratchFolder folder;
  std::vector<std::string> files;
  for (bool chunked : {false, true})
    for (bool newest : {false, true}) files.push_back(hdf5_file(folder / "whole.h5", chunked, newest));
  write_bytes(folder / "list", folder / "corrupt.h5\n");
  SourceOptions source;
  source.kind = SourceOptions::Kind::hdf5_data;
  source.source = folder / "list";
  source.batch_size = 9;
  ReaderOptions options;
  options.top_names = {"data", "label"};
  expect_all_survive(1500, [&](int which) {
    write_bytes(folder / "corrupt.h5", corrupted(files[which % 4], which, 128));
    open_reader(source, options)->next();
  });
}

}  // namespace
}  // namespace cortado
