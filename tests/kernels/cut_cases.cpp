#include "tests/kernels/cut_cases.h"

#include <cstdlib>

#include "cortado/base/error.h"
#include "cortado/layers/accuracy.h"
#include "cortado/layers/arg_max.h"
#include "cortado/layers/axpy.h"
#include "cortado/layers/batch_norm.h"
#include "cortado/layers/batch_reindex.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/concat.h"
#include "cortado/layers/contrastive_loss.h"
#include "cortado/layers/crop.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/dropout.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/embed.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/filter.h"
#include "cortado/layers/flatten.h"
#include "cortado/layers/hinge_loss.h"
#include "cortado/layers/im2col.h"
#include "cortado/layers/infogain_loss.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/lrn.h"
#include "cortado/layers/multinomial_logistic_loss.h"
#include "cortado/layers/mvn.h"
#include "cortado/layers/normalize.h"
#include "cortado/layers/permute.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/prelu.h"
#include "cortado/layers/recurrent.h"
#include "cortado/layers/reduction.h"
#include "cortado/layers/resampling.h"
#include "cortado/layers/reshape.h"
#include "cortado/layers/scale.h"
#include "cortado/layers/shuffle_channel.h"
#include "cortado/layers/sigmoid_cross_entropy_loss.h"
#include "cortado/layers/slice.h"
#include "cortado/layers/softmax.h"
#include "cortado/layers/softmax_loss.h"
#include "cortado/layers/split.h"
#include "cortado/layers/spp.h"
#include "cortado/layers/tile.h"

#include "tests/kernels/make_layer.h"

namespace cortado::check {
namespace {

// What random cases are drawn from.
class Draw {
 public:
  explicit Draw(std::mt19937_64& generator) : generator_(generator) {}
  int64_t in(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(generator_() % (high - low + 1));
  }
  bool one_in(int64_t n) { return in(1, n) == 1; }
  template <typename Value>
  Value of(std::initializer_list<Value> values) {
    return values.begin()[in(0, static_cast<int64_t>(values.size()) - 1)];
  }
  // N x C and `axes` spatial axes, fewer positions where there are many axes.
  Shape image(int64_t axes) {
    Shape shape{in(2, 5), in(2, 8)};
    for (int64_t i = 0; i < axes; ++i) shape.append(in(3, axes == 1 ? 16 : axes == 2 ? 9 : 5));
    return shape;
  }
  Shape image() { return image(of({1, 2, 2, 2, 3})); }
  std::vector<int64_t> each(int64_t axes, int64_t low, int64_t high) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < axes; ++i) values.push_back(in(low, high));
    return values;
  }

 private:
  std::mt19937_64& generator_;
};

CutCase exact(CutCase cut) {
  cut.tolerance = 0;
  cut.data.data = DataKind::small_integers;
  return cut;
}

ConvolutionOptions window(Draw& draw, int64_t axes) {
  ConvolutionOptions options;
  if (axes == 2 && draw.one_in(4)) {
    options.kernel = {1, 7};
    options.pad = {0, 3};
    return options;
  }
  options.kernel = draw.each(axes, 1, 3);
  options.stride = draw.each(axes, 1, draw.one_in(3) ? 4 : 2);
  options.pad = draw.each(axes, 0, 2);
  options.dilation = draw.each(axes, 1, draw.one_in(3) ? 2 : 1);
  return options;
}

CutCase convolution(Draw& draw, bool transposed) {
  const int64_t axes = draw.of({1, 2, 2, 3});
  Shape input = draw.image(axes);
  ConvolutionOptions options = window(draw, axes);
  options.group = draw.of({1, 1, 1, 2, 3, 8});
  if (options.group > 1) input.set(1, options.group * draw.in(1, 3));
  options.num_output = options.group * draw.in(1, 4);
  if (draw.one_in(8)) options.group = options.num_output = input[1];  // depthwise
  options.bias_term = !draw.one_in(3);
  CutCase cut{.layers = {transposed ? layer<Deconvolution>(options) : layer<Convolution>(options)},
              .inputs = {input}};
  if (draw.one_in(3)) cut.layers.push_back(relu());
  return exact(cut);
}

// Parts of it are large enough for Winograd's algorithm, most of them.
CutCase large_convolution(Draw& draw) {
  const Shape input{draw.in(2, 3), draw.in(33, 50), draw.in(10, 15), draw.in(10, 15)};
  ConvolutionOptions options{.num_output = draw.in(33, 50), .bias_term = !draw.one_in(3), .kernel = {3}};
  options.pad = draw.each(2, 0, 2);
  CutCase cut{.layers = {layer<Convolution>(options)}, .inputs = {input}};
  if (draw.one_in(2)) cut.layers.push_back(relu());
  return exact(cut);
}

CutCase inner_product(Draw& draw) {
  InnerProductOptions options{
      .num_output = draw.in(2, 20), .bias_term = !draw.one_in(3), .transpose = draw.one_in(2)};
  Shape input = draw.image(draw.in(0, 3));
  if (input.rank() > 2 && draw.one_in(4)) options.axis = 2;
  CutCase cut{.layers = {layer<InnerProduct>(options)}, .inputs = {input}};
  if (draw.one_in(3)) cut.layers.push_back(relu());
  return exact(cut);
}

LayerPtr activation(Draw& draw) {
  const PointwiseFunction functions[] = {ReluOptions{}, ReluOptions{.negative_slope = 0.1}, Relu6Options{},
                                         SwishOptions{.beta = 1.5}, ClipOptions{.min = -0.5, .max = 0.7}};
  return layer<Pointwise>(functions[draw.in(0, std::size(functions) - 1)]);
}

CutCase batch_norm(Draw& draw) {
  BatchNormOptions options{.moving_average_fraction = 0.9};
  if (draw.one_in(4)) options.use_global_stats = draw.one_in(2);
  Shape input = draw.image();
  input.set(0, draw.in(4, 6));
  CutCase cut{.layers = {layer<BatchNorm>(options)}, .inputs = {input}};
  if (!draw.one_in(4)) cut.layers.push_back(layer<Scale>(ScaleOptions{.bias_term = !draw.one_in(3)}));
  if (draw.one_in(2)) cut.layers.push_back(activation(draw));
  if (draw.one_in(5)) cut.phase = Phase::test;
  return cut;
}

CutCase scale(Draw& draw) {
  Shape input = draw.image();
  const bool two = draw.one_in(3);
  Broadcast broadcast;
  if (two || draw.one_in(3)) broadcast = {.axis = static_cast<int>(draw.in(0, 2)), .num_axes = 2};
  if (broadcast.axis + broadcast.num_axes > input.rank()) broadcast.num_axes = 1;
  std::vector<Shape> inputs{input};
  if (two) inputs.emplace_back(input.extents().subspan(broadcast.axis, broadcast.num_axes));
  if (draw.one_in(3)) return {.layers = {layer<Bias>(BiasOptions{.broadcast = broadcast})}, .inputs = inputs};
  ScaleOptions options{.broadcast = broadcast, .bias_term = draw.one_in(2)};
  return {.layers = {layer<Scale>(options)}, .inputs = inputs};
}

CutCase pointwise(Draw& draw) {
  LayerPtr function = layer<Pointwise>(SigmoidOptions{});
  if (draw.one_in(3)) function = layer<Pointwise>(TanhOptions{});
  if (draw.one_in(3)) function = layer<PRelu>(PReluOptions{.channel_shared = draw.one_in(2)});
  if (draw.one_in(3)) function = layer<Dropout>(DropoutOptions{.ratio = 0.4});
  if (draw.one_in(3)) return exact({.layers = {relu()}, .inputs = {draw.image()}});
  return {.layers = {function}, .inputs = {draw.image(draw.in(0, 3))}};
}

CutCase pooling(Draw& draw) {
  const int64_t axes = draw.of({1, 2, 2, 3});
  using Method = PoolingOptions::Method;
  PoolingOptions options{.method = draw.of({Method::max, Method::max, Method::average, Method::stochastic})};
  options.rounding = draw.of({Rounding::up, Rounding::up, Rounding::down});
  if (draw.one_in(6)) {
    options.global_pooling = true;
  } else {
    options.kernel = draw.each(axes, 2, 3);
    options.stride = draw.each(axes, 1, draw.one_in(3) ? 4 : 2);
    if (options.method != Method::stochastic) options.pad = draw.each(axes, 0, 1);
    if (options.method != Method::max && options.rounding == Rounding::up)
      options.rounding = Rounding::up_inside;  // no windows outside the image: they have no value
  }
  CutCase cut{.layers = {layer<Pooling>(options)}, .inputs = {draw.image(axes)}};
  if (options.method == Method::stochastic) {
    cut.data.inputs = {{.low = 0.1, .high = 1}};
    if (draw.one_in(2)) cut.phase = Phase::test;
  }
  if (options.method != Method::max) return cut;
  cut.outputs = draw.one_in(3) ? 2 : 1;
  return exact(cut);
}

CutCase spp(Draw& draw) {
  const auto method = draw.of({SppOptions::Method::max, SppOptions::Method::average});
  CutCase cut{.layers = {layer<Spp>(SppOptions{draw.in(1, 2), method})}, .inputs = {draw.image()}};
  return method == SppOptions::Method::max ? exact(cut) : cut;
}

CutCase lrn(Draw& draw) {
  LrnOptions options{.local_size = draw.of({3, 5}), .alpha = 0.5, .beta = draw.of({0.75, 0.6})};
  if (draw.one_in(3)) options.region = LrnOptions::Region::within_channel;
  Shape input = draw.image();
  input.set(1, draw.in(2, 20));
  return {.layers = {layer<Lrn>(options)}, .inputs = {input}};
}

// Labels of the shapes that nets give them.
Shape labels_of(Draw& draw, const Shape& scores) {
  Shape labels{scores[0]};
  if (draw.one_in(2)) labels.append(1);
  if (scores.rank() > 2 && draw.one_in(4)) {
    labels.append(scores.count(2));
    return labels;
  }
  for (int axis = 2; axis < scores.rank(); ++axis) labels.append(scores[axis]);
  return labels;
}

CutCase softmax_loss(Draw& draw) {
  using N = Normalization;
  SoftmaxLossOptions options{.normalization = draw.of({N::valid, N::valid, N::full, N::batch_size, N::none})};
  if (draw.one_in(2)) options.ignore_label = 1;
  if (draw.one_in(3)) options.label_smoothing = 0.1;
  Shape scores = draw.image(draw.in(0, 3));
  CutCase cut{.layers = {layer<SoftmaxLoss>(options)}, .inputs = {scores, labels_of(draw, scores)}};
  cut.outputs = draw.one_in(3) ? 2 : 1;
  cut.data.inputs = {{.low = -3, .high = 3}, {0, static_cast<double>(scores[1]), true}};
  if (draw.one_in(4)) cut.phase = Phase::test;
  return cut;
}

CutCase infogain_loss(Draw& draw) {
  using N = Normalization;
  InfogainLossOptions options{.normalization = draw.of({N::valid, N::valid, N::full, N::none})};
  if (draw.one_in(2)) options.ignore_label = 1;
  Shape scores = draw.image(draw.in(0, 3));
  CutCase cut{.layers = {layer<InfogainLoss>(options)},
              .inputs = {scores, labels_of(draw, scores), {scores[1], scores[1]}}};
  cut.outputs = draw.one_in(3) ? 2 : 1;
  cut.data.inputs = {{.low = -3, .high = 3}, {0, static_cast<double>(scores[1]), true}};
  return cut;
}

CutCase accuracy(Draw& draw) {
  AccuracyOptions options{.top_k = static_cast<int>(draw.in(1, 2))};
  if (draw.one_in(2)) options.ignore_label = 0;
  Shape scores = draw.image(draw.in(0, 3));
  CutCase cut{.layers = {layer<Accuracy>(options)}, .inputs = {scores, labels_of(draw, scores)}};
  cut.outputs = draw.one_in(2) ? 2 : 1;
  cut.phase = Phase::test;
  cut.data.inputs = {{}, {0, static_cast<double>(scores[1]), true}};
  return cut;
}

CutCase other_loss(Draw& draw) {
  Shape a = draw.image(draw.in(0, 3));
  Shape b = a;
  if (draw.one_in(3)) b = Shape{a[0], a.count(1)};
  if (draw.one_in(4)) return {.layers = {layer<EuclideanLoss>()}, .inputs = {a, b}};
  if (draw.one_in(3)) {
    SigmoidCrossEntropyLossOptions options{
        .normalization = draw.of({Normalization::valid, Normalization::batch_size, Normalization::full})};
    if (draw.one_in(2)) options.ignore_label = 1;
    CutCase cut{.layers = {layer<SigmoidCrossEntropyLoss>(options)}, .inputs = {a, b}};
    cut.data.inputs = {{.low = -3, .high = 3}, {0, 2, true}};
    return cut;
  }
  if (draw.one_in(2)) {
    HingeLossOptions options{.norm = draw.of({HingeLossOptions::Norm::l1, HingeLossOptions::Norm::l2})};
    CutCase cut{.layers = {layer<HingeLoss>(options)}, .inputs = {a, {a[0]}}};
    cut.data.inputs = {{}, {0, static_cast<double>(a.count(1)), true}};
    return cut;
  }
  if (draw.one_in(3)) {
    CutCase cut{.layers = {layer<MultinomialLogisticLoss>()}, .inputs = {a, {a[0]}}};
    cut.data.inputs = {{.low = 0.1, .high = 1}, {0, static_cast<double>(a.count(1)), true}};
    return cut;
  }
  Shape features{a[0], a[1]};
  CutCase cut{.layers = {layer<ContrastiveLoss>(ContrastiveLossOptions{.margin = 2})},
              .inputs = {features, features, {a[0]}}};
  cut.data.inputs = {{}, {}, {0, 2, true}};
  return cut;
}

CutCase softmax(Draw& draw) {
  Shape input = draw.image(draw.in(0, 3));
  SoftmaxOptions options{.axis = draw.one_in(3) ? static_cast<int>(draw.in(0, input.rank() - 1)) : 1};
  return {.layers = {layer<Softmax>(options)}, .inputs = {input}};
}

CutCase concat(Draw& draw) {
  Shape input = draw.image(draw.in(0, 3));
  const int axis = draw.one_in(2) ? 1 : static_cast<int>(draw.in(0, input.rank() - 1));
  std::vector<Shape> inputs(draw.in(1, 4), input);
  for (Shape& shape : inputs) shape.set(axis, draw.in(1, 8));
  return exact({.layers = {layer<Concat>(ConcatOptions{.axis = axis})}, .inputs = inputs});
}

CutCase eltwise(Draw& draw) {
  if (draw.one_in(4)) {
    const Shape x = draw.image(draw.in(0, 3));
    Shape factor{x[0], x[1]};
    if (draw.one_in(2)) factor.append(1);
    return exact({.layers = {layer<Axpy>()}, .inputs = {factor, x, x}});
  }
  using Operation = EltwiseOptions::Operation;
  EltwiseOptions options{.operation =
                             draw.of({Operation::sum, Operation::sum, Operation::prod, Operation::max})};
  CutCase cut{.layers = {layer<Eltwise>(options)}, .inputs = std::vector<Shape>(draw.in(2, 3), draw.image())};
  if (options.operation == Operation::sum && draw.one_in(2)) cut.layers.push_back(relu());
  return options.operation == Operation::prod ? cut : exact(cut);
}

CutCase parts(Draw& draw) {
  Shape input = draw.image();
  if (draw.one_in(3)) return exact({.layers = {layer<Split>()}, .inputs = {input}, .outputs = 2});
  const int axis = draw.one_in(2) ? 1 : static_cast<int>(draw.in(0, input.rank() - 1));
  input.set(axis, draw.in(2, 5));
  SliceOptions options{.axis = axis, .slice_points = {draw.in(1, input[axis] - 1)}};
  return exact({.layers = {layer<Slice>(options)}, .inputs = {input}, .outputs = 2});
}

CutCase shape_layer(Draw& draw) {
  Shape input = draw.image();
  if (draw.one_in(6)) {
    const int64_t axes = input.rank() - 2;
    Im2colOptions options{.kernel = draw.each(axes, 1, 3), .stride = draw.each(axes, 1, 2)};
    options.pad = draw.each(axes, 0, 2);
    return exact({.layers = {layer<Im2col>(options)}, .inputs = {input}});
  }
  if (draw.one_in(6)) {
    CutCase cut{.layers = {layer<Filter>(FilterOptions{.samples = input[0]})}, .inputs = {input, {input[0]}}};
    cut.data.inputs = {{}, {.low = 1, .high = 3, .integers = true}};
    return exact(cut);
  }
  if (draw.one_in(6)) {
    CutCase cut{.layers = {layer<BatchReindex>()}, .inputs = {input, {draw.in(2, 7)}}};
    cut.data.inputs = {{}, {0, static_cast<double>(input[0]), true}};
    return exact(cut);
  }
  if (draw.one_in(4)) {
    const int64_t first = draw.in(0, input.rank() - 1);
    return exact({.layers = {layer<Permute>(PermuteOptions{.order = {first}})}, .inputs = {input}});
  }
  if (draw.one_in(4)) {
    const int axis = static_cast<int>(draw.in(0, input.rank() - 1));
    return exact({.layers = {layer<Tile>(TileOptions{.axis = axis, .tiles = 2})}, .inputs = {input}});
  }
  if (draw.one_in(4)) {
    input.set(1, 6);
    const int group = static_cast<int>(draw.in(2, 3));
    return exact(
        {.layers = {layer<ShuffleChannel>(ShuffleChannelOptions{.group = group})}, .inputs = {input}});
  }
  if (draw.one_in(3)) {
    Shape reference = input;
    for (int axis = 2; axis < input.rank(); ++axis) reference.set(axis, draw.in(2, input[axis] - 1));
    return exact({.layers = {layer<Crop>(CropOptions{.offset = {1}})}, .inputs = {input, reference}});
  }
  if (draw.one_in(2)) {
    return exact({.layers = {layer<Flatten>(FlattenOptions{.axis = static_cast<int>(draw.in(1, 2))})},
                  .inputs = {input}});
  }
  return exact({.layers = {layer<Reshape>(ReshapeOptions{.shape = {0, -1, 1}})}, .inputs = {input}});
}

CutCase reducing_layer(Draw& draw) {
  Shape input = draw.image();
  const int axis = static_cast<int>(draw.in(1, input.rank() - 1));
  if (draw.one_in(3)) {
    MvnOptions options{.normalize_variance = draw.one_in(2), .across_channels = draw.one_in(3)};
    return {.layers = {layer<Mvn>(options)}, .inputs = {input}};
  }
  if (draw.one_in(4)) {
    NormalizeOptions options{.across_spatial = draw.one_in(2), .channel_shared = draw.one_in(2)};
    return {.layers = {layer<Normalize>(options)}, .inputs = {input}};
  }
  if (draw.one_in(3)) {
    ArgMaxOptions options{.out_max_val = draw.one_in(2), .top_k = 2};
    if (draw.one_in(2)) options.axis = axis;
    return {.layers = {layer<ArgMax>(options)}, .inputs = {input}};
  }
  if (draw.one_in(2)) {
    using Operation = ReductionOptions::Operation;
    ReductionOptions options{.operation = draw.of({Operation::sum, Operation::sumsq, Operation::mean}),
                             .axis = axis};
    return {.layers = {layer<Reduction>(options)}, .inputs = {input}};
  }
  EmbedOptions options{.num_output = 5, .input_dim = 7, .bias_term = draw.one_in(2)};
  CutCase cut{.layers = {layer<Embed>(options)}, .inputs = {draw.one_in(2) ? Shape{6} : Shape{4, 3}}};
  cut.data.inputs = {{0, 7, true}};
  return cut;
}

CutCase recurrent_layer(Draw& draw) {
  using Kind = RecurrentOptions::Kind;
  const RecurrentOptions options{
      .kind = draw.of({Kind::lstm, Kind::rnn}), .num_output = draw.in(1, 9), .expose_hidden = draw.one_in(2)};
  Shape x{draw.in(1, 4), draw.in(2, 9), draw.in(1, 6)};
  if (draw.one_in(3)) x.append(draw.in(1, 3));
  const int states = options.expose_hidden ? (options.kind == Kind::lstm ? 2 : 1) : 0;
  CutCase cut{.layers = {layer<Recurrent>(options)}, .inputs = {x, {x[0], x[1]}}, .outputs = 1 + states};
  if (draw.one_in(2)) cut.inputs.push_back({x[1], draw.in(1, 4)});
  cut.inputs.insert(cut.inputs.end(), static_cast<size_t>(states), Shape{1, x[1], options.num_output});
  cut.data.inputs = {{}, {.low = 0, .high = 2, .integers = true}};
  return cut;
}

CutCase resampling(Draw& draw) {
  const int64_t axes = draw.of({1, 2, 2, 3});
  CutCase cut{.inputs = {draw.image(axes)}};
  if (draw.one_in(3)) {
    cut.layers = {layer<Resampling>(UpsampleOptions{.scale = draw.in(1, 3)})};
    return exact(cut);
  }
  if (draw.one_in(2)) {
    cut.layers = {layer<Resampling>(UpsampleOptions{draw.in(1, 4), UpsampleOptions::Mode::linear})};
    return cut;
  }
  InterpOptions options;
  if (draw.one_in(2)) options.pad_begin = -draw.in(0, 1), options.pad_end = -draw.in(0, 1);
  if (axes == 2 && draw.one_in(2)) {
    options.height = draw.in(1, 12), options.width = draw.in(1, 12);
  } else if (draw.one_in(3)) {
    Shape reference = cut.inputs[0];
    for (int axis = 2; axis < reference.rank(); ++axis) reference.set(axis, draw.in(1, 9));
    cut.inputs.push_back(reference);
  } else {
    options.zoom_factor = draw.in(1, 3), options.shrink_factor = draw.in(0, 2);
  }
  cut.layers = {layer<Resampling>(options)};
  return cut;
}

struct Kind {
  const char* name;
  CutCase (*make)(Draw&);
};
const Kind kinds[] = {
    {"convolution", [](Draw& draw) { return convolution(draw, false); }},
    {"deconvolution", [](Draw& draw) { return convolution(draw, true); }},
    {"inner product", inner_product},
    {"batch norm", batch_norm},
    {"scale", scale},
    {"pointwise", pointwise},
    {"pooling", pooling},
    {"pyramids of pooling", spp},
    {"lrn", lrn},
    {"resampling", resampling},
    {"recurrent", recurrent_layer},
    {"softmax loss", softmax_loss},
    {"infogain loss", infogain_loss},
    {"accuracy", accuracy},
    {"other losses", other_loss},
    {"softmax", softmax},
    {"concat", concat},
    {"eltwise", eltwise},
    {"slice and split", parts},
    {"shape layers", shape_layer},
    {"reducing layers", reducing_layer},
    {"large convolution", large_convolution},
};

// Up to twelve devices, over dimensions that the layer allows to be cut and that are long enough.
void cut_at_random(CutCase& cut, Draw& draw) {
  const Task whole = whole_task(cut);
  const Shape domain = whole.domain_box.shape();
  const Cuts cuts = whole.layer().cuts(whole.inputs);
  const int rank = domain.rank();
  struct Dimension {
    bool allowed;
    int64_t extent;
    int64_t& degree;
  };
  auto extent = [&](int axis, int first) { return axis >= first && axis < rank ? domain[axis] : 1; };
  auto& degrees = cut.degrees;
  Dimension dimensions[] = {
      {cuts.n, extent(0, 0), degrees.n},
      {cuts.c, extent(1, 1), degrees.c},
      {cuts.d, extent(rank - 3, 2), degrees.d},
      {cuts.h, extent(rank - 2, 2), degrees.h},
      {cuts.w, extent(rank - 1, 2), degrees.w},
      {cuts.r && cut.layers.size() == 1, whole.inputs[0].rank() > 1 ? whole.inputs[0][1] : 1, degrees.r}};
  int64_t devices = 1;
  for (int attempt = 0; attempt < 20 && devices < 12; ++attempt) {
    Dimension& dimension = dimensions[draw.in(0, 5)];
    const int64_t degree = draw.in(2, 4);
    if (!dimension.allowed || dimension.degree > 1 || dimension.extent < degree || devices * degree > 12)
      continue;
    dimension.degree = degree;
    devices *= degree;
    if (draw.one_in(3)) break;
  }
  if (degrees.r == 1) return;
  if (auto plain = cut.layers[0]->without_bias()) cut.layers[0] = plain;
}

}  // namespace

uint64_t number_from(const char* variable, uint64_t fallback) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : fallback;
}

int cut_kinds() { return static_cast<int>(std::size(kinds)); }
const char* cut_kind_name(int kind) { return kinds[kind].name; }

CutCase random_cut_case(int kind, std::mt19937_64& generator) {
  Draw draw(generator);
  while (true) {
    try {
      CutCase cut = kinds[kind].make(draw);
      cut.data.seed = static_cast<uint64_t>(draw.in(1, 1000));
      cut_at_random(cut, draw);
      if (whole_task(cut).parameter_gradients.empty()) return cut;
      cut.frozen = draw.one_in(8);
      cut.from_data = draw.one_in(8);
      cut.shared = draw.one_in(8);
      return cut;
    } catch (const UserError&) {  // options that do not fit the shape: draw again
    }
  }
}

}  // namespace cortado::check
