#include "cortado/data/transform.h"

#include <map>
#include <set>

#include "cortado/data/augment.h"

#include "tests/data/support.h"

namespace cortado {
namespace {

const RandomStream stream{7, 0, RandomStream::owner_of("data")};

std::vector<float> transformed(const TransformOptions& options, Phase phase, const Image& image,
                               int64_t sample) {
  Transformer transformer(options, phase, stream, image.channels, image.height, image.width);
  std::vector<float> output(transformer.output_shape().size());
  transformer.apply(image, sample, output.data());
  return output;
}

TEST(Transform, ScaleAndMeanValues) {
  Image image = pattern(2, 3, 3);
  auto output = transformed({.scale = 0.5, .mean_values = {10, 20, 30}}, Phase::train, image, 0);
  for (int i = 0; i < 18; ++i) EXPECT_EQ(output[i], (image.pixels[i] - 10 * (i % 3 + 1)) * 0.5f);
}

TEST(Transform, CentreCropInTestingIsCaffes) {
  Image image = pattern(6, 9, 1);  // offsets (6 - 3) / 2 = 1 and (9 - 3) / 2 = 3
  auto output = transformed({.crop_size = 3}, Phase::test, image, 5);
  for (int y = 0; y < 3; ++y)
    for (int x = 0; x < 3; ++x) EXPECT_EQ(output[3 * y + x], image.row(y + 1)[x + 3]);
}

// Every offset, mirrored or not, occurs; each result is exactly one crop with the mean image of the same
// place.
TEST(Transform, RandomCropMirrorAndMeanImage) {
  ScratchFolder folder;
  MeanImage mean{3, 4, 5, {}};
  for (int i = 0; i < 60; ++i) mean.values.push_back(static_cast<float>(i) / 4);
  write_mean(folder / "mean.binaryproto", mean);
  const Image image = pattern(4, 5, 3);
  TransformOptions options{.mirror = true, .crop_size = 3, .mean_file = folder / "mean.binaryproto"};
  std::map<std::vector<float>, int> seen;
  for (int sample = 0; sample < 400; ++sample) ++seen[transformed(options, Phase::train, image, sample)];
  EXPECT_EQ(seen.size(), 2u * 3 * 2);
  for (int top = 0; top < 2; ++top)
    for (int left = 0; left < 3; ++left)
      for (bool mirrored : {false, true}) {
        std::vector<float> expected;
        for (int y = 0; y < 3; ++y)
          for (int x = 0; x < 3; ++x)
            for (int c = 0; c < 3; ++c) {
              int at = ((top + y) * 5 + left + (mirrored ? 2 - x : x)) * 3 + c;
              expected.push_back(image.pixels[at] - mean.values[at]);
            }
        EXPECT_GT(seen[expected], 10) << top << " " << left << " " << mirrored;
      }
}

TEST(Transform, PlanarBytesAndFloatsAreTheSamePixels) {
  Image image = pattern(4, 6, 3);
  std::vector<uint8_t> planes(72);
  std::vector<float> floats(72);
  for (int i = 0; i < 24; ++i)
    for (int c = 0; c < 3; ++c) planes[c * 24 + i] = image.pixels[i * 3 + c];
  std::copy(planes.begin(), planes.end(), floats.begin());
  TransformOptions options{.scale = 0.25, .mirror = true, .crop_size = 3, .mean_values = {1, 2, 3}};
  Transformer transformer(options, Phase::train, stream, 3, 4, 6);
  PixelView planar(image), real(image);
  planar.bytes = planes.data();
  real.bytes = nullptr;
  real.floats = floats.data();
  planar.planar = real.planar = true;
  for (int sample = 0; sample < 20; ++sample) {
    auto expected = transformed(options, Phase::train, image, sample);
    std::vector<float> output(27);
    transformer.apply(planar, sample, output.data());
    EXPECT_EQ(output, expected);
    transformer.apply(real, sample, output.data());
    EXPECT_EQ(output, expected);
  }
}

TEST(Transform, WrongOptionsAreRefused) {
  auto make = [](const TransformOptions& options) {
    return error_of([&] { Transformer(options, Phase::train, stream, 3, 8, 9); });
  };
  EXPECT_EQ(make({.crop_size = 10}), "crop_size 10 is larger than the image of 8x9 (height x width)");
  EXPECT_EQ(make({.mean_values = {1, 2}}), "2 mean_value fields for images of 3 channels; give one or 3");
  EXPECT_EQ(make({.force_color = true, .force_gray = true}),
            "force_color and force_gray exclude each other; drop one");
  EXPECT_EQ(make({.mean_file = "absent"}), "cannot open mean file absent; check mean_file");
  EXPECT_EQ(make({.random_resized_crop = true}), "random_resized_crop needs a crop_size");
  ScratchFolder folder;
  write_mean(folder / "mean", {3, 8, 8, std::vector<float>(192)});
  EXPECT_NE(make({.mean_file = folder / "mean"}).find("is 3x8x8, the images are 3x8x9"), std::string::npos);
  Transformer transformer({}, Phase::train, stream, 3, 8, 9);
  std::vector<float> output(216);
  EXPECT_NE(error_of([&] { transformer.apply(pattern(8, 8, 3), 0, output.data()); }).find("3x8x8"),
            std::string::npos);
}

TEST(Augment, RegionsKeepAreaAndAspect) {
  TransformOptions options{.min_area = 0.2, .max_area = 0.7};
  std::set<int> heights;
  for (int sample = 0; sample < 500; ++sample) {
    Region region = random_region(options, stream, sample, 60, 80);
    ASSERT_TRUE(region.y >= 0 && region.x >= 0 && region.y + region.height <= 60 &&
                region.x + region.width <= 80);
    double area = region.height * region.width / 4800.0, aspect = 1.0 * region.width / region.height;
    EXPECT_TRUE(area > 0.18 && area < 0.72 && aspect > 0.72 && aspect < 1.38) << area << " " << aspect;
    heights.insert(region.height);
  }
  EXPECT_GT(heights.size(), 20u);
  EXPECT_EQ(
      random_region({.min_area = 1, .max_area = 1, .min_aspect = 1, .max_aspect = 1}, stream, 0, 50, 80),
      (Region{0, 15, 50, 50}));
}

TEST(Augment, JitterIsTheComposedFormula) {
  TransformOptions options{.brightness = 0.4, .contrast = 0.4, .saturation = 0.4};
  Image image = pattern(5, 5, 3), jittered = image;
  jitter_colors(options, stream, 3, jittered);
  auto factor = [&](AugmentDraw draw) { return stream.uniform(3, static_cast<uint32_t>(draw), 0.6, 1.4); };
  double f = factor(AugmentDraw::brightness), g = factor(AugmentDraw::contrast),
         s = factor(AugmentDraw::saturation);
  double mean = 0;
  for (int i = 0; i < 25; ++i) mean += gray_of(&image.pixels[3 * i]) / 25.0;
  for (int i = 0; i < 75; ++i) {
    auto contrasted = [&](double value) { return g * f * value + (1 - g) * f * mean; };
    double gray = contrasted(gray_of(&image.pixels[i / 3 * 3]));
    double expected = s * contrasted(image.pixels[i]) + (1 - s) * gray;
    EXPECT_NEAR(jittered.pixels[i], std::clamp(expected, 0.0, 255.0), 0.51);
  }
}

TEST(Augment, MixUpPairsAndBetaMoments) {
  double sum = 0, squares = 0;
  const int draws = 4000;
  for (int i = 0; i < draws; ++i) {
    double lambda = draw_mixup(0.4, stream, i, 4).lambda;
    sum += lambda;
    squares += lambda * lambda;
  }
  double mean = sum / draws;
  EXPECT_NEAR(mean, 0.5, 0.02);
  EXPECT_NEAR(squares / draws - mean * mean, 1 / (4 * (2 * 0.4 + 1)), 0.01);  // variance of Beta(a, a)

  MixUp mixup = draw_mixup(0.4, stream, 0, 5);
  std::vector<float> images(10), labels{0, 1, 2, 3, 4}, second(5);
  for (int i = 0; i < 10; ++i) images[i] = static_cast<float>(i * i);
  std::vector<float> before = images;
  apply_mixup(mixup, images, labels, second);
  for (int i = 0; i < 5; ++i) {
    auto j = mixup.partner[i];
    EXPECT_EQ(mixup.partner[j], i);
    EXPECT_EQ(second[i], j);
    for (int k = 0; k < 2 && i != j; ++k)
      EXPECT_FLOAT_EQ(images[2 * i + k],
                      mixup.lambda * before[2 * i + k] + (1 - mixup.lambda) * before[2 * j + k]);
  }
}

}  // namespace
}  // namespace cortado
