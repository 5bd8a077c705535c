#include "cortado/data/import.h"

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <initializer_list>
#include <map>
#include <mutex>
#include <optional>

#include "cortado/base/parallel_for.h"
#include "cortado/base/text.h"
#include "cortado/data/datum.h"
#include "cortado/data/image_codecs.h"
#include "cortado/data/image_files.h"
#include "cortado/data/leveldb.h"
#include "cortado/data/lmdb.h"
#include "cortado/data/shuffle.h"

namespace cortado {

namespace fs = std::filesystem;

namespace {

struct NewRecord {
  std::string name;  // follows the number in the key; may be empty
  caffe::Datum datum;
};
// Makes record i; nothing when it is left out. Called from several threads.
using MakeRecord = std::function<std::optional<NewRecord>(int64_t)>;

// The options with more files and folders that are read; an empty name is none.
ImportOptions reading(ImportOptions options, std::initializer_list<std::string> inputs) {
  for (const std::string& input : inputs)
    if (!input.empty()) options.inputs.push_back(input);
  return options;
}

// Records are made in parallel, block by block, and written in order.
int64_t fill_database(LmdbWriter& writer, const std::string& path, int64_t count,
                      const ImportOptions& options, const MakeRecord& make) {
  constexpr int64_t block = 256;
  int64_t written = 0;
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t size = std::min(block, count - begin);
    std::vector<std::optional<NewRecord>> records(size);
    std::vector<std::exception_ptr> errors(size);
    parallel_for(size, [&](int64_t i) {
      try {
        records[i] = make(begin + i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
    for (int64_t i = 0; i < size; ++i) {
      if (errors[i]) std::rethrow_exception(errors[i]);
      if (!records[i]) continue;
      std::string key = fmt::format("{:08}", begin + i);
      if (!records[i]->name.empty()) key += "_" + records[i]->name;
      writer.put(key, records[i]->datum.SerializeAsString());
      ++written;
    }
    options.progress(begin + size, count);
  }
  if (written == 0) throw UserError(fmt::format("there is no record to write into {}", path));
  return written;
}

// `texts`: files that go with the database, by name.
int64_t write_database(const std::string& path, int64_t count, const ImportOptions& options,
                       const MakeRecord& make, const std::map<std::string, std::string>& texts = {}) {
  LmdbWriter writer(path, options.force, options.inputs);
  const int64_t written = fill_database(writer, path, count, options, make);
  for (const auto& [name, text] : texts) writer.add_file(name, text);
  writer.finish();
  return written;
}

NewRecord image_record(const std::string& path, const ListedImage& listed, const ImportOptions& options) {
  const std::vector<uint8_t> file = read_bytes(path);
  Image image = decode_image(file, options.gray ? ColorMode::gray : ColorMode::color);
  const int height = options.resize_height > 0 ? options.resize_height : image.height;
  const int width = options.resize_width > 0 ? options.resize_width : image.width;
  const bool resized = height != image.height || width != image.width;
  if (resized) image = resize(image, height, width);
  NewRecord record{listed.path, {}};
  if (!options.encoded && options.encode_type.empty()) {
    record.datum = raw_datum(image, listed.label);
    return record;
  }
  const std::string format = options.encode_type.empty() ? image_format_of(path) : options.encode_type;
  const bool as_it_is = !resized && !options.gray && format == image_format_of(path);
  const std::vector<uint8_t> bytes = as_it_is ? file : encode_image(image, format.empty() ? "jpg" : format);
  record.datum.set_encoded(true);
  record.datum.set_label(listed.label);
  record.datum.set_data(bytes.data(), bytes.size());
  record.datum.set_channels(image.channels);
  record.datum.set_height(image.height);
  record.datum.set_width(image.width);
  return record;
}

std::vector<uint8_t> read_input(const std::string& path) {
  try {
    return read_bytes(path);
  } catch (const BrokenRecord& error) {
    throw UserError(error.what());
  }
}

// A planar colour image in red, green, blue order as CIFAR stores it, in Caffe's Datum: planes stay as they
// are.
caffe::Datum planar_datum(const uint8_t* planes, int channels, int height, int width, int label) {
  caffe::Datum datum;
  datum.set_channels(channels);
  datum.set_height(height);
  datum.set_width(width);
  datum.set_label(label);
  datum.set_data(planes, size_t{1} * channels * height * width);
  return datum;
}

int64_t import_images_with(const std::map<std::string, std::string>& texts, const std::string& root,
                           std::vector<ListedImage> images, const std::string& database,
                           const ImportOptions& options) {
  if (!options.encode_type.empty() && options.encode_type != "jpg" && options.encode_type != "png")
    throw UserError(fmt::format("encode_type is '{}'; use jpg or png", options.encode_type));
  const auto count = static_cast<int64_t>(images.size());
  if (options.shuffle) {
    const RandomStream stream{options.seed, 0, RandomStream::owner_of("import")};
    std::vector<ListedImage> shuffled;
    for (int64_t i : shuffled_order(stream, 0, count)) shuffled.push_back(images[i]);
    images = std::move(shuffled);
  }
  std::mutex mutex;
  std::optional<std::array<int, 3>> expected;
  auto make = [&](int64_t i) -> std::optional<NewRecord> {
    const std::string path = root + images[i].path;
    try {
      NewRecord record = image_record(path, images[i], options);
      const std::array<int, 3> size{record.datum.channels(), record.datum.height(), record.datum.width()};
      std::lock_guard lock(mutex);
      if (!expected) expected = size;
      if (options.check_size && size != *expected)
        throw UserError(
            fmt::format("{} is {}x{}x{} (channels, height, width), others are {}x{}x{}; resize them with "
                        "--resize-height and --resize-width, or drop --check-size",
                        path, size[0], size[1], size[2], (*expected)[0], (*expected)[1], (*expected)[2]));
      return record;
    } catch (const BrokenRecord& error) {
      if (!options.skip_corrupt)
        throw UserError(fmt::format(
            "{}: {}; repair or remove it, or leave such images out with --skip-corrupt", path, error.what()));
      if (options.notice)
        options.notice("warning: skipped " + message_line(fmt::format("{}: {}", path, error.what())));
      return std::nullopt;
    }
  };
  return write_database(database, count, options, make, texts);
}

}  // namespace

int64_t import_images(const std::string& root, std::vector<ListedImage> images, const std::string& database,
                      const ImportOptions& options) {
  return import_images_with({}, root, std::move(images), database, reading(options, {root}));
}

int64_t import_folders(const std::string& folder, const std::string& database, const ImportOptions& options) {
  const std::vector<fs::path> classes = folders_in(folder);
  if (classes.empty())
    throw UserError(
        fmt::format("{} holds no class folders; expected {}/CLASS/*.jpg or *.png", folder, folder));
  std::vector<ListedImage> images;
  std::string names, lines;
  int label = 0;
  for (const fs::path& path : classes) {
    const std::string name = path.filename().string();
    names += name + '\n';
    for (const fs::path& file : image_files_in(path)) {
      images.push_back({name + "/" + file.filename().string(), label});
      lines += fmt::format("{} {}\n", images.back().path, label);
    }
    ++label;
  }
  return import_images_with({{DatabaseFolder::labels, names}, {DatabaseFolder::list, lines}}, folder + "/",
                            std::move(images), database, reading(options, {folder}));
}

namespace {

// Checks the labels of records of `record_bytes`, at byte `at` of each.
void check_labels(const std::string& path, std::span<const uint8_t> file, int64_t record_bytes, int64_t at,
                  int classes) {
  for (int64_t record = 0; record * record_bytes < std::ssize(file); ++record) {
    const int label = file[static_cast<size_t>(record * record_bytes + at)];
    if (label >= classes)
      throw UserError(fmt::format("{}: record {} has label {}; labels of CIFAR-{} are 0 to {}", path, record,
                                  label, classes, classes - 1));
  }
}

}  // namespace

int64_t import_cifar(const std::string& folder, const std::string& output, const ImportOptions& options) {
  constexpr int64_t image_bytes = 3 * 32 * 32;
  const bool hundred = fs::exists(fs::path(folder) / "train.bin");
  const int64_t label_bytes = hundred ? 2 : 1, record_bytes = label_bytes + image_bytes;
  const std::vector<std::string> training =
      hundred ? std::vector<std::string>{"train.bin"}
              : std::vector<std::string>{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                         "data_batch_4.bin", "data_batch_5.bin"};
  auto database_of = [&](const char* split) {
    return (fs::path(output) / fmt::format("cifar{}_{}_lmdb", hundred ? 100 : 10, split)).string();
  };
  auto fill = [&](LmdbWriter& writer, const std::string& database, const std::vector<std::string>& files) {
    std::vector<uint8_t> bytes;
    for (const std::string& name : files) {
      const std::string path = (fs::path(folder) / name).string();
      const std::vector<uint8_t> file = read_input(path);
      if (file.empty() || file.size() % record_bytes != 0)
        throw UserError(
            fmt::format("{} has {} bytes, not a whole number of records of {}; it is truncated or not a "
                        "CIFAR binary",
                        path, file.size(), record_bytes));
      check_labels(path, file, record_bytes, label_bytes - 1, hundred ? 100 : 10);
      bytes.insert(bytes.end(), file.begin(), file.end());
    }
    const int64_t count = static_cast<int64_t>(bytes.size()) / record_bytes;
    return fill_database(writer, database, count, options, [&](int64_t i) {
      const uint8_t* record = &bytes[i * record_bytes];
      return NewRecord{"", planar_datum(record + label_bytes, 3, 32, 32, record[label_bytes - 1])};
    });
  };
  const std::string train = database_of("train"), test = database_of("test");
  LmdbWriter train_writer(train, options.force, {folder}), test_writer(test, options.force, {folder});
  const int64_t written = fill(train_writer, train, training) +
                          fill(test_writer, test, {hundred ? "test.bin" : "test_batch.bin"});
  train_writer.finish();
  test_writer.finish();
  return written;
}

int64_t import_mnist(const std::string& images, const std::string& labels, const std::string& database,
                     const ImportOptions& options) {
  const std::vector<uint8_t> pixels = read_input(images), classes = read_input(labels);
  auto number = [](const std::vector<uint8_t>& file, size_t at) {
    return file.size() < at + 4
               ? int64_t{0}
               : int64_t{file[at]} << 24 | file[at + 1] << 16 | file[at + 2] << 8 | file[at + 3];
  };
  constexpr int64_t image_magic = 2051, label_magic = 2049;
  if (number(pixels, 0) != image_magic)
    throw UserError(fmt::format("{} is not an IDX file of images; unpack the .gz first", images));
  if (number(classes, 0) != label_magic)
    throw UserError(fmt::format("{} is not an IDX file of labels; unpack the .gz first", labels));
  const int64_t count = number(pixels, 4), height = number(pixels, 8), width = number(pixels, 12);
  if (number(classes, 4) != count)
    throw UserError(fmt::format("{} holds {} images, {} {} labels; take files that belong together", images,
                                count, labels, number(classes, 4)));
  if (height < 1 || width < 1 || height > 4096 || width > 4096 ||
      static_cast<int64_t>(pixels.size()) != 16 + count * height * width ||
      static_cast<int64_t>(classes.size()) != 8 + count)
    throw UserError(fmt::format("{} or {} is truncated: {} images of {}x{} are announced", images, labels,
                                count, height, width));
  return write_database(database, count, reading(options, {images, labels}), [&](int64_t i) {
    return NewRecord{"", planar_datum(&pixels[16 + i * height * width], 1, static_cast<int>(height),
                                      static_cast<int>(width), classes[8 + i])};
  });
}

int64_t import_leveldb(const std::string& leveldb, const std::string& database,
                       const ImportOptions& options) {
  LeveldbReader records(leveldb);
  LmdbWriter writer(database, options.force, reading(options, {leveldb}).inputs);
  for (int64_t i = 0; i < records.size(); ++i) {
    const DatabaseRecord record = records.at(i);
    writer.put(record.key, {reinterpret_cast<const char*>(record.value.data()), record.value.size()});
  }
  writer.finish();
  return records.size();
}

int64_t import_shapes(const ShapesOptions& shapes, int64_t samples, const std::string& database,
                      const ImportOptions& options) {
  check_shapes_options(shapes);
  if (samples < 1) throw UserError(fmt::format("{} samples cannot be generated; ask for 1 or more", samples));
  auto draw = [&](int64_t i) {
    const LabelledImage drawn = draw_shape(shapes, i);
    return NewRecord{std::string(shape_names()[drawn.label]), raw_datum(drawn.image, drawn.label)};
  };
  std::string names;
  for (std::string_view name : shape_names().first(static_cast<size_t>(shapes.classes)))
    names += std::string(name) + '\n';
  return write_database(database, samples, options, draw, {{DatabaseFolder::labels, names}});
}

MeanImage compute_mean(const std::string& database, const ImportOptions& options) {
  LmdbReader reader(database);
  MeanImage mean;
  std::vector<double> sums;
  caffe::Datum datum;
  DatumPixels pixels;
  for (int64_t i = 0; i < reader.size(); ++i) {
    try {
      parse_datum(reader.at(i).value, datum);
      datum_pixels(datum, ColorMode::native, pixels);
    } catch (const BrokenRecord& error) {
      throw UserError(fmt::format("{} key '{}': {}", database, reader.key(i), error.what()));
    }
    const PixelView& view = pixels.view;
    if (i == 0) {
      mean = {view.channels, view.height, view.width, {}};
      sums.resize(size_t{1} * view.channels * view.height * view.width);
    }
    if (view.channels != mean.channels || view.height != mean.height || view.width != mean.width)
      throw UserError(
          fmt::format("{} key '{}': the image is {}x{}x{} (channels, height, width), earlier ones are "
                      "{}x{}x{}; a mean needs images of one size",
                      database, reader.key(i), view.channels, view.height, view.width, mean.channels,
                      mean.height, mean.width));
    const int64_t plane = int64_t{view.height} * view.width;
    for (int64_t p = 0; p < plane; ++p)
      for (int c = 0; c < view.channels; ++c) {
        const int64_t at = view.planar ? c * plane + p : p * view.channels + c;
        sums[p * view.channels + c] += view.bytes ? view.bytes[at] : view.floats[at];
      }
    if (i % 1000 == 999) options.progress(i + 1, reader.size());
  }
  for (double sum : sums) mean.values.push_back(static_cast<float>(sum / static_cast<double>(reader.size())));
  return mean;
}

}  // namespace cortado
