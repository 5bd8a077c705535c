#include "cortado/data/transform.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/data/augment.h"
#include "cortado/data/shuffle.h"

namespace cortado {

namespace {

void check_options(const TransformOptions& options) {
  if (options.force_color && options.force_gray)
    throw UserError("force_color and force_gray exclude each other; drop one");
  if (!options.mean_file.empty() && !options.mean_values.empty())
    throw UserError("mean_file and mean_value exclude each other; drop one");
  if (options.crop_size < 0) throw UserError(fmt::format("crop_size {} is negative", options.crop_size));
  if (!options.random_resized_crop) return;
  if (options.crop_size == 0) throw UserError("random_resized_crop needs a crop_size");
  if (!(options.min_area > 0 && options.min_area <= options.max_area && options.max_area <= 1 &&
        options.min_aspect > 0 && options.min_aspect <= options.max_aspect))
    throw UserError(
        fmt::format("random_resized_crop takes areas in (0, 1] and positive aspect ratios, least first; here "
                    "area {} to {}, "
                    "aspect {} to {}",
                    options.min_area, options.max_area, options.min_aspect, options.max_aspect));
}

}  // namespace

ColorMode color_mode(const TransformOptions& options) {
  return options.force_color ? ColorMode::color : options.force_gray ? ColorMode::gray : ColorMode::native;
}

Transformer::Transformer(const TransformOptions& options, Phase phase, const RandomStream& stream,
                         int channels, int height, int width)
    : options_(options), phase_(phase), stream_(stream), channels_(channels), height_(height), width_(width) {
  check_options(options_);
  const int crop = options_.crop_size;
  if (options_.random_resized_crop) height = width = crop;
  if (crop > height || crop > width)
    throw UserError(
        fmt::format("crop_size {} is larger than the image of {}x{} (height x width)", crop, height, width));
  if (crop > 0) height_ = width_ = crop;
  if (!options_.mean_file.empty()) {
    mean_ = read_mean(options_.mean_file);
    if (mean_->channels != channels || mean_->height != height || mean_->width != width)
      throw UserError(fmt::format(
          "the mean of {} is {}x{}x{}, the images are {}x{}x{}; compute it with "
          "`cortado data mean` from this data set",
          options_.mean_file, mean_->channels, mean_->height, mean_->width, channels, height, width));
  }
  const auto values = static_cast<int>(options_.mean_values.size());
  if (values > 1 && values != channels)
    throw UserError(fmt::format("{} mean_value fields for images of {} channels; give one or {}", values,
                                channels, channels));
  if (values > 0) {
    mean_row_.resize(size_t{1} * width_ * channels);
    for (size_t i = 0; i < mean_row_.size(); ++i)
      mean_row_[i] = static_cast<float>(options_.mean_values[values == 1 ? 0 : i % channels]);
  }
}

bool Transformer::jitters() const {
  return phase_ == Phase::train &&
         (options_.brightness > 0 || options_.contrast > 0 || options_.saturation > 0);
}

void Transformer::apply(const PixelView& pixels, int64_t sample, float* output) const {
  if (!options_.random_resized_crop && !jitters()) return crop_and_normalize(pixels, sample, output);
  if (!pixels.bytes)
    throw UserError("random_resized_crop and colour jitter need images of bytes; these are floats");
  Image image = image_of(pixels);
  if (options_.random_resized_crop) image = resized_crop(image, sample);
  if (jitters()) jitter_colors(options_, stream_, sample, image);
  crop_and_normalize(image, sample, output);
}

Image Transformer::resized_crop(const Image& image, int64_t sample) const {
  const int crop = options_.crop_size;
  if (phase_ == Phase::train)
    return resize(image, random_region(options_, stream_, sample, image.height, image.width), crop, crop,
                  ResizeFilter::antialiased);
  const int side = std::max(1, static_cast<int>(std::min(image.height, image.width) * 7.0 / 8 + 0.5));
  const Region centre{(image.height - side) / 2, (image.width - side) / 2, side, side};
  return resize(image, centre, crop, crop, ResizeFilter::antialiased);
}

void Transformer::check(const PixelView& pixels) const {
  const bool fits = pixels.channels == channels_ && pixels.height >= height_ && pixels.width >= width_;
  const bool exact = options_.crop_size > 0 || (pixels.height == height_ && pixels.width == width_);
  if (!fits || !exact)
    throw UserError(
        fmt::format("the image is {}x{}x{} (channels, height, width) where {}{}x{}x{} is needed as the "
                    "first one gave; make all images alike, or set crop_size or force_color",
                    pixels.channels, pixels.height, pixels.width, options_.crop_size > 0 ? "at least " : "",
                    channels_, height_, width_));
  if (mean_ && (pixels.height != mean_->height || pixels.width != mean_->width))
    throw UserError(fmt::format("the image is {}x{} (height, width), the mean {}x{}; resize the images alike",
                                pixels.height, pixels.width, mean_->height, mean_->width));
}

void Transformer::crop_and_normalize(const PixelView& pixels, int64_t sample, float* output) const {
  check(pixels);
  auto draw = [](AugmentDraw which) { return static_cast<uint32_t>(which); };
  const bool training = phase_ == Phase::train;
  const int spare_y = pixels.height - height_, spare_x = pixels.width - width_;
  const int top =
      training ? random_below(stream_, sample, draw(AugmentDraw::crop_y), spare_y + 1) : spare_y / 2;
  const int left =
      training ? random_below(stream_, sample, draw(AugmentDraw::crop_x), spare_x + 1) : spare_x / 2;
  const bool mirrored = options_.mirror && stream_.uniform(sample, draw(AugmentDraw::mirror)) < 0.5;
  write_crop(pixels, {top, left, height_, width_}, mirrored,
             {mean_ ? mean_->values.data() : nullptr, mean_row_.empty() ? nullptr : mean_row_.data()},
             static_cast<float>(options_.scale), output);
}

}  // namespace cortado
