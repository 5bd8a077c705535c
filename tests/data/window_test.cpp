// WindowData against a plain model of what R-CNN's layer of Caffe does, written from its description:
// sampling, context, square and warped crops, mirrors, means.
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "cortado/data/image_codecs.h"
#include "cortado/data/mean.h"
#include "cortado/data/open_reader.h"
#include "cortado/data/window_crop.h"
#include "cortado/data/window_list.h"

#include "tests/data/support.h"

namespace cortado {
namespace {

constexpr int window_height = 24, window_width = 30;

// Two images; three windows of classes 2 to 4, three of the background, one of neither.
class WindowData : public ::testing::Test {
 protected:
  WindowData() {
    std::string text;
    for (int i = 0; i < 2; ++i) {
      const auto file = encode_image(pattern(window_height, window_width, 3, i), "png");
      write_bytes(folder_ / fmt::format("{}.png", i),
                  {reinterpret_cast<const char*>(file.data()), file.size()});
      text += fmt::format("# {}\n{}.png\n3\n{}\n{}\n", i, i, window_height, window_width);
      text += i == 0 ? "4\n2 0.9 3 4 12 20\n3 0.5 0 0 29 23\n0 0.1 5 5 9 9\n9 0.4 1 1 4 4\n"
                     : "3\n4 0.7 20 10 29 23\n0 0.2 10 2 20 7\n5 0.05 2 2 28 5\n";
    }
    write_bytes(folder_ / "windows.txt", text);
    source_.kind = SourceOptions::Kind::window_data;
    source_.source = folder_ / "windows.txt";
    source_.root_folder = folder_ / "";
    source_.batch_size = 8;
    source_.transform.crop_size = 11;
    source_.windows.background_threshold = 0.3;
  }
  std::unique_ptr<Reader> open(int threads = 1, uint64_t seed = 3) const {
    return open_reader(source_, {.seed = seed, .tops = 2, .layer_name = "data", .threads = threads});
  }
  std::string message() const {
    return error_of([&] { open()->next(); });
  }

  ScratchFolder folder_;
  SourceOptions source_;
};

struct DrawnWindow {
  int image, label, x1, y1, x2, y2;
};
const std::vector<DrawnWindow> of_classes = {{0, 2, 3, 4, 12, 20},
                                             {0, 3, 0, 0, 29, 23},
                                             {1, 4, 20, 10, 29, 23}},
                               of_background = {
                                   {0, 0, 5, 5, 9, 9}, {1, 0, 10, 2, 20, 7}, {1, 0, 2, 2, 28, 5}};

// Caffe's window_data_layer.cpp, step by step, in its own variables; one sample, channels last.
std::vector<float> caffes_sample(const DrawnWindow& window, const SourceOptions& source, bool mirrored) {
  const int size = source.transform.crop_size, context_pad = source.windows.context_pad;
  int x1 = window.x1, y1 = window.y1, x2 = window.x2, y2 = window.y2, pad_w = 0, pad_h = 0;
  int crop_width = size, crop_height = size;
  if (context_pad > 0 || source.windows.square) {
    const float context_scale = static_cast<float>(size) / static_cast<float>(size - 2 * context_pad);
    float half_height = static_cast<float>(y2 - y1 + 1) / 2.0F,
          half_width = static_cast<float>(x2 - x1 + 1) / 2.0F;
    const float center_x = static_cast<float>(x1) + half_width,
                center_y = static_cast<float>(y1) + half_height;
    if (source.windows.square) {
      if (half_height > half_width)
        half_width = half_height;
      else
        half_height = half_width;
    }
    x1 = static_cast<int>(std::round(center_x - half_width * context_scale));
    x2 = static_cast<int>(std::round(center_x + half_width * context_scale));
    y1 = static_cast<int>(std::round(center_y - half_height * context_scale));
    y2 = static_cast<int>(std::round(center_y + half_height * context_scale));
    const int unclipped_height = y2 - y1 + 1, unclipped_width = x2 - x1 + 1;
    int pad_x1 = std::max(0, -x1), pad_y1 = std::max(0, -y1);
    int pad_x2 = std::max(0, x2 - window_width + 1);
    const int pad_y2 = std::max(0, y2 - window_height + 1);
    x1 += pad_x1, x2 -= pad_x2, y1 += pad_y1, y2 -= pad_y2;
    const float scale_x = static_cast<float>(size) / static_cast<float>(unclipped_width);
    const float scale_y = static_cast<float>(size) / static_cast<float>(unclipped_height);
    const auto scaled = [](int pixels, float scale) {
      return static_cast<int>(std::round(static_cast<float>(pixels) * scale));
    };
    crop_width = scaled(x2 - x1 + 1, scale_x), crop_height = scaled(y2 - y1 + 1, scale_y);
    pad_x1 = scaled(pad_x1, scale_x), pad_x2 = scaled(pad_x2, scale_x), pad_y1 = scaled(pad_y1, scale_y);
    pad_h = pad_y1;
    pad_w = mirrored ? pad_x2 : pad_x1;
    if (pad_h + crop_height > size) crop_height = size - pad_h;
    if (pad_w + crop_width > size) crop_width = size - pad_w;
  }
  // Bilinear, as OpenCV: pixel centres at (i + 1/2) * scale - 1/2, the border repeated; rounded to bytes.
  const Image image = pattern(window_height, window_width, 3, window.image);
  std::vector<float> sample(static_cast<size_t>(size * size * 3));
  const int rows = y2 - y1 + 1, columns = x2 - x1 + 1;
  for (int h = 0; h < crop_height; ++h)
    for (int w = 0; w < crop_width; ++w)
      for (int c = 0; c < 3; ++c) {
        const int from_w = mirrored ? crop_width - 1 - w : w;
        const double y = std::clamp((h + 0.5) * rows / crop_height - 0.5, 0.0, rows - 1.0);
        const double x = std::clamp((from_w + 0.5) * columns / crop_width - 0.5, 0.0, columns - 1.0);
        const int top = static_cast<int>(y), left = static_cast<int>(x);
        const auto at = [&](int row, int column) -> double {
          return image.row(y1 + std::min(row, rows - 1))[(x1 + std::min(column, columns - 1)) * 3 + c];
        };
        const double above = at(top, left) * (left + 1 - x) + at(top, left + 1) * (x - left);
        const double below = at(top + 1, left) * (left + 1 - x) + at(top + 1, left + 1) * (x - left);
        const double mean = source.transform.mean_values.empty() ? 0 : source.transform.mean_values[c];
        sample[static_cast<size_t>(((h + pad_h) * size + w + pad_w) * 3 + c)] = static_cast<float>(
            (std::floor(above * (top + 1 - y) + below * (y - top) + 0.5) - mean) * source.transform.scale);
      }
  return sample;
}

// Equal but for a byte's rounding.
bool nearly_equal(const std::vector<float>& expected, const float* sample, double scale) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (std::abs(expected[i] - sample[i]) > 1.001 * scale) return false;
  return true;
}

TEST_F(WindowData, SamplesAreThoseOfTheModel) {
  source_.transform.mirror = true;
  for (const bool square : {false, true})
    for (const int context : {0, 1, 3}) {
      source_.windows.square = square;
      source_.windows.context_pad = context;
      source_.transform.mean_values = context == 1 ? std::vector<double>{10, 20, 30} : std::vector<double>{};
      source_.transform.scale = context == 3 ? 0.5 : 1;
      const auto reader = open();
      EXPECT_EQ(reader->shapes(), (std::vector<Shape>{{8, 3, 11, 11}, {8}}));
      std::set<int> seen;
      for (int batch = 0; batch < 20; ++batch) {
        const Batch read = reader->next();
        for (int i = 0; i < 8; ++i) {
          const bool of_class = i >= 6;  // a quarter of the batch, at its end
          ASSERT_EQ(read.tensors[1][i] > 0, of_class);
          int found = 0;
          for (const DrawnWindow& window : of_class ? of_classes : of_background) {
            if (window.label != static_cast<int>(read.tensors[1][i])) continue;
            for (const bool mirrored : {false, true})
              if (nearly_equal(caffes_sample(window, source_, mirrored), read.tensors[0] + i * 363,
                               source_.transform.scale))
                seen.insert(window.x1 * 2 + mirrored), ++found;
          }
          ASSERT_EQ(found, 1) << "square " << square << " context " << context << " sample " << i;
        }
      }
      EXPECT_EQ(seen.size(), 12u) << "every window, either way round";
    }
}

TEST_F(WindowData, TheSeedAloneDecides) {
  const auto values = [&](Reader& reader, int batches) {
    std::vector<float> all;
    for (int b = 0; b < batches; ++b) {
      const Batch batch = reader.next();
      all.insert(all.end(), batch.tensors[0], batch.tensors[0] + 8 * 363);
      all.insert(all.end(), batch.tensors[1], batch.tensors[1] + 8);
    }
    return all;
  };
  source_.transform.mirror = true;
  const auto expected = values(*open(), 6);
  EXPECT_EQ(values(*open(3), 6), expected);
  EXPECT_NE(values(*open(1, 4), 6), expected);
  source_.windows.cache_images = true;
  const auto cached = open(2);
  EXPECT_EQ(values(*cached, 6), expected);
  cached->seek(16);
  EXPECT_EQ(values(*cached, 4), std::vector<float>(expected.begin() + 2 * 8 * 364, expected.end()));
}

TEST_F(WindowData, AMeanImageIsCutInItsMiddle) {
  MeanImage mean{3, 15, 15, {}};
  for (int i = 0; i < 15 * 15 * 3; ++i) mean.values.push_back(static_cast<float>(i));
  write_mean(folder_ / "mean.binaryproto", mean);
  const auto plain = open();
  source_.transform.mean_file = folder_ / "mean.binaryproto";
  const auto centred = open();
  const Batch one = plain->next(), other = centred->next();
  for (const int y : {0, 5, 10})
    for (const int x : {0, 3, 10}) {
      const int at = (y * 11 + x) * 3 + 1;
      EXPECT_EQ(other.tensors[0][at],
                one.tensors[0][at] - static_cast<float>(((y + 2) * 15 + x + 2) * 3 + 1));
    }
}

TEST_F(WindowData, WrongInputIsRefused) {
  const SourceOptions good = source_;
  const auto says = [&](const std::string& what) {
    const std::string said = message();
    EXPECT_NE(said.find(what), std::string::npos) << said;
    source_ = good;
  };
  source_.windows.context_pad = 6;
  says("context_pad is 6: of 11 pixels none would be left for the window; use at most 5");
  source_.windows.foreground_threshold = 0.95;
  says("no window overlaps by 0.95 or more; lower fg_threshold or fg_fraction");
  source_.windows.background_threshold = 0.01;
  says("no window overlaps by less than 0.01; raise bg_threshold or fg_fraction");
  source_.windows.foreground_fraction = 1.5;
  says("fg_fraction is 1.5");
  source_.source = folder_ / "nothing.txt";
  says("nothing.txt");
  const std::string text = read_text_file(folder_ / "windows.txt");
  const auto with = [&](const std::string& content) { write_bytes(folder_ / "windows.txt", content); };
  with("");
  says("has no images");
  with("# 0\n0.png\n3 24 30\n1\n2 0.9 3 4 12\n");
  says("windows.txt:6: expected a window's y2, found the end of the file");
  with("# 0\n0.png\n3 24 30\n1\n2 much 3 4 12 20\n");
  says("windows.txt:5: expected a window's overlap, found \"much\"");
  with("0 0.png\n");
  says("windows.txt:1: expected # and the number of an image, found \"0\"");
  with("# 0 0.png 3 24 30 2 2 0.9 3 4 12 24 0 0.1 25 20 29 25\n");
  says("partly outside of its image, of 24x30 pixels");
  with("# 0 away.png 3 24 30 2 2 0.9 3 4 12 20 0 0.1 3 4 12 20\n");
  says("away.png");
}

}  // namespace
}  // namespace cortado
