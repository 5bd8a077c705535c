#include "cortado/data/window_source.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "cortado/data/augment.h"
#include "cortado/data/image_codecs.h"
#include "cortado/data/mean.h"
#include "cortado/data/shuffle.h"
#include "cortado/data/window_crop.h"

namespace cortado {
namespace {

constexpr int window_channels = 3;

void check_windows(const SourceOptions& source, const ReaderOptions& options) {
  const WindowOptions& windows = source.windows;
  const int size = source.transform.crop_size;
  if (options.tops != 2)
    throw UserError(fmt::format("windows give two tops, data and label; there are {}", options.tops));
  if (source.batch_size < 1)
    throw UserError(fmt::format("batch_size is {}; it must be at least 1", source.batch_size));
  if (size < 1) throw UserError(fmt::format("crop_size is {}; it must be at least 1", size));
  if (windows.context_pad < 0 || windows.context_pad > (size - 1) / 2)
    throw UserError(
        fmt::format("context_pad is {}: of {} pixels none would be left for the window; use at most {}",
                    windows.context_pad, size, (size - 1) / 2));
  if (!(windows.foreground_fraction >= 0 && windows.foreground_fraction <= 1))
    throw UserError(
        fmt::format("fg_fraction is {:g}; it must be between 0 and 1", windows.foreground_fraction));
}

// Of the pixels of a sample; empty: none.
std::vector<float> sample_mean(const TransformOptions& options) {
  const int size = options.crop_size;
  std::vector<float> means;
  if (!options.mean_file.empty()) {
    const MeanImage mean = read_mean(options.mean_file);
    if (mean.channels != window_channels || mean.width < size || mean.height < size)
      throw UserError(fmt::format(
          "the mean of {} is {}x{}x{}; one of {} channels and at least {}x{} is needed", options.mean_file,
          mean.channels, mean.height, mean.width, window_channels, size, size));
    const int margin = (mean.width - size) / 2;
    if (margin + size > mean.height)
      throw UserError(fmt::format("the mean of {} is {}x{}; a square one is needed", options.mean_file,
                                  mean.height, mean.width));
    for (int y = 0; y < size; ++y) {
      const float* row = &mean.values[(size_t{1} * (margin + y) * mean.width + margin) * window_channels];
      means.insert(means.end(), row, row + size_t{1} * size * window_channels);
    }
    return means;
  }
  const size_t values = options.mean_values.size();
  if (values > 1 && values != window_channels)
    throw UserError(fmt::format("{} mean_value fields for images of {} channels; give one or {}", values,
                                window_channels, window_channels));
  if (values == 0) return means;
  for (int64_t i = 0; i < int64_t{size} * size * window_channels; ++i)
    means.push_back(static_cast<float>(options.mean_values[values == 1 ? 0 : i % window_channels]));
  return means;
}

class WindowSource : public SampleSource {
 public:
  WindowSource(const SourceOptions& source, const ReaderOptions& options)
      : source_(source),
        stream_{options.seed, 0, RandomStream::owner_of(options.layer_name)},
        size_(source.transform.crop_size) {
    check_windows(source, options);
    mean_ = sample_mean(source.transform);
    list_ = read_window_list(source.source, source.windows.foreground_threshold,
                             source.windows.background_threshold);
    foreground_ = static_cast<int>(static_cast<float>(source.batch_size) *
                                   static_cast<float>(source.windows.foreground_fraction));
    if (foreground_ > 0 && list_.foreground.empty())
      throw UserError(fmt::format("{}: no window overlaps by {:g} or more; lower fg_threshold or fg_fraction",
                                  source.source, source.windows.foreground_threshold));
    if (foreground_ < source.batch_size && list_.background.empty())
      throw UserError(
          fmt::format("{}: no window overlaps by less than {:g}; raise bg_threshold or fg_fraction",
                      source.source, source.windows.background_threshold));
    if (source.windows.cache_images)
      for (const std::string& image : list_.images) files_.push_back(read_bytes(source_.root_folder + image));
  }

  std::vector<Shape> shapes() const override {
    return {{source_.batch_size, window_channels, size_, size_}, {source_.batch_size}};
  }
  // Windows of the background, then those of classes.
  int64_t records() const override { return background() + std::ssize(list_.foreground); }
  int64_t record_at(int64_t position) override {
    const bool of_class = position % source_.batch_size >= source_.batch_size - foreground_;
    const int64_t count = of_class ? std::ssize(list_.foreground) : background();
    return (of_class ? background() : 0) + random_below(stream_, position, draw(AugmentDraw::window), count);
  }
  std::string record_name(int64_t record) override {
    return fmt::format("{} (of {})", path_of(window(record)), source_.source);
  }

  void load(int64_t record, int64_t position, std::span<float* const> tops) override {
    const ImageWindow& drawn = window(record);
    const bool mirrored =
        source_.transform.mirror && stream_.uniform(position, draw(AugmentDraw::mirror)) < 0.5;
    const Image image =
        decode_image(files_.empty() ? read_bytes(path_of(drawn)) : files_[drawn.image], ColorMode::color);
    const WindowCrop crop = window_crop(drawn, image.height, image.width, source_.windows, size_, mirrored);
    write(image, crop, mirrored, tops[0]);
    *tops[1] = static_cast<float>(drawn.label);
  }

 private:
  static uint32_t draw(AugmentDraw which) { return static_cast<uint32_t>(which); }
  int64_t background() const { return std::ssize(list_.background); }
  const ImageWindow& window(int64_t record) const {
    return record < background() ? list_.background[record] : list_.foreground[record - background()];
  }
  std::string path_of(const ImageWindow& window) const {
    return source_.root_folder + list_.images[window.image];
  }

  void write(const Image& image, const WindowCrop& crop, bool mirrored, float* sample) const {
    std::fill_n(sample, size_t{1} * size_ * size_ * window_channels, 0.0f);
    if (crop.height < 1 || crop.width < 1) return;  // less than half a pixel is left
    const Image resized = resize(image, crop.region, crop.height, crop.width, ResizeFilter::linear);
    const auto scale = static_cast<float>(source_.transform.scale);
    for (int y = 0; y < crop.height; ++y)
      for (int x = 0; x < crop.width; ++x) {
        const uint8_t* pixel = resized.row(y) + (mirrored ? crop.width - 1 - x : x) * window_channels;
        const int64_t at = ((int64_t{crop.y} + y) * size_ + crop.x + x) * window_channels;
        for (int c = 0; c < window_channels; ++c)
          sample[at + c] = (static_cast<float>(pixel[c]) - (mean_.empty() ? 0.0f : mean_[at + c])) * scale;
      }
  }

  SourceOptions source_;
  RandomStream stream_;
  int size_;            // of the samples' edges
  int foreground_ = 0;  // samples of a batch
  WindowList list_;
  std::vector<float> mean_;                  // as a sample; empty: none
  std::vector<std::vector<uint8_t>> files_;  // with cache_images, of each image
};

}  // namespace

std::unique_ptr<SampleSource> open_window_list(const SourceOptions& source, const ReaderOptions& options) {
  return std::make_unique<WindowSource>(source, options);
}

}  // namespace cortado
