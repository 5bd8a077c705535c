#include "cortado/kernels/cudnn/gpu.h"

#include <algorithm>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <numeric>

#include "cortado/base/error.h"
#include "cortado/kernels/gpu/fastest.h"
#include "cortado/kernels/gpu/per_gpu.h"

namespace cortado::cudnn {
namespace {

Bytes bytes_of_extents(const std::vector<int64_t>& extents, ElementType type) {
  return bytes_of(std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>()), type);
}

// Memory for all tensors of a graph, in f32 whatever their types.
std::vector<std::pair<TensorId, gpu::Trial>> trial_tensors(const GraphOf& of) {
  std::vector<std::pair<TensorId, gpu::Trial>> made;
  const auto add = [&](TensorId id, const std::vector<int64_t>& extents) {
    made.emplace_back(id, gpu::Trial(bytes_of_extents(extents, ElementType::f32)));
  };
  add(id_x, of.convolution.x);
  add(id_w, of.convolution.w);
  add(id_y, of.convolution.y);
  if (of.bias) add(id_bias, {of.convolution.y[1]});
  return made;
}

}  // namespace

std::shared_ptr<Gpu> Gpu::current() {
  static gpu::PerGpu<Gpu, Refusal> known;
  return known.current([](int number) { return std::shared_ptr<Gpu>(new Gpu(number)); });
}

Gpu::Gpu(int number) : number_(number) { check(cudnnCreate(&handle_), "cuDNN begins"); }

Gpu::~Gpu() {
  plans_.clear();
  cudnnDestroy(handle_);
}

std::optional<Plan> Gpu::plan(const GraphOf& of) {
  const std::lock_guard lock(mutex_);
  const std::string key = of.text();
  if (const auto known = plans_.find(key); known != plans_.end()) return known->second;
  return plans_[key] = measured(of);
}

std::optional<Plan> Gpu::measured(const GraphOf& of) try {
  constexpr int most_plans = 8;
  const std::vector<Plan> found = plans(of, {.handle = handle_}, most_plans);
  if (found.empty()) return std::nullopt;
  const auto tensors = trial_tensors(of);
  const gpu::Trial workspace({std::max<int64_t>(1, std::ranges::max(found, {}, &Plan::workspace).workspace)});
  Pointers pointers;
  bool there = workspace.get() != nullptr;
  for (const auto& [id, memory] : tensors) {
    pointers.emplace_back(id, memory.get());
    there = there && memory.get();
  }
  if (!there) return found.front();
  return found[gpu::fastest(
      found, [&](const Plan& plan, cudaStream_t stream) { start(plan, stream, pointers, workspace.get()); },
      [&](const Plan& plan) {
        return fmt::format("engine {} of cuDNN for pass {}", plan.engine, of.text());
      })];
} catch (const Refusal&) {
  return std::nullopt;
}

void Gpu::run(const Plan& plan, void* stream, const Pointers& pointers, std::byte* workspace) try {
  const std::lock_guard lock(mutex_);
  cudaSetDevice(number_);  // of the thread that runs this lane
  start(plan, stream, pointers, workspace);
} catch (const Refusal& refusal) {
  throw InternalError(std::string("cuDNN runs what it has planned: ") + refusal.what());
}

void Gpu::start(const Plan& plan, void* stream, const Pointers& pointers, void* workspace) {
  check(cudnnSetStream(handle_, static_cast<cudaStream_t>(stream)), "a stream is set");
  std::vector<int64_t> ids;
  std::vector<void*> addresses;
  for (const auto& [id, address] : pointers) {
    ids.push_back(id);
    addresses.push_back(const_cast<void*>(address));
  }
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set_all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .set_all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace)
      .finalize("pointers are given");
  check(cudnnBackendExecute(handle_, plan.plan.raw(), pack.raw()), "a plan starts");
}

}  // namespace cortado::cudnn
