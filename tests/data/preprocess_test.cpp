#include "cortado/data/preprocess.h"

#include <cmath>
#include <gtest/gtest.h>

#include "cortado/data/mean.h"
#include "cortado/data/transform.h"

#include "tests/data/support.h"

namespace cortado {
namespace {

std::vector<float> preprocessed(const PreprocessOptions& options, const Shape& input,
                                const PixelView& pixels) {
  const Preprocessor preprocessor(options, input);
  std::vector<float> values(preprocessor.crops() * input.size(), NAN);
  preprocessor.apply(pixels, values.data());
  return values;
}

// An image whose pixels tell where they are: value 10 y + x in each channel.
Image places(int height, int width, int channels) {
  Image image(height, width, channels);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) image.row(y)[x * channels + c] = static_cast<uint8_t>(10 * y + x);
  return image;
}

TEST(Preprocessor, SubtractsTheMeanThenScales) {
  const Image image = pattern(4, 5, 3);
  const std::vector<float> values = preprocessed({.mean_values = {1, 2, 3}, .scale = 0.5}, {3, 4, 5}, image);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(values[i], (static_cast<float>(image.pixels[i]) - static_cast<float>(i % 3 + 1)) * 0.5f);
}

// A net is trained on what the transformer of its data layer gives.
TEST(Preprocessor, GivesWhatADataLayerGivesInTesting) {
  const Image image = pattern(9, 8, 3);
  TransformOptions layer{.scale = 0.25, .crop_size = 5, .mean_values = {104, 117, 123}};
  std::vector<float> expected(size_t{3} * 5 * 5);
  Transformer(layer, Phase::test, {}, 3, 9, 8).apply(image, 0, expected.data());
  const PreprocessOptions options{
      .mean_values = {104, 117, 123}, .scale = 0.25, .resize_height = 9, .resize_width = 8};
  EXPECT_EQ(preprocessed(options, {3, 5, 5}, image), expected);
}

TEST(Preprocessor, TakesTheMeanOfEachChannelOfAFile) {
  ScratchFolder folder;
  write_mean(folder / "mean", {2, 1, 2, {10, 1, 20, 2}});
  EXPECT_NE(error_of([&] {
              Preprocessor({.mean_file = folder / "mean"}, {3, 2, 2});
            }).find("2 channels"),
            std::string::npos);
  write_mean(folder / "mean", {1, 2, 2, {1, 2, 3, 6}});  // of another size than the input
  EXPECT_EQ(preprocessed({.mean_file = folder / "mean"}, {1, 1, 3}, places(1, 3, 1)),
            (std::vector<float>{-3, -2, -1}));
}

TEST(Preprocessor, ConvertsToTheChannelsOfTheInput) {
  const Image grey = pattern(2, 2, 1), colour = pattern(2, 2, 3), alpha = pattern(2, 2, 4);
  std::vector<float> values = preprocessed({}, {3, 2, 2}, grey);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], grey.pixels[i / 3]);
  values = preprocessed({}, {1, 2, 2}, colour);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], gray_of(&colour.pixels[3 * i]));
  values = preprocessed({}, {3, 2, 2}, alpha);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], alpha.pixels[i / 3 * 4 + i % 3]);
}

TEST(Preprocessor, ResizesToTheInput) {
  const Image image = pattern(7, 9, 3), small = resize(image, 3, 4);
  const std::vector<float> values = preprocessed({}, {3, 3, 4}, image);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], small.pixels[i]);
}

// The crops of pycaffe's oversample(): corners, row by row, then the centre; then all of them mirrored.
TEST(Preprocessor, OversamplesTenCrops) {
  const Image image = places(5, 6, 1);
  const std::vector<float> values =
      preprocessed({.resize_height = 5, .resize_width = 6, .oversample = true}, {1, 2, 3}, image);
  const std::vector<float> corners{0, 3, 30, 33, 11};
  ASSERT_EQ(values.size(), 10u * 6);
  for (int crop = 0; crop < 10; ++crop)
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 3; ++x)
        EXPECT_EQ(values[crop * 6 + y * 3 + x], corners[crop % 5] + 10 * y + (crop < 5 ? x : 2 - x)) << crop;
}

TEST(Preprocessor, TakesFloatsAndPlanesAsTheyAre) {
  const std::vector<float> planes{1, 2, 3, 4, 5, 6};  // 3 channels of 1x2
  PixelView view;
  view.floats = planes.data();
  view.channels = 3;
  view.height = 1;
  view.width = 2;
  view.planar = true;
  EXPECT_EQ(preprocessed({}, {3, 1, 2}, view), (std::vector<float>{1, 3, 5, 2, 4, 6}));
  EXPECT_NE(error_of([&] { preprocessed({}, {3, 2, 2}, view); }).find("floats of 3x1x2"), std::string::npos);
}

TEST(Preprocessor, RefusesWhatDoesNotFit) {
  auto refusal = [](const PreprocessOptions& options, const Shape& input) {
    return error_of([&] { Preprocessor(options, input); });
  };
  EXPECT_NE(refusal({}, {4, 2, 2}).find("4 channels"), std::string::npos);
  EXPECT_NE(refusal({.mean_values = {1, 2}}, {3, 2, 2}).find("2 mean values"), std::string::npos);
  EXPECT_NE(refusal({.mean_file = "m", .mean_values = {1}}, {3, 2, 2}).find("exclude"), std::string::npos);
  EXPECT_NE(refusal({.resize_height = 100000, .resize_width = 100000}, {3, 4, 4}).find("the most"),
            std::string::npos);
  EXPECT_NE(refusal({.resize_height = 4, .resize_width = 3}, {3, 4, 4}).find("4x3"), std::string::npos);
  const Image two = pattern(2, 2, 2);  // a raw Datum may have any number of channels
  EXPECT_NE(error_of([&] { preprocessed({}, {3, 2, 2}, two); }).find("bytes of 2x2x2"), std::string::npos);
}

}  // namespace
}  // namespace cortado
