#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cortado/base/box.h"
#include "cortado/base/fields.h"
#include "cortado/base/shape.h"
#include "cortado/base/units.h"

namespace cortado {

enum class Phase { train, test };

// How a parameter is first filled; Caffe's FillerParameter. fan_in = size / extent(0),
// fan_out = size / extent(1) (Caffe's definition), scaled as `variance_norm` says.
struct Filler {
  enum class Type { constant, uniform, gaussian, positive_unitball, xavier, msra, bilinear };
  enum class VarianceNorm { fan_in, fan_out, average };
  Type type = Type::constant;
  double value = 0;          // constant
  double min = 0, max = 1;   // uniform
  double mean = 0, std = 1;  // gaussian
  int sparse = -1;           // gaussian: expected number of non-zero inputs per output; -1: dense
  VarianceNorm variance_norm = VarianceNorm::fan_in;  // xavier, msra
  static constexpr auto fields =
      std::tuple{field("type", &Filler::type),     field("value", &Filler::value),
                 field("min", &Filler::min),       field("max", &Filler::max),
                 field("mean", &Filler::mean),     field("std", &Filler::std),
                 field("sparse", &Filler::sparse), field("variance_norm", &Filler::variance_norm)};
};

// One of a layer's parameters (Caffe: a blob). Shapes are Caffe's own, so files need no translation.
struct ParameterSpec {
  std::string role;  // "weight", "bias", "mean", ...
  Shape shape;
  Filler filler;
  bool learnable = true;  // false: written by forward (running statistics), never by the solver
};

// The dimensions along which a configuration may cut a layer's output (docs/explanation/types.md).
struct Cuts {
  bool n = false, c = false, d = false, h = false, w = false, r = false;
  static Cuts sample() { return {.n = true}; }
  static Cuts pointwise() { return {true, true, true, true, true, false}; }
  bool operator==(const Cuts&) const = default;
};

// The matrix products that a layer consists of; convolution: also its transposed form.
enum class Products { none, inner_product, convolution };

// What an output of a layer is in a network of precision bf16.
enum class OutputRule {
  bf16,       // layers of many products: here bf16 begins
  as_inputs,  // bf16 if input 0 is: layers that act pointwise, normalize, pool or move elements
  f32,        // sources, losses, probabilities, counts and indices: here bf16 ends
};

// What a layer *is*, free of devices and threads: shapes, parameters, dependencies, cost. The mathematics
// lives in kernels/. Options are plain structs held by the concrete class (LayerOf), so kernels read them
// after a dynamic_cast to the concrete type.
//
// `inputs` are global shapes in spoken order (N, C, D, H, W). Every function throws UserError, naming
// value and remedy but not the layer (the network adds name and line), when the inputs do not fit.
class Layer {
 public:
  virtual ~Layer() = default;

  // Caffe's type name: "Convolution".
  virtual std::string_view type() const = 0;

  // The options as words "num_output=8 bias_term=true ...". Layers of one type and text are the same layer,
  // those of one type and key compute the same in the same time.
  virtual std::string options_text(Words which) const = 0;

  // Shapes of all outputs. `outputs` is the number of tops the model file gives (layers with a variable
  // number, like Split and Slice, need it; others check it).
  virtual std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const = 0;

  // The shape that a configuration cuts: that of output 0 or, for layers that sum their input up (losses,
  // Accuracy) or have no output, that of input 0. Default: outputs[0].
  virtual Shape domain(std::span<const Shape> inputs, std::span<const Shape> outputs) const;

  // The part of output `output` that the device of box `domain_box` computes. Default: the domain's range on
  // axes of the domain's extent, the whole of others.
  virtual Box output_box(std::span<const Shape> inputs, std::span<const Shape> outputs, int output,
                         const Box& domain_box) const;

  // True when output `output` is a sum over the domain: each device computes an addend of the whole output.
  virtual bool sums(int output) const;

  // The part of input `input` that computing `output_box` of output `output` reads, clipped to the tensor;
  // for output 0 the box is one of the domain. A later output that is a sum (sums()) adds nothing to what
  // output 0 reads. This one function yields halos for every kernel, stride, padding, dilation and group.
  // Default: the whole input.
  virtual Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const;

  // Along which dimensions of its domain this layer may be cut. Default: none.
  virtual Cuts cuts(std::span<const Shape> inputs) const;

  virtual std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const;

  // The slice of parameter `parameter` that computing `domain_box` from `input_box` of input 0 needs (the
  // input box matters where the summed dimension r is cut). Default: the whole parameter.
  virtual Box parameter_box(std::span<const Shape> inputs, int parameter, const Box& domain_box,
                            const Box& input_box) const;

  // This layer without its bias, for layers that may be cut along r: it is added once, after the partial sums
  // are. Null where there is no bias.
  virtual std::shared_ptr<const Layer> without_bias() const;

  // Floating-point operations of the forward pass of the whole layer; a multiply-add counts two. Default: one
  // per output element.
  virtual Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const;

  // False where no gradient exists (labels, indices, outputs of Accuracy). Default: true.
  virtual bool differentiable(int input) const;

  // Caffe's default loss_weight of output `output`: 1 for output 0 of a loss layer, else 0.
  virtual double default_loss_weight(int output) const;

  // What kind of matrix products computes the layer, so that the rate of products, not of memory, bounds it.
  virtual Products products() const { return Products::none; }

  // True when the gradient of the parameters is a computation apart from that of the inputs (convolution,
  // deconvolution, inner product), so that a program makes two steps of the backward pass.
  virtual bool splits_backward() const { return products() != Products::none; }

  // What output `output` is in a network of precision bf16; that of output 0 also where a layer has none.
  // Default: bf16 of products, f32 of sources and losses, else as input 0.
  virtual OutputRule output_rule(int output) const;

  // What of this layer stays f32 beside bf16 outputs, in words for users; empty: nothing. Default: the
  // weights of products.
  virtual std::string_view f32_parts() const;

  // True when a kernel may run this layer and `next` as one, where `next` alone reads this layer's only
  // output. Default: false. A kernel may still refuse the two.
  virtual bool may_fuse_with(const Layer& /*next*/) const { return false; }

  // True when, in this phase, a pass needs statistics of the whole batch, so that devices which hold parts of
  // it sum up theirs.
  virtual bool sums_statistics(Phase) const { return false; }

  // True for layers that write files while they run: to run them anew does harm.
  virtual bool writes_files() const { return false; }

  // True for layers that refuse inputs by their values, so that measurements do not run them.
  virtual bool depends_on_values() const { return false; }

  // True for layers that bring samples in from outside (layers/source.h).
  virtual bool is_source() const { return false; }
};

using LayerPtr = std::shared_ptr<const Layer>;

// The part of input `input` that computing `domain_box` reads, for all outputs together; it may be empty.
Box read_box(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs, int input,
             const Box& domain_box);

// Throws UserError "needs 2 inputs, has 1" unless low <= count <= high (high < 0: any number).
void check_count(std::string_view what, size_t count, int low, int high);

}  // namespace cortado
