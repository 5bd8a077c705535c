#include "cortado/data/augment.h"

#include <algorithm>
#include <cmath>

#include "cortado/data/shuffle.h"

namespace cortado {

namespace {

uint32_t number(AugmentDraw draw) { return static_cast<uint32_t>(draw); }

}  // namespace

Region random_region(const TransformOptions& options, const RandomStream& stream, int64_t sample, int height,
                     int width) {
  constexpr uint32_t attempts = 10, draws = 4;
  const double area = static_cast<double>(height) * width;
  for (uint32_t attempt = 0; attempt < attempts; ++attempt) {
    const uint32_t draw = number(AugmentDraw::region) + attempt * draws;
    const double target = area * stream.uniform(sample, draw, options.min_area, options.max_area);
    const double aspect = std::exp(
        stream.uniform(sample, draw + 1, std::log(options.min_aspect), std::log(options.max_aspect)));
    const int w = static_cast<int>(std::lround(std::sqrt(target * aspect)));
    const int h = static_cast<int>(std::lround(std::sqrt(target / aspect)));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    return {static_cast<int>(random_below(stream, sample, draw + 2, height - h + 1)),
            static_cast<int>(random_below(stream, sample, draw + 3, width - w + 1)), h, w};
  }
  const double aspect =
      std::clamp(static_cast<double>(width) / height, options.min_aspect, options.max_aspect);
  const int h = std::clamp(static_cast<int>(std::lround(width / aspect)), 1, height);
  const int w = std::clamp(static_cast<int>(std::lround(height * aspect)), 1, width);
  return {(height - h) / 2, (width - w) / 2, h, w};
}

// All three are affine in the pixel, so they are one: with f = brightness, g = contrast, s = saturation,
// m = mean grey and y = the pixel's grey, x' = s g f x + (1 - s) g f y + (1 - g) f m.
void jitter_colors(const TransformOptions& options, const RandomStream& stream, int64_t sample,
                   Image& image) {
  auto factor = [&](AugmentDraw draw, double range) {
    return range == 0 ? 1.0f : static_cast<float>(stream.uniform(sample, number(draw), 1 - range, 1 + range));
  };
  const float brightness = factor(AugmentDraw::brightness, options.brightness);
  const float contrast = factor(AugmentDraw::contrast, options.contrast);
  const float saturation = image.channels == 1 ? 1 : factor(AugmentDraw::saturation, options.saturation);
  const size_t pixels = image.pixels.size() / image.channels;
  const int colors = std::min(image.channels, 3);
  auto gray = [&](size_t i) {
    const uint8_t* pixel = &image.pixels[i * image.channels];
    return colors == 1 ? *pixel : gray_of(pixel);
  };
  uint64_t sum = 0;
  if (contrast != 1)
    for (size_t i = 0; i < pixels; ++i) sum += gray(i);
  const float mean = static_cast<float>(sum) / static_cast<float>(pixels);
  const float own = saturation * contrast * brightness, of_gray = (1 - saturation) * contrast * brightness;
  const float constant = (1 - contrast) * brightness * mean + 0.5f;
  for (size_t i = 0; i < pixels; ++i) {
    const float offset = constant + of_gray * gray(i);
    for (int c = 0; c < colors; ++c) {
      uint8_t& value = image.pixels[i * image.channels + c];
      value = static_cast<uint8_t>(std::clamp(own * value + offset, 0.0f, 255.0f));
    }
  }
}

namespace {

// Gamma(shape, 1) by Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; below 1 by
// their boost gamma(shape + 1) * u^(1/shape).
double draw_gamma(double shape, const RandomStream& stream, uint64_t index) {
  uint32_t next = 0;
  double boost = 1;
  if (shape < 1) {
    boost = std::pow((stream.bits(index, next) + 1.0) * 0x1p-32, 1 / shape);
    shape += 1;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    next += 4;  // normal() takes two draws, 2 * next and the one after
    const double x = stream.normal(index, next, 0, 1), v = std::pow(1 + c * x, 3);
    const double u = (stream.bits(index, 2 * next + 2) + 1.0) * 0x1p-32;
    if (v > 0 && std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return boost * d * v;
  }
}

}  // namespace

MixUp draw_mixup(double alpha, const RandomStream& stream, int64_t first_sample, int64_t batch) {
  RandomStream own = stream;
  own.owner ^= RandomStream::owner_of("mixup");
  own.iteration = static_cast<uint64_t>(first_sample);
  const double a = draw_gamma(alpha, own, 0), b = draw_gamma(alpha, own, 1);
  MixUp mixup{.lambda = a + b > 0 ? static_cast<float>(a / (a + b)) : 1.0f, .partner = {}};
  mixup.partner.resize(batch);
  const std::vector<int64_t> order = shuffled_order(stream, first_sample, batch);
  for (int64_t i = 0; i < batch; ++i) mixup.partner[order[i]] = order[std::min(i ^ 1, batch - 1)];
  return mixup;
}

MixUp rows_of(const MixUp& mixup, std::span<const int64_t> samples) {
  std::vector<int64_t> row_of_sample(mixup.partner.size(), -1);
  for (size_t row = 0; row < samples.size(); ++row) row_of_sample[samples[row]] = static_cast<int64_t>(row);
  MixUp rows{.lambda = mixup.lambda, .partner = {}};
  for (int64_t sample : samples) rows.partner.push_back(row_of_sample[mixup.partner[sample]]);
  return rows;
}

void apply_mixup(const MixUp& mixup, std::span<float> images, std::span<const float> labels,
                 std::span<float> second_labels) {
  const auto batch = static_cast<int64_t>(mixup.partner.size());
  const auto size = batch > 0 ? static_cast<int64_t>(images.size()) / batch : 0;
  const float lambda = mixup.lambda;
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t j = mixup.partner[i];
    second_labels[i] = labels[j];
    if (j <= i) continue;  // mixed as the partner of an earlier one
    float *a = images.data() + i * size, *b = images.data() + j * size;
    for (int64_t k = 0; k < size; ++k) {
      const float x = a[k], y = b[k];
      a[k] = lambda * x + (1 - lambda) * y;
      b[k] = lambda * y + (1 - lambda) * x;
    }
  }
}

}  // namespace cortado
