// Equality, text and key of every layer's options follow from the one list of their fields.
#include <gtest/gtest.h>
#include <set>

#include "cortado/base/error.h"
#include "cortado/layers/accuracy.h"
#include "cortado/layers/arg_max.h"
#include "cortado/layers/axpy.h"
#include "cortado/layers/batch_norm.h"
#include "cortado/layers/batch_reindex.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/concat.h"
#include "cortado/layers/contrastive_loss.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/crop.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/dropout.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/embed.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/filter.h"
#include "cortado/layers/flatten.h"
#include "cortado/layers/hdf5_output.h"
#include "cortado/layers/hinge_loss.h"
#include "cortado/layers/im2col.h"
#include "cortado/layers/infogain_loss.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/lrn.h"
#include "cortado/layers/multinomial_logistic_loss.h"
#include "cortado/layers/mvn.h"
#include "cortado/layers/normalize.h"
#include "cortado/layers/parameter.h"
#include "cortado/layers/permute.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/prelu.h"
#include "cortado/layers/problem.h"
#include "cortado/layers/recurrent.h"
#include "cortado/layers/reduction.h"
#include "cortado/layers/resampling.h"
#include "cortado/layers/reshape.h"
#include "cortado/layers/scale.h"
#include "cortado/layers/shuffle_channel.h"
#include "cortado/layers/sigmoid_cross_entropy_loss.h"
#include "cortado/layers/silence.h"
#include "cortado/layers/slice.h"
#include "cortado/layers/softmax.h"
#include "cortado/layers/softmax_loss.h"
#include "cortado/layers/source.h"
#include "cortado/layers/split.h"
#include "cortado/layers/spp.h"
#include "cortado/layers/tile.h"
#include "cortado/net/from_caffe.h"

#include "tests/base/changed_field.h"

namespace cortado {
namespace {

// Checks each field of a layer's options, and collects the types seen.
class OptionsOfLayers : public ::testing::Test {
 protected:
  template <typename Kind, typename Options>
  void check(const Options& options) {
    const Kind layer(options);
    types_.insert(std::string(layer.type()));
    EXPECT_EQ(key_of(Kind(options)), key_of(layer));
    testing::with_each_field_changed(options, [&](auto name, bool in_key, const Options& changed) {
      SCOPED_TRACE(std::string(layer.type()) + "." + std::string(name));
      EXPECT_FALSE(changed == options);
      const Kind other(changed);
      EXPECT_NE(other.options_text(Words::all), layer.options_text(Words::all));
      EXPECT_EQ(key_of(other) != key_of(layer), in_key);
    });
  }

  template <typename Kind>
  void check() {
    check<Kind>(typename std::decay_t<decltype(std::declval<Kind>().options())>{});
  }

  template <typename... Functions>
  void check_functions(std::variant<Functions...>*) {
    (check<Pointwise>(Functions{}), ...);
  }

  std::set<std::string> types_;
};

TEST_F(OptionsOfLayers, CountInEqualityTextAndKey) {
  check<Accuracy>();
  check<ArgMax>();
  check<Axpy>();
  check<BatchNorm>();
  check<BatchReindex>();
  check<Parameter>();
  check<Bias>();
  check<Concat>();
  check<ContrastiveLoss>();
  check<Convolution>();
  check<Crop>();
  check<Deconvolution>();
  check<Dropout>();
  check<Eltwise>(EltwiseOptions{.operation = EltwiseOptions::Operation::max});
  check<Embed>(EmbedOptions{.num_output = 2, .input_dim = 3});
  check<EuclideanLoss>();
  check<Filter>(FilterOptions{.samples = 1});
  check<Flatten>();
  check<Hdf5Output>(Hdf5OutputOptions{"a.h5"});
  check<HingeLoss>();
  check<Im2col>();
  check<InfogainLoss>();
  check<InnerProduct>();
  check<MultinomialLogisticLoss>();
  check<Lrn>();
  check<Mvn>();
  check<Normalize>();
  check<Permute>();
  check_functions(static_cast<PointwiseFunction*>(nullptr));
  check<Pooling>();
  check<PRelu>();
  for (const auto kind : {RecurrentOptions::Kind::lstm, RecurrentOptions::Kind::rnn})
    check<Recurrent>(RecurrentOptions{.kind = kind, .num_output = 1});
  check<Reduction>();
  check<Resampling>(UpsampleOptions{});
  check<Resampling>(InterpOptions{});
  check<Reshape>();
  check<Scale>();
  check<ShuffleChannel>();
  check<SigmoidCrossEntropyLoss>();
  check<Silence>();
  check<Slice>();
  check<Softmax>();
  check<SoftmaxLoss>();
  check<Split>();
  check<Spp>();
  check<Tile>();
  using Kind = SourceOptions::Kind;
  for (Kind kind : {Kind::data, Kind::image_data, Kind::hdf5_data, Kind::memory_data, Kind::dummy_data,
                    Kind::input, Kind::window_data, Kind::volume_data})
    check<Source>(SourceOptions{.kind = kind});
  for (std::string_view type : supported_layer_types())
    EXPECT_TRUE(types_.contains(std::string(type))) << type;
  EXPECT_EQ(types_.size(), supported_layer_types().size());
}

TEST(KeyOf, LeavesOutFillersAlone) {
  Convolution one({.num_output = 8, .kernel = {3}});
  Convolution other({.num_output = 8, .kernel = {3}, .weight_filler = {.value = 1}});
  EXPECT_EQ(key_of(one), key_of(other));
  EXPECT_FALSE(one.options() == other.options());
  EXPECT_EQ(
      key_of(one),
      "Convolution(num_output=8 bias_term=true group=1 kernel=[3] stride=[] pad=[] dilation=[] axis=1)");
}

}  // namespace
}  // namespace cortado
