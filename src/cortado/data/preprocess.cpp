#include "cortado/data/preprocess.h"

#include <array>
#include <fmt/format.h>

#include "cortado/data/codecs.h"
#include "cortado/data/mean.h"

namespace cortado {

namespace {

// The mean of each channel over all pixels of a mean file, as the example takes it.
std::vector<double> channel_means(const std::string& path, int channels) {
  const MeanImage mean = read_mean(path);
  if (mean.channels != channels)
    throw UserError(
        fmt::format("the mean of {} has {} channels, the net's input {}; take the mean of the data that "
                    "the net was trained on",
                    path, mean.channels, channels));
  std::vector<double> sums(channels);
  for (size_t i = 0; i < mean.values.size(); ++i) sums[i % channels] += mean.values[i];
  for (double& sum : sums) sum /= static_cast<double>(mean.values.size()) / channels;
  return sums;
}

}  // namespace

Preprocessor::Preprocessor(const PreprocessOptions& options, const Shape& input)
    : options_(options),
      channels_(static_cast<int>(input[0])),
      height_(static_cast<int>(input[1])),
      width_(static_cast<int>(input[2])),
      resize_height_(options.resize_height > 0 ? options.resize_height : height_),
      resize_width_(options.resize_width > 0 ? options.resize_width : width_) {
  if (channels_ != 1 && channels_ != 3)
    throw UserError(fmt::format(
        "the net's input has {} channels; images have 1 (grey) or 3 (blue, green, red)", channels_));
  if (resize_height_ < height_ || resize_width_ < width_)
    throw UserError(
        fmt::format("images resized to {}x{} (height x width) are smaller than the net's input of {}x{}; "
                    "resize to that or more",
                    resize_height_, resize_width_, height_, width_));
  if (int64_t{resize_height_} * resize_width_ > max_image_pixels)
    throw UserError(fmt::format("images cannot be resized to {}x{} (height x width); {} pixels are the most",
                                resize_height_, resize_width_, max_image_pixels));
  if (!options.mean_file.empty() && !options.mean_values.empty())
    throw UserError("a mean file and mean values exclude each other; drop one");
  std::vector<double> means = options.mean_values;
  if (!options.mean_file.empty()) means = channel_means(options.mean_file, channels_);
  const auto given = static_cast<int>(means.size());
  if (given > 1 && given != channels_)
    throw UserError(fmt::format("{} mean values for an input of {} channels; give one or {}", given,
                                channels_, channels_));
  if (given == 0) return;
  mean_row_.resize(size_t{1} * width_ * channels_);
  for (size_t i = 0; i < mean_row_.size(); ++i)
    mean_row_[i] = static_cast<float>(means[given == 1 ? 0 : i % channels_]);
}

void Preprocessor::apply(const PixelView& pixels, float* output) const {
  const bool right_channels = pixels.channels == channels_;
  if (right_channels && pixels.height == resize_height_ && pixels.width == resize_width_)
    return write_crops(pixels, output);
  const bool known_colours =
      right_channels || pixels.channels == 1 || pixels.channels == 3 || pixels.channels == 4;
  if (!pixels.bytes || !known_colours)
    throw UserError(fmt::format(
        "{} of {}x{}x{} (channels, height, width) where {}x{}x{} is needed; only images of bytes, "
        "grey or in colour, are converted and resized",
        pixels.bytes ? "bytes" : "floats", pixels.channels, pixels.height, pixels.width, channels_,
        resize_height_, resize_width_));
  Image image = convert_color(image_of(pixels), channels_ == 1 ? ColorMode::gray : ColorMode::color);
  if (image.height != resize_height_ || image.width != resize_width_)
    image = resize(image, resize_height_, resize_width_);
  write_crops(image, output);
}

void Preprocessor::write_crops(const PixelView& pixels, float* output) const {
  const int below = resize_height_ - height_, right = resize_width_ - width_;
  const Region centre{below / 2, right / 2, height_, width_};
  const CropMean mean{.row = mean_row_.empty() ? nullptr : mean_row_.data()};
  const auto scale = static_cast<float>(options_.scale);
  auto write = [&](const Region& region, bool mirrored) {
    write_crop(pixels, region, mirrored, mean, scale, output);
    output += output_shape().size();
  };
  if (!options_.oversample) return write(centre, false);
  const std::array<Region, 5> regions{Region{0, 0, height_, width_}, Region{0, right, height_, width_},
                                      Region{below, 0, height_, width_},
                                      Region{below, right, height_, width_}, centre};
  for (bool mirrored : {false, true})
    for (const Region& region : regions) write(region, mirrored);
}

}  // namespace cortado
