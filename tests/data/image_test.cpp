#include "cortado/data/image.h"

#include <array>
#include <sstream>

#include "cortado/data/image_codecs.h"
#include "cortado/data/resize.h"

#include "tests/data/support.h"

namespace cortado {
namespace {

// Every image of images/ against what Pillow decodes (make_images.py).
TEST(Image, DecodesAsPillow) {
  std::ifstream expected(test_image("expected.txt"));
  int images = 0;
  for (std::string line; std::getline(expected, line); ++images) {
    std::istringstream words(line);
    std::string name, mode;
    int height, width, channels;
    words >> name >> mode >> height >> width >> channels;
    Image image =
        decode_image(read_bytes(test_image(name)), mode == "color" ? ColorMode::color : ColorMode::native);
    ASSERT_EQ((std::array<int, 3>{image.height, image.width, image.channels}),
              (std::array<int, 3>{height, width, channels}))
        << name;
    for (size_t i = 0; i < image.pixels.size(); ++i) {
      int value;
      words >> value;
      ASSERT_NEAR(image.pixels[i], value, name.ends_with("jpg") ? 1 : 0) << name << " value " << i;
    }
  }
  EXPECT_EQ(images, 20);
}

TEST(Image, EveryTruncationIsRefused) {
  for (const char* name : {"subsampled.jpg", "rgb.png", "cmyk.jpg"}) {
    std::vector<uint8_t> file = read_bytes(test_image(name));
    for (size_t size = 0; size + 20 < file.size(); size += 7)
      EXPECT_THROW(decode_image(std::span(file).first(size), ColorMode::color), BrokenRecord)
          << name << " " << size;
  }
}

TEST(Image, DamagedEntropyDataIsRefusedOrDecoded) {
  std::vector<uint8_t> file = read_bytes(test_image("progressive.jpg"));
  int refused = 0;
  for (size_t i = 2; i < file.size(); ++i) {
    std::vector<uint8_t> damaged = file;
    damaged[i] ^= 0x55;
    try {
      decode_image(damaged, ColorMode::native);
    } catch (const BrokenRecord&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 10);
}

TEST(Image, OtherFormatsAreNamed) {
  const std::string text = "GIF89a";
  std::string message = error_of([&] {
    decode_image({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, ColorMode::native);
  });
  EXPECT_EQ(message, "neither a JPEG nor a PNG image; convert it to one of these");
}

TEST(Image, PngRoundTripIsExact) {
  for (int channels : {1, 3, 4}) {
    Image image = pattern(9, 5, channels);
    EXPECT_EQ(decode_image(encode_image(image, "png"), ColorMode::native), image);
  }
}

TEST(Image, JpegRoundTripIsClose) {
  Image image(16, 16, 3);
  for (int y = 0; y < 16; ++y)
    for (int x = 0; x < 16; ++x)
      for (int c = 0; c < 3; ++c) image.row(y)[3 * x + c] = static_cast<uint8_t>(60 * c + 4 * x + 3 * y);
  Image decoded = decode_image(encode_image(image, "jpg"), ColorMode::native);
  for (size_t i = 0; i < image.pixels.size(); ++i) EXPECT_NEAR(decoded.pixels[i], image.pixels[i], 6);
}

Image ramp() {
  Image image(5, 7, 1);
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 7; ++j) image.row(i)[j] = static_cast<uint8_t>(i * 37 + j * 59 + i * j * 11);
  return image;
}

// Expected: PyTorch 1.13, interpolate(mode="bilinear", align_corners=False, antialias=...).
TEST(Resize, EqualsPyTorch) {
  const std::vector<double> linear{35.83,  145.5,  180.5,  108.83, 104.37, 214.12,
                                   131.88, 113.62, 172.92, 90.75,  115.25, 182.42};
  const std::vector<double> antialiased{49.23,  148.38, 157.37, 115.73, 113.72, 157.15,
                                        140.07, 132.89, 171.44, 131.78, 134.15, 163.6};
  const std::vector<double> larger{0.0, 18.15, 49.92, 81.69, 113.46, 145.23, 177.0, 208.77, 220.85, 114.77};
  Image small = resize(ramp(), 3, 4), smooth = resize(ramp(), 3, 4, ResizeFilter::antialiased);
  for (int i = 0; i < 12; ++i) {
    EXPECT_NEAR(small.pixels[i], linear[i], 0.51) << i;
    EXPECT_NEAR(smooth.pixels[i], antialiased[i], 0.51) << i;
  }
  for (ResizeFilter filter : {ResizeFilter::linear, ResizeFilter::antialiased}) {
    Image large = resize(ramp(), 9, 13, filter);
    for (int i = 0; i < 10; ++i) EXPECT_NEAR(large.pixels[i], larger[i], 0.51) << i;
  }
}

TEST(Resize, TakesTheRegionOnly) {
  Image image = pattern(8, 9, 3);
  Image region(3, 4, 3);
  for (int y = 0; y < 3; ++y) std::copy_n(image.row(y + 2) + 3 * 5, 12, region.row(y));
  EXPECT_EQ(resize(image, {2, 5, 3, 4}, 6, 5, ResizeFilter::antialiased),
            resize(region, 6, 5, ResizeFilter::antialiased));
  EXPECT_EQ(resize(image, {2, 5, 3, 4}, 3, 4, ResizeFilter::linear), region);
}

}  // namespace
}  // namespace cortado
