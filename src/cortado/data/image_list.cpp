#include "cortado/data/image_list.h"

#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <optional>

#include "cortado/data/image_codecs.h"
#include "cortado/data/image_source.h"
#include "cortado/data/shuffle.h"

namespace cortado {

namespace {

// Calls visit(number, line) for each line that is not blank, without the blanks at its end.
template <typename Visit>
void for_each_line(const std::string& path, Visit&& visit) {
  std::ifstream file(path);
  if (!file) throw UserError(fmt::format("cannot open image list {}; check the path", path));
  std::string line;
  int64_t lines = 0;
  for (int number = 1; std::getline(file, line); ++number) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) continue;
    visit(number, line);
    ++lines;
  }
  if (lines == 0) throw UserError(fmt::format("image list {} is empty", path));
}

// "PATH LABEL"; nothing where the last word is not a whole number, or stands alone.
std::optional<ListedImage> labelled_image(const std::string& line) {
  const size_t space = line.find_last_of(" \t");
  if (space == std::string::npos) return std::nullopt;
  ListedImage image;
  const char* const end = line.data() + line.size();
  const auto parsed = std::from_chars(line.data() + space + 1, end, image.label);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  image.path = line.substr(0, line.find_last_not_of(" \t", space) + 1);
  return image;
}

}  // namespace

std::vector<ListedImage> read_image_list(const std::string& path) {
  std::vector<ListedImage> images;
  for_each_line(path, [&](int number, const std::string& line) {
    const std::optional<ListedImage> image = labelled_image(line);
    if (!image)
      throw UserError(fmt::format("{}:{}: expected \"PATH LABEL\" with a whole number as label, found \"{}\"",
                                  path, number, line));
    images.push_back(*image);
  });
  return images;
}

std::vector<NamedImage> read_named_images(const std::string& path) {
  std::vector<NamedImage> images;
  for_each_line(path, [&](int, const std::string& line) {
    if (const std::optional<ListedImage> image = labelled_image(line))
      images.push_back({image->path, image->label});
    else
      images.push_back({line, std::nullopt});
  });
  return images;
}

namespace {

// Files in the list's order or, with `shuffle`, in a new one each epoch.
class ImageListSource : public ImageSource {
 public:
  ImageListSource(const SourceOptions& source, const ReaderOptions& options)
      : ImageSource(source, options),
        images_(read_image_list(source.source)),
        order_(records(), [this](int64_t epoch) { return shuffled_order(stream_, epoch, records()); }),
        first_(skip()) {
    if ((source.new_height > 0) != (source.new_width > 0) || source.new_height < 0)
      throw UserError(fmt::format("new_height {} and new_width {} must be set together", source.new_height,
                                  source.new_width));
    const Image first = read_first_good();
    set_sample_size(first.channels, first.height, first.width);
  }

  int64_t records() const override { return static_cast<int64_t>(images_.size()); }
  int64_t record_at(int64_t position) override {
    position += first_;
    return source_.shuffle ? order_.at(position) : position % records();
  }
  std::string record_name(int64_t record) override {
    return fmt::format("{} (image {} of {})", path_of(record), record + 1, source_.source);
  }
  void load(int64_t record, int64_t position, std::span<float* const> tops) override {
    transform(read(record), images_[record].label, position, tops);
  }

 private:
  std::string path_of(int64_t record) const { return source_.root_folder + images_[record].path; }

  Image read(int64_t record) const {
    Image image =
        decode_image(read_bytes(path_of(record)), source_.is_color ? ColorMode::color : ColorMode::gray);
    if (source_.new_height == 0) return image;
    return resize(image, source_.new_height, source_.new_width);
  }

  Image read_first_good() {
    for (int64_t record = 0; record < records(); ++record) {
      try {
        return read(record);
      } catch (const BrokenRecord& error) {
        if (!source_.skip_corrupt) throw UserError(fmt::format("{}: {}", record_name(record), error.what()));
      }
    }
    throw UserError(fmt::format("image list {}: no image can be read", source_.source));
  }

  std::vector<ListedImage> images_;
  EpochOrder order_;
  int64_t first_;
};

}  // namespace

std::unique_ptr<SampleSource> open_image_list(const SourceOptions& source, const ReaderOptions& options) {
  return std::make_unique<ImageListSource>(source, options);
}

}  // namespace cortado
