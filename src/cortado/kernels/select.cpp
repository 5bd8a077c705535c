#include "cortado/kernels/select.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/compute_threads.h"
#include "cortado/base/error.h"
#include "cortado/base/nearest_name.h"
#include "cortado/base/text.h"
#include "cortado/kernels/bf16_products.h"
#include "cortado/kernels/blocked.h"
#include "cortado/kernels/converted.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu_libraries.h"
#include "cortado/kernels/lowering/implicit_gemm.h"
#include "cortado/kernels/lowering/make_lowering.h"
#include "cortado/kernels/lowering/microkernel.h"
#include "cortado/kernels/native/narrow_groups.h"
#include "cortado/kernels/native/native.h"
#include "cortado/kernels/onednn/onednn.h"
#include "cortado/kernels/pairs/pairs.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reordered.h"
#include "cortado/kernels/tensor_type.h"
#include "cortado/kernels/winograd/winograd.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/sum_blocks.h"

namespace cortado {
namespace {

KernelOffer make_reference(const Task& task) { return {make_reference_kernel<float>(task), ""}; }

// An implementation and the types of the first layer of the chains it may take; empty: all.
struct Candidate {
  std::vector<std::string_view> types;
  Implementation implementation;
  bool baseline = false;       // there to be compared with, or a GPU's
  bool larger_errors = false;  // than those of sums in float32: for those who ask, or for bf16
  bool bf16 = false;           // makes kernels for bf16 tensors; others get theirs converted
  bool for_gpu = false;        // makes kernels that run on a GPU's stream
  // Says which tasks the next one in the list is faster at; null: none.
  bool (*after_next)(const Task&) = nullptr;
};

const std::vector<std::string_view> convolutions = {"Convolution", "Deconvolution"};

// Whether kernels by bf16 instructions are passed over, which the processor has.
bool passes_over(const Task& task, bool fast) {
  return !task.all_f32() && bf16_products() != Bf16Products::none && !fast;
}
constexpr const char* slow_products = "this processor's products of bf16 numbers are not the fastest";

// Whether the layer makes so few products for each element that memory bounds even slow ones, and f32 copies
// would be more of it.
bool makes_few_products(const Task& task) {
  constexpr double few = 32;
  const double products = task.layer().forward_flops(task.inputs, task.outputs).count / 2;
  return products <= few * static_cast<double>(task.inputs[0].size() + task.outputs[0].size());
}

// Ours read bf16 themselves where they take it.
bool slow_products_pay(const Task& task) {
  return bf16_products() == Bf16Products::slow && makes_few_products(task) &&
         !make_implicit_gemm(task).kernel;
}

KernelOffer make_fast_pairs(const Task& task) {
  return passes_over(task, bf16_products() == Bf16Products::dots) ? KernelOffer{nullptr, slow_products}
                                                                  : make_pairs(task);
}

KernelOffer make_onednn(const Task& task) {
  if (passes_over(task, has_fast_bf16_products() || slow_products_pay(task))) return {nullptr, slow_products};
  if (task.layer().type() == "Convolution") return make_onednn_convolution(task);
  if (task.layer().type() == "Deconvolution") return make_onednn_deconvolution(task);
  return make_onednn_inner_product(task);
}

// Whether a product of one group fills few registers. The layer alone says so, whatever the device's share.
bool has_narrow_groups(const Task& task) {
  constexpr int64_t narrow = 32;  // channels
  const ConvolutionOptions* options = convolution_options(task.layer());
  if (!options || options->group == 1) return false;
  return std::min(task.inputs[0][1], task.outputs[0][1]) < narrow * options->group;
}

// Whether a pointwise convolution in f32, without a ReLU after it, has few channels on one side, so that
// memory bounds it (more where channels fill panels), or more weights than a core's own cache holds. The
// layer alone says so.
bool suits_our_products(const Task& task) {
  constexpr int64_t fewest = 8, most = 32, most_in_panels = 128;  // channels
  constexpr int64_t many = 1 << 20;                               // weights
  const ConvolutionOptions* options = convolution_options(task.layer());
  if (!options || options->group > 1 || task.layer().type() != "Convolution") return false;
  if (!task.all_f32() || task.layers.size() > 1) return false;
  const int64_t inputs = task.inputs[0][1], outputs = task.outputs[0][1],
                channels = std::min(inputs, outputs);
  const bool in_panels = inputs % lowering::tile_columns == 0 && outputs % lowering::tile_columns == 0;
  const bool narrow = fewest <= channels && channels <= (in_panels ? most_in_panels : most);
  const Window window = options->resolve(task.inputs[0].rank());
  const auto all = [&](auto&& holds) { return std::ranges::all_of(window, holds); };
  if (!all([](const WindowAxis& axis) { return axis.kernel == 1 && axis.pad == 0; })) return false;
  const bool strided = !all([](const WindowAxis& axis) { return axis.stride == 1; });
  return (narrow && !strided) || (in_panels && inputs * outputs >= many);
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
          {name_of(type, blas), [=](const Task& task) { return make_lowering(task, type, {.blas = blas}); },
           name_of(lowering::LoweringType::one, blas)}};
}

// A native implementation, for tensors of both types: it reads and writes each tensor once.
Candidate native(std::vector<std::string_view> types, KernelOffer (*make)(const Task&)) {
  return {.types = std::move(types), .implementation = {"native", make}, .bf16 = true};
}

// Computed by the processor only where it is named.
Candidate on_gpu(std::vector<std::string_view> types, KernelOffer (*make)(const Task&)) {
  return {.types = std::move(types),
          .implementation = {gpu_kernels, make},
          .baseline = true,
          .bf16 = true,
          .for_gpu = true};
}

// A library of a GPU, for tensors of both types, and with f32 factors rounded to TF32.
Candidate of_gpu_library(std::string_view type, const char* name, KernelOffer (*make)(const Task&)) {
  return {.types = {type}, .implementation = {name, make}, .baseline = true, .bf16 = true, .for_gpu = true};
}
Candidate of_gpu_tf32(std::string_view type, const char* name, KernelOffer (*make)(const Task&)) {
  return {.types = {type},
          .implementation = {name, make},
          .baseline = true,
          .larger_errors = true,
          .for_gpu = true};
}

// Fastest first. The list is the whole policy: the first that accepts a task runs it. Winograd's algorithm
// passes the multiply-add limit where it accepts. oneDNN's channels-last convolutions reach the multiply-add
// limit with AVX-512 and half of it with AVX2; but of narrow groups ours take many times as long as its, and
// its wide inner products are slower than ours with either, and of narrow pointwise convolutions ours are as
// fast alone, and faster beside others (docs/explanation/kernels.md).
const std::vector<Candidate>& candidates() {
  static const bool onednn_first = __builtin_cpu_supports("avx512f");
  const Implementation implicit_gemm{"implicit-gemm", make_implicit_gemm};
  const Candidate our_convolutions{.types = convolutions,
                                   .implementation = implicit_gemm,
                                   .bf16 = true,
                                   .after_next = onednn_first ? nullptr : has_narrow_groups};
  Candidate onednn_convolutions = of_onednn(convolutions);
  constexpr bool with_avx512 = lowering::vector_lanes == 16;  // the program, not only the processor
  onednn_convolutions.after_next = onednn_first && with_avx512 ? suits_our_products : nullptr;
  using lowering::Blas;
  using lowering::LoweringType;
  static const std::vector<Candidate> list = {
      {.types = {"Convolution"}, .implementation = {"winograd-4x4", make_winograd_4x4}, .bf16 = true},
      {.types = {"Convolution"},
       .implementation = {"winograd-4x4-of-5x5", make_winograd_4x4_of_5x5},
       .larger_errors = true,
       .bf16 = true},
      {{"Convolution"}, {"winograd-5x5", make_winograd_5x5}},
      {{"Convolution"}, {"winograd", make_winograd}},
      {.types = {"Convolution"}, .implementation = {"depthwise", make_native_depthwise}, .bf16 = true},
      {.types = {"Convolution"},
       .implementation = {"narrow-groups", make_native_narrow_groups},
       .bf16 = true},
      {.types = {"Convolution"}, .implementation = {"pairs", make_fast_pairs}, .bf16 = true},
      onednn_first ? onednn_convolutions : our_convolutions,
      onednn_first ? our_convolutions : onednn_convolutions,
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
#define NATIVE(name, ...) native({__VA_ARGS__}, make_native_##name),
#include "cortado/kernels/layer_kernels.def"
      of_gpu_tf32("Convolution", "cudnn-tf32", make_cudnn_tf32_convolution),
      of_gpu_library("Convolution", "cudnn", make_cudnn_convolution),
      of_gpu_tf32("Deconvolution", "cudnn-tf32", make_cudnn_tf32_convolution),
      of_gpu_library("Deconvolution", "cudnn", make_cudnn_convolution),
      of_gpu_tf32("InnerProduct", "cublaslt-tf32", make_cublaslt_tf32_inner_product),
      of_gpu_library("InnerProduct", "cublaslt", make_cublaslt_inner_product),
#define GPU(name, ...) on_gpu({__VA_ARGS__}, make_gpu_##name),
#include "cortado/kernels/layer_kernels.def"
      {{}, {"reference", make_reference}},
  };
  return list;
}

// The candidates in the order in which the task is offered to them.
std::vector<const Candidate*> candidates_for(const Task& task) {
  std::vector<const Candidate*> order;
  for (const Candidate& candidate : candidates()) order.push_back(&candidate);
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    if (!order[i]->after_next || !order[i]->after_next(task)) continue;
    std::swap(order[i], order[i + 1]);
    ++i;
  }
  return order;
}

bool takes(const Candidate& candidate, std::string_view type) {
  return candidate.types.empty() || std::ranges::find(candidate.types, type) != candidate.types.end();
}

bool of_tensor_types(const Task& task) {
  return std::ranges::all_of(task.input_types, is_tensor_type) &&
         std::ranges::all_of(task.output_types, is_tensor_type);
}

// Whether the candidate may make kernels for tensors of the task's types themselves.
bool knows_types(const Candidate& candidate, const Task& task) {
  return task.all_f32() || (candidate.bf16 && of_tensor_types(task) && !task.f32_products);
}

KernelOffer converted_offer(const Candidate& candidate, const Task& task) {
  if (!of_tensor_types(task)) return {nullptr, "tensors of other types than f32 and bf16"};
  KernelOffer offer = candidate.implementation.make(in_f32(task));
  if (offer.kernel) offer.kernel = make_converted(std::move(offer.kernel), task);
  return offer;
}

KernelOffer offer_of(const Candidate& candidate, const Task& task) {
  if (!knows_types(candidate, task)) return converted_offer(candidate, task);
  KernelOffer offer = candidate.implementation.make(task);
  return offer.kernel || task.all_f32() ? std::move(offer) : converted_offer(candidate, task);
}

// Whether its rounding errors are accepted: next to those of bf16 tensors they are small.
bool allows(const std::string& kernels, const Candidate& candidate, const Task& task) {
  return !candidate.larger_errors || kernels == fast_math || kernels == gpu_fast_math ||
         kernels == candidate.implementation.name ||
         (candidate.bf16 && !task.all_f32() && !task.f32_products);
}

bool is_list_of_gpu(const std::string& kernels) { return kernels == gpu_list || kernels == gpu_fast_math; }

// Whether `kernels` names the candidate, or a list with it.
bool names(const std::string& kernels, const Candidate& candidate) {
  return candidate.implementation.name == kernels || (candidate.for_gpu && is_list_of_gpu(kernels));
}

// Whether `kernels` has a say in tasks of that type.
bool restricts(const std::string& kernels, std::string_view type) {
  if (kernels.empty() || kernels == fast_math) return false;
  if (!is_list_of_gpu(kernels)) require_kernels_named(kernels);
  return std::ranges::any_of(candidates(), [&](const Candidate& candidate) {
    return names(kernels, candidate) && takes(candidate, type);
  });
}

// The first that accepts; without a kernel when none does.
Selection find_kernel(const Task& task, const std::string& kernels) {
  Selection selection;
  const bool restricted = restricts(kernels, task.layer().type()), chain = task.layers.size() > 1;
  auto offers = [&](const Candidate& candidate, bool converted) {
    const Implementation& implementation = candidate.implementation;
    if (!takes(candidate, task.layer().type()) || !allows(kernels, candidate, task)) return false;
    if (!converted && !knows_types(candidate, task)) return false;
    if (restricted && !names(kernels, candidate) && !(chain && implementation.name == "reference"))
      return false;
    if (candidate.for_gpu && !restricted) return false;
    KernelOffer offer = converted ? converted_offer(candidate, task) : implementation.make(task);
    if (offer.kernel) {
      selection.kernel = std::move(offer.kernel);
      selection.implementation = implementation.name;
      selection.for_gpu = candidate.for_gpu;
    } else {
      selection.refusals.push_back(fmt::format("{}: {}", implementation.name, offer.refusal));
    }
    return selection.kernel != nullptr;
  };
  auto first_of_all = [&](bool converted) {
    return std::ranges::any_of(candidates_for(converted ? in_f32(task) : task),
                               [&](const Candidate* candidate) { return offers(*candidate, converted); });
  };
  if (!first_of_all(false) && !task.all_f32()) first_of_all(true);
  return selection;
}

Selection find_or_throw(const Task& task, const std::string& kernels) {
  Selection selection = find_kernel(task, kernels);
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
Selection in_common_order(const Task& task, const std::string& kernels) {
  Task all = of_all_replicas(task);
  // What oneDNN refuses in bf16 depends on the gradients that are wanted, which may differ between devices.
  if (!task.all_f32() && task.phase == Phase::train) {
    all.input_gradients.assign(all.input_gradients.size(), true);
    all.parameter_gradients.assign(all.parameter_gradients.size(), true);
  }
  std::vector<ParameterFormat> common = formats_of(*find_or_throw(all, kernels).kernel, task);
  Selection selection = find_kernel(task, kernels);
  if (selection.kernel && formats_of(*selection.kernel, task) == common) return selection;
  Task canonical = task;
  canonical.canonical_parameters = true;
  selection = find_kernel(canonical, kernels);
  if (!selection.kernel) selection = find_or_throw(canonical, "");  // it can do all replicas but this one
  selection.kernel = make_reordered(std::move(selection.kernel), std::move(common), task);
  return selection;
}

// The kernels of a task's blocks along an axis of its domain. All blocks get the kernel of the first one's
// implementation.
Selection select_blocks(const std::vector<Task>& tasks, std::vector<std::unique_ptr<Kernel>>& kernels,
                        const std::function<Selection(const Task&)>& select) {
  Selection first = select(tasks.front());
  kernels.push_back(std::move(first.kernel));
  for (size_t block = 1; block < tasks.size() && kernels.front(); ++block) {
    Selection other = select(tasks[block]);
    ensure(other.implementation == first.implementation, "blocks of a layer have one implementation");
    kernels.push_back(std::move(other.kernel));
  }
  return first;
}

// Whether gradients that are sums over samples are f32. Where not, samples are one block.
bool sums_in_f32(const Task& task) {
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    const int input = static_cast<int>(i);
    if (task.input_gradients[i] && task.input_type(input) != ElementType::f32 &&
        shared_by_samples(task.layer(), task.inputs, task.outputs, input))
      return false;
  }
  return true;
}

Selection select_sample_blocks(const Task& task) {
  const int blocks = sample_blocks(task.layer(), task.inputs, task.outputs);
  std::vector<Task> tasks{task};
  if (task.layer().cuts(task.inputs).n && sums_in_f32(task)) tasks = tasks_of_blocks(task, 0, blocks);
  std::vector<std::unique_ptr<Kernel>> kernels;
  Selection selection = select_blocks(tasks, kernels, [](const Task& block) {
    const ComputeThreads alone(1);
    return find_or_throw(block, "");
  });
  if (task.layers.size() > 1 && selection.implementation == "reference") return selection;
  selection.kernel = make_sample_blocked(task, tasks, std::move(kernels));
  return selection;
}

// Layers of has_fixed_products(): by our own products, none of whose sums depends on the box or on threads.
// The layer alone says whether they are Winograd's, whatever the device's share.
Selection select_fixed_products(Task task) {
  const int blocks = sample_blocks(task.layer(), task.inputs, task.outputs);
  const bool convolves = task.layer().products() == Products::convolution;
  task.output_blocks = channel_blocks(task.layer(), task.inputs, task.outputs);
  task.sample_blocks = convolves ? 0 : blocks;
  Task whole = task;
  whole.domain_box = Box::whole(task.layer().domain(task.inputs, task.outputs));
  whole.input_boxes.clear();
  whole.output_boxes.clear();
  for (const Shape& input : task.inputs) whole.input_boxes.push_back(Box::whole(input));
  for (const Shape& output : task.outputs) whole.output_boxes.push_back(Box::whole(output));
  Selection selection;
  const bool winograd = make_winograd(whole).kernel != nullptr;
  selection.implementation = winograd ? "winograd" : "implicit-gemm";
  const auto make = [&](const Task& part) {
    KernelOffer offer = winograd ? make_winograd_of_any_size(part) : make_implicit_gemm(part);
    if (!offer.kernel) selection.refusals.push_back(selection.implementation + ": " + offer.refusal);
    return std::move(offer.kernel);
  };
  selection.kernel = make(task);
  if (!selection.kernel || !convolves || !any_wanted(task.parameter_gradients)) return selection;
  const std::vector<Task> tasks = tasks_of_blocks(task, 0, blocks);
  std::vector<std::unique_ptr<Kernel>> kernels;
  {
    const ComputeThreads alone(1);
    for (const Task& part : tasks) kernels.push_back(make(part));
  }
  selection.kernel =
      make_weights_blocked(std::move(selection.kernel), make_sample_blocked(task, tasks, std::move(kernels)));
  return selection;
}

Selection select_reproducible(const Task& task) {
  return task.all_f32() && has_fixed_products(task.layer(), task.inputs, task.outputs)
             ? select_fixed_products(task)
             : select_sample_blocks(task);
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

std::vector<Implementation> implementations_of(const Task& task, const std::string& kernels) {
  std::vector<Implementation> known;
  for (const Candidate& candidate : candidates())
    if (takes(candidate, task.layer().type()) && allows(kernels, candidate, task) &&
        !candidate.types.empty() && !candidate.baseline)
      known.push_back({candidate.implementation.name,
                       [&candidate](const Task& given) { return offer_of(candidate, given); },
                       candidate.implementation.first_type});
  return known;
}

Selection select_kernel(const Task& task, const std::string& kernels) {
  if (kernels == reproducible_kernels) return select_reproducible(task);
  const std::string_view type = task.layer().type();
  const bool product = type == "InnerProduct" || std::ranges::find(convolutions, type) != convolutions.end();
  const bool agree = task.cut && product && !task.canonical_parameters && task.outputs[0].rank() > 1;
  return agree ? in_common_order(task, kernels) : find_or_throw(task, kernels);
}

}  // namespace cortado
