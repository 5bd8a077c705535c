#pragma once

#include <cstdint>
#include <span>

#include "cortado/base/random.h"
#include "cortado/data/resize.h"
#include "cortado/layers/source.h"

namespace cortado {

// Draws of one sample's augmentation stream, one number each, so that switching one augmentation on leaves
// the others as they were.
enum class AugmentDraw : uint32_t {
  mirror = 0,
  crop_y,
  crop_x,
  brightness,
  contrast,
  saturation,
  window,
  region = 16,
  volume_crop = 64,   // of depth, height, width
  volume_mirror = 67  // the same
};

// The region that a random-resized crop takes from height x width pixels: its area a fraction in
// [min_area, max_area], its aspect ratio (width / height) log-uniform in [min_aspect, max_aspect]; after ten
// misses the largest centred one of an allowed ratio (Szegedy et al., "Going deeper with convolutions", 2015,
// section 6, as torchvision does it).
Region random_region(const TransformOptions& options, const RandomStream& stream, int64_t sample, int height,
                     int width);

// Brightness, contrast (about the image's mean grey) and saturation (about each pixel's grey), each by a
// factor uniform in [1-x, 1+x], rounded once.
void jitter_colors(const TransformOptions& options, const RandomStream& stream, int64_t sample, Image& image);

// How MixUp joins the images of one batch (Zhang et al., "mixup: beyond empirical risk minimization", 2018):
// image i becomes lambda * image i + (1 - lambda) * image partner[i]. Pairs are mutual; with an odd batch one
// image is its own partner.
struct MixUp {
  float lambda = 1;
  std::vector<int64_t> partner;
};
// lambda ~ Beta(alpha, alpha); a pure function of (stream, first_sample).
MixUp draw_mixup(double alpha, const RandomStream& stream, int64_t first_sample, int64_t batch);
// The same for rows that hold some samples of the batch, each with its partner (samples[row], partners as
// rows).
MixUp rows_of(const MixUp& mixup, std::span<const int64_t> samples);
// Mixes images of `size` floats in place and writes second_labels[i] = labels[partner[i]].
void apply_mixup(const MixUp& mixup, std::span<float> images, std::span<const float> labels,
                 std::span<float> second_labels);

}  // namespace cortado
