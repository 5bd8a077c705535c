#include <algorithm>
#include <fmt/format.h>
#include <ranges>

#include "cortado/base/error.h"
#include "cortado/base/nearest_name.h"
#include "cortado/base/text.h"
#include "cortado/kernels/converted.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/lowering/lowering.h"
#include "cortado/kernels/names.h"
#include "cortado/kernels/native/native.h"
#include "cortado/kernels/onednn/onednn.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reordered.h"
#include "cortado/kernels/winograd/winograd.h"
#include "cortado/layers/pointwise.h"

namespace cortado {
namespace {

KernelOffer make_reference(const Task& task) {
  auto kernel = make_reference_kernel<float>(task);
  if (!kernel) return {nullptr, "no reference kernel for " + std::string(task.layer().type())};
  return {std::move(kernel), ""};
}

// An implementation and the types of the first layer of the chains it may take; empty: all.
struct Candidate {
  std::vector<std::string_view> types;
  Implementation implementation;
  bool baseline = false;  // there to be compared with
  bool fast = false;      // with larger rounding errors than sums in float32: for those who ask
  bool bf16 = false;      // makes kernels for bf16 tensors; others get theirs converted
};

const std::vector<std::string_view> convolutions = {"Convolution", "Deconvolution"};

KernelOffer make_onednn(const Task& task) {
  if (task.layer().type() == "Convolution") return make_onednn_convolution(task);
  if (task.layer().type() == "Deconvolution") return make_onednn_deconvolution(task);
  return make_onednn_inner_product(task);
}

Candidate of_onednn(std::vector<std::string_view> types) {
  return {.types = std::move(types), .implementation = {"onednn", make_onednn}, .bf16 = true};
}

// BVLC Caffe's algorithm: one image at a time, im2col on one thread and one product of BLAS
// on all.
KernelOffer make_lowering_as_caffe(const Task& task) {
  return make_lowering(task, lowering::LoweringType::one, {.partitions = 1, .samples = 1, .serial = true});
}

Candidate lowering_candidate(lowering::LoweringType type, lowering::Blas blas) {
  return {convolutions,
          {name_of(type, blas), [=](const Task& task) { return make_lowering(task, type, {.blas = blas}); }}};
}

// Fastest first. The list is the whole policy: the first that accepts a task runs it. Winograd's algorithm
// passes the multiply-add limit where it accepts. oneDNN's channels-last convolutions reach the multiply-add
// limit with AVX-512 and half of it with AVX2; its wide inner products are slower than ours with either
// (docs/explanation/kernels.md).
const std::vector<Candidate>& candidates() {
  static const bool onednn_first = __builtin_cpu_supports("avx512f");
  const Implementation implicit_gemm{"implicit-gemm", make_implicit_gemm};
  using lowering::Blas;
  using lowering::LoweringType;
  static const std::vector<Candidate> list = {
      {.types = {"Convolution"}, .implementation = {"winograd-4x4", make_winograd_4x4}, .fast = true},
      {.types = {"Convolution"}, .implementation = {"winograd-5x5", make_winograd_5x5}, .fast = true},
      {{"Convolution"}, {"winograd", make_winograd}},
      onednn_first ? of_onednn(convolutions) : Candidate{convolutions, implicit_gemm},
      onednn_first ? Candidate{convolutions, implicit_gemm} : of_onednn(convolutions),
      {{"InnerProduct"}, implicit_gemm},
      of_onednn({"InnerProduct"}),
      lowering_candidate(LoweringType::one, Blas::openblas),
      lowering_candidate(LoweringType::two, Blas::openblas),
      lowering_candidate(LoweringType::three, Blas::openblas),
      lowering_candidate(LoweringType::one, Blas::onednn),
      lowering_candidate(LoweringType::two, Blas::onednn),
      lowering_candidate(LoweringType::three, Blas::onednn),
      lowering_candidate(LoweringType::one, Blas::blis),
      lowering_candidate(LoweringType::two, Blas::blis),
      lowering_candidate(LoweringType::three, Blas::blis),
      {convolutions, {"caffe", make_lowering_as_caffe}, true},
      {{"BatchNorm"}, {"native", make_native_batch_norm}},
      {{"Scale", "Bias"}, {"native", make_native_scale}},
      {{"PReLU"}, {"native", make_native_prelu}},
      {pointwise_types(), {"native", make_native_activation}},
      {{"Dropout"}, {"native", make_native_dropout}},
      {{"Pooling"}, {"native", make_native_pooling}},
      {{"LRN"}, {"native", make_native_lrn}},
      {{"Softmax"}, {"native", make_native_softmax}},
      {{"SoftmaxWithLoss"}, {"native", make_native_softmax_loss}},
      {{"Accuracy"}, {"native", make_native_accuracy}},
      {{"Concat"}, {"native", make_native_concat}},
      {{"Slice"}, {"native", make_native_slice}},
      {{"Eltwise"}, {"native", make_native_eltwise}},
      {{"Reshape", "Flatten"}, {"native", make_native_reshape}},
      {{"Crop"}, {"native", make_native_crop}},
      {{}, {"reference", make_reference}},
  };
  return list;
}

bool takes(const Candidate& candidate, std::string_view type) {
  return candidate.types.empty() || std::ranges::find(candidate.types, type) != candidate.types.end();
}

KernelOffer offer_of(const Candidate& candidate, const Task& task) {
  if (candidate.bf16 || task.all_f32()) return candidate.implementation.make(task);
  KernelOffer offer = candidate.implementation.make(in_f32(task));
  if (offer.kernel) offer.kernel = make_converted(std::move(offer.kernel), task);
  return offer;
}

// Whether its rounding errors are accepted.
bool allows(const std::string& only, const Candidate& candidate) {
  return !candidate.fast || only == fast_math || only == candidate.implementation.name;
}

// Whether `only` has a say in tasks of that type.
bool restricts(const std::string& only, std::string_view type) {
  if (only.empty() || only == fast_math) return false;
  require_kernels_named(only);
  return std::ranges::any_of(candidates(), [&](const Candidate& candidate) {
    return candidate.implementation.name == only && takes(candidate, type);
  });
}

// The first that accepts; without a kernel when none does.
Selection find_kernel(const Task& task, const std::string& only) {
  Selection selection;
  const bool restricted = restricts(only, task.layer().type()), chain = task.layers.size() > 1;
  auto offers = [&](const Candidate& candidate) {
    const Implementation& implementation = candidate.implementation;
    if (!takes(candidate, task.layer().type()) || !allows(only, candidate)) return false;
    if (restricted && implementation.name != only && !(chain && implementation.name == "reference"))
      return false;
    KernelOffer offer = offer_of(candidate, task);
    if (offer.kernel) {
      selection.kernel = std::move(offer.kernel);
      selection.implementation = implementation.name;
    } else {
      selection.refusals.push_back(fmt::format("{}: {}", implementation.name, offer.refusal));
    }
    return selection.kernel != nullptr;
  };
  auto first_of = [&](auto&& wanted) {
    return std::ranges::any_of(candidates() | std::views::filter(wanted), offers);
  };
  if (task.all_f32()) {
    first_of([](const Candidate&) { return true; });
  } else if (!first_of([](const Candidate& candidate) { return candidate.bf16; })) {
    first_of([](const Candidate& candidate) { return !candidate.bf16; });
  }
  return selection;
}

Selection find_or_throw(const Task& task, const std::string& only) {
  Selection selection = find_kernel(task, only);
  if (selection.kernel) return selection;
  std::string reasons;
  for (const std::string& refusal : selection.refusals) reasons += (reasons.empty() ? "" : "; ") + refusal;
  throw UserError(fmt::format("no kernel for layer type {}: {}", task.layer().type(), reasons));
}

std::vector<ParameterFormat> formats_of(const Kernel& kernel, const Task& task) {
  std::vector<ParameterFormat> formats;
  const int count = static_cast<int>(task.layer().parameters(task.inputs).size());
  for (int p = 0; p < count; ++p) formats.push_back(kernel.parameter_format(p));
  return formats;
}

// Replicas of a weight lie in one order on all devices that share the layer, whatever the parts of the
// tensors that they work on: that of the kernel for all replicas. A kernel that wants another one gets
// reordered ones.
Selection in_common_order(const Task& task, const std::string& only) {
  std::vector<ParameterFormat> common = formats_of(*find_or_throw(of_all_replicas(task), only).kernel, task);
  Selection selection = find_kernel(task, only);
  if (selection.kernel && formats_of(*selection.kernel, task) == common) return selection;
  Task canonical = task;
  canonical.canonical_parameters = true;
  selection = find_kernel(canonical, only);
  if (!selection.kernel) selection = find_or_throw(canonical, "");  // it can do all replicas but this one
  selection.kernel = make_reordered(std::move(selection.kernel), std::move(common), task);
  return selection;
}

}  // namespace

void require_kernels_named(const std::string& name, std::string_view also) {
  std::vector<std::string_view> names;
  if (!also.empty()) names.push_back(also);
  for (const Candidate& candidate : candidates()) {
    const std::string_view known = candidate.implementation.name;
    if (std::ranges::find(names, known) == names.end()) names.push_back(known);
  }
  if (std::ranges::find(names, name) != names.end()) return;
  throw UserError(fmt::format("there are no kernels named '{}'{} (known: {})", name,
                              did_you_mean(name, names), joined(names)));
}

std::vector<Implementation> implementations_of(const Task& task, const std::string& only) {
  std::vector<Implementation> known;
  for (const Candidate& candidate : candidates())
    if (takes(candidate, task.layer().type()) && allows(only, candidate) && !candidate.types.empty() &&
        !candidate.baseline)
      known.push_back({candidate.implementation.name,
                       [&candidate](const Task& given) { return offer_of(candidate, given); }});
  return known;
}

Selection select_kernel(const Task& task, const std::string& only) {
  const std::string_view type = task.layer().type();
  const bool product = type == "InnerProduct" || std::ranges::find(convolutions, type) != convolutions.end();
  const bool agree = task.cut && product && !task.canonical_parameters && task.outputs[0].rank() > 1;
  return agree ? in_common_order(task, only) : find_or_throw(task, only);
}

}  // namespace cortado
