#include "cortado/parallel/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/inner_product.h"
#include "cortado/parallel/config_fit.h"
#include "cortado/parallel/layer_cut.h"

namespace cortado {
namespace {

using ::testing::HasSubstr;

TEST(Blocks, DifferByAtMostOneAndCoverTheExtent) {
  for (int64_t extent = 1; extent < 40; ++extent) {
    for (int parts = 1; parts <= extent; ++parts) {
      int64_t end = 0;
      for (int i = 0; i < parts; ++i) {
        const Range block = block_of(extent, parts, i);
        EXPECT_EQ(block.begin, end);
        EXPECT_GE(block.size(), extent / parts);
        EXPECT_LE(block.size(), extent / parts + 1);
        end = block.end;
      }
      EXPECT_EQ(end, extent);
    }
  }
}

TEST(Blocks, FollowWeights) {
  EXPECT_EQ(block_of(12, 2, 0, {2, 1}), (Range{0, 8}));
  EXPECT_EQ(block_of(12, 2, 1, {2, 1}), (Range{8, 12}));
  // Nobody is left without work.
  EXPECT_EQ(block_of(3, 3, 0, {1000, 1, 1}), (Range{0, 1}));
  EXPECT_EQ(block_of(3, 3, 1, {1000, 1, 1}), (Range{1, 2}));
  EXPECT_EQ(block_of(3, 3, 2, {1, 1, 1000}), (Range{2, 3}));
  for (int64_t extent = 4; extent < 20; ++extent) {
    for (const std::vector<double>& weights :
         {std::vector<double>{2, 1, 2, 1}, {1, 1, 1, 9}, {9, 1, 1, 1}, {3, 1, 4, 4}}) {
      int64_t end = 0;
      for (int i = 0; i < 4; ++i) {
        const Range block = block_of(extent, 4, i, weights);
        EXPECT_EQ(block.begin, end) << extent;
        EXPECT_GE(block.size(), 1) << extent;
        end = block.end;
      }
      EXPECT_EQ(end, extent);
    }
  }
}

TEST(Weighed, TakesTheWeightsOfItsDevicesWhereOneDimensionIsCut) {
  const std::vector<double> ranks{4, 2, 1, 2};
  const ParallelConfig rows{.degrees = {.h = 2}, .devices = {2, 0}, .weights = {}};
  EXPECT_EQ(weighed(rows, ranks).weights, (std::vector<double>{1, 4}));
  EXPECT_EQ(weighed(rows, ranks).text(), "h2 by 1:4 on 2,0");
  EXPECT_EQ(weighed(rows, {}), rows);
  const ParallelConfig channels{.degrees = {.c = 2}, .devices = {1, 3}, .weights = {}};
  EXPECT_EQ(weighed(channels, ranks), channels);
  const ParallelConfig one{.degrees = {}, .devices = {1}, .weights = {}};
  EXPECT_EQ(weighed(one, ranks), one);
  for (const Degrees& degrees : {Degrees{.n = 2, .c = 2}, Degrees{.n = 2, .r = 2}, Degrees{.r = 4}}) {
    const ParallelConfig config{.degrees = degrees, .devices = {0, 1, 2, 3}, .weights = {}};
    EXPECT_EQ(weighed(config, ranks), config) << config.text();
  }
}

// One row of padding on each side of four rows, windows of one row: the first and last of six read nothing.
TEST(Spread, PutsSamplesWhereACutOverAllHasThem) {
  const auto devices = [](Degrees degrees, int all) {
    ParallelConfig config{.degrees = degrees, .devices = {}, .weights = {}};
    for (int i = 0; i < degrees.product(); ++i) config.devices.push_back(i);
    return spread(config, all).devices;
  };
  EXPECT_EQ(devices({.n = 2}, 8), (std::vector<int>{0, 4}));
  EXPECT_EQ(devices({.n = 2, .c = 2}, 8), (std::vector<int>{0, 1, 4, 5}));
  EXPECT_EQ(devices({.n = 3, .h = 2}, 12), (std::vector<int>{0, 1, 4, 5, 8, 9}));
  // Nothing to spread: over all devices already, no samples cut, not evenly.
  EXPECT_EQ(devices({.n = 4, .c = 2}, 8), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(devices({.c = 2}, 8), (std::vector<int>{0, 1}));
  EXPECT_EQ(devices({.n = 3}, 8), (std::vector<int>{0, 1, 2}));
  // Somebody has chosen the devices, or shares.
  const ParallelConfig chosen{.degrees = {.n = 2}, .devices = {1, 0}, .weights = {}};
  EXPECT_EQ(spread(chosen, 8), chosen);
  const ParallelConfig shares{.degrees = {.n = 2}, .devices = {0, 1}, .weights = {1, 2}};
  EXPECT_EQ(spread(shares, 8), shares);
}

TEST(ConfigText, NamesDevicesBriefly) {
  const auto text = [](int n, std::vector<int> devices) {
    return ParallelConfig{.degrees = {.n = n}, .devices = std::move(devices), .weights = {}}.text();
  };
  EXPECT_EQ(text(1, {3}), "1 on 3");
  EXPECT_EQ(text(4, {2, 3, 4, 5}), "n4 on 2-5");
  EXPECT_EQ(text(4, {0, 2, 4, 6}), "n4 on 0,2,4,6");
  EXPECT_EQ(text(3, {0, 1, 3}), "n3 on 0,1,3");
  EXPECT_EQ(text(2, {1, 0}), "n2 on 1,0");
  EXPECT_EQ(text(6, {0, 4, 8, 12, 16, 20}), "n6 on 0,4,...,20");
  EXPECT_EQ(text(6, {0, 4, 8, 12, 16, 21}), "n6 on 0,4,8,12,16,21");
  EXPECT_EQ(text(10, {0, 1, 8, 9, 16, 17, 24, 25, 32, 33}), "n10 on 0-1,8-9,...,32-33");
  EXPECT_EQ(text(10, {0, 1, 8, 9, 16, 17, 24, 25, 32, 34}), "n10 on 0,1,8,9,16,17,24,25,32,34");
}

TEST(PartsRead, NotWhereAPartLiesInThePadding) {
  const Convolution layer(ConvolutionOptions{.num_output = 2, .kernel = {1}, .pad = {1}});
  const std::vector<Shape> inputs{{2, 2, 4, 4}}, outputs = layer.output_shapes(inputs, 1);
  ParallelConfig rows{.degrees = {.h = 6}, .devices = {0, 1, 2, 3, 4, 5}, .weights = {}};
  EXPECT_FALSE(parts_read(layer, inputs, outputs, rows));
  try {
    check_config(rows, layer, inputs, outputs, 6);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("would read padding alone; use fewer parts"));
  }
  ParallelConfig halves{.degrees = {.h = 2}, .devices = {0, 1}, .weights = {}};
  EXPECT_TRUE(parts_read(layer, inputs, outputs, halves));
  halves.weights = {1, 5};
  EXPECT_FALSE(parts_read(layer, inputs, outputs, halves));
  halves.weights = {5, 1};
  EXPECT_FALSE(parts_read(layer, inputs, outputs, halves));
}

TEST(Coordinates, AreDifferentForEveryDevice) {
  const Degrees degrees{.n = 2, .c = 3, .d = 1, .h = 2, .w = 2, .r = 2};
  std::set<std::array<int, 6>> seen;
  for (int i = 0; i < degrees.product(); ++i) {
    const Coordinates at = coordinates_of(degrees, i);
    seen.insert({at.n, at.d, at.h, at.w, at.c, at.r});
  }
  EXPECT_EQ(seen.size(), 48u);
}

TEST(Coordinates, WhatRCutsLiesAsIfChannelsWereCutMore) {
  const Shape domain{4, 24, 5, 5};
  ParallelConfig both{.degrees = {.c = 2, .r = 3}, .devices = {0, 1, 2, 3, 4, 5}, .weights = {}};
  ParallelConfig channels{.degrees = {.c = 6}, .devices = {0, 1, 2, 3, 4, 5}, .weights = {}};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(summed_block(domain, both, i), domain_block(domain, channels, i));
}

class CheckConfig : public ::testing::Test {
 protected:
  std::string refusal(const Degrees& degrees, int ranks, std::vector<int> devices = {}) {
    ParallelConfig config{.degrees = degrees, .devices = std::move(devices), .weights = {}};
    if (config.devices.empty())
      for (int i = 0; i < degrees.product(); ++i) config.devices.push_back(i);
    try {
      check_config(config, layer_, inputs_, layer_.output_shapes(inputs_, 1), ranks);
      return "";
    } catch (const UserError& error) {
      return error.what();
    }
  }
  Convolution layer_{[] {
    ConvolutionOptions options;
    options.num_output = 6;
    options.kernel = {3};
    return options;
  }()};
  std::vector<Shape> inputs_{Shape{4, 2, 8, 8}};
};

TEST_F(CheckConfig, TakesWhatFits) {
  EXPECT_EQ(refusal({.n = 2, .c = 2}, 4), "");
  EXPECT_EQ(refusal({.h = 6}, 8), "");
  EXPECT_EQ(refusal({.c = 3, .r = 2}, 6), "");
  EXPECT_EQ(refusal({.n = 2}, 4, {3, 1}), "");
}

TEST_F(CheckConfig, SaysWhatDoesNotAndWhatWould) {
  EXPECT_THAT(refusal({.n = 8}, 8), HasSubstr("only 4 samples; use at most 4"));
  EXPECT_THAT(refusal({.h = 7}, 8), HasSubstr("only 6 rows"));
  EXPECT_THAT(refusal({.d = 2}, 8), HasSubstr("there are only 1 planes"));
  EXPECT_THAT(refusal({.r = 4}, 8), HasSubstr("only 2 input channels"));
  EXPECT_THAT(refusal({.c = 6, .r = 2}, 12), HasSubstr("only 6 output channels"));
  EXPECT_THAT(refusal({.n = 4}, 2), HasSubstr("needs 4 devices, the job has 2 ranks"));
  EXPECT_THAT(refusal({.n = 2}, 4, {1, 1}), HasSubstr("given twice"));
  EXPECT_THAT(refusal({.n = 2}, 4, {1, 4}), HasSubstr("device 4 does not exist"));
  EXPECT_THAT(refusal({.n = 2}, 4, {1}), HasSubstr("1 devices are given"));
  EXPECT_THAT(refusal({.n = 0}, 4, {0}), HasSubstr("n is 0"));
}

TEST_F(CheckConfig, RefusesCutsThatTheLayerDoesNotHave) {
  InnerProduct product([] {
    InnerProductOptions options;
    options.num_output = 4;
    return options;
  }());
  ParallelConfig config{.degrees = {.h = 2}, .devices = {0, 1}, .weights = {}};
  EXPECT_THROW(check_config(config, product, inputs_, product.output_shapes(inputs_, 1), 2), UserError);
}

}  // namespace
}  // namespace cortado
