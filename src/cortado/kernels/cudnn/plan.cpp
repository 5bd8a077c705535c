#include "cortado/kernels/cudnn/plan.h"

#include <algorithm>

namespace cortado::cudnn {
namespace {

// Engines that cuDNN compiles for a graph; of tensors whose channels are no multiples of `vector`, none.
constexpr int most_compiled = 1, vector = 8;

using Notes = std::vector<cudnnBackendNumericalNote_t>;

// What rounds more than a sum of products in f32 does; of factors in bf16 or TF32 tensor cores round nothing
// else.
Notes refused_notes(const Convolution& of) {
  Notes notes{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
              CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13,
              CUDNN_NUMERICAL_NOTE_FFT};
  if (!of.tf32) notes.push_back(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  if (!of.tf32 && of.type == ElementType::f32) notes.push_back(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  return notes;
}

bool rounds_more(const Descriptor& engine, const Convolution& of) {
  const Notes notes = engine.values<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const Notes refused = refused_notes(of);
  return std::ranges::any_of(notes,
                             [&](auto note) { return std::ranges::find(refused, note) != refused.end(); });
}

// Whether cuDNN compiles the engine's kernel while it makes a plan, which takes about a second.
bool is_compiled(const Descriptor& engine) {
  const auto notes = engine.values<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                               CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  return std::ranges::find(notes, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != notes.end();
}

// Engine 1 read beyond its tensors where a part of an image has other padding after it than before it: "an
// illegal memory access" for weights of 256 images of 96 x 15 x 27 in two groups (cuDNN 9.19, H100).
bool reads_beyond(int64_t engine, const GraphOf& of) {
  return engine == 1 && of.pass == Pass::backward_weights && of.convolution.before != of.convolution.after;
}

Descriptor engine_of(const Descriptor& configuration) {
  return configuration.parts(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1).at(0);
}

std::vector<Descriptor> configurations(const Descriptor& graph, const PlanFor& device,
                                       cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (device.properties) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device.properties);
  heuristics.finalize("heuristics are asked");
  return heuristics.parts(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                          heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS));
}

// The plan of a configuration; nothing where it does not fit or cuDNN cannot make it after all.
std::optional<Plan> plan_of(const Descriptor& configuration, const GraphOf& of, const PlanFor& device) try {
  const Descriptor engine = engine_of(configuration);
  const int64_t number = engine.values<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1).at(0);
  if (rounds_more(engine, of.convolution) || reads_beyond(number, of)) return std::nullopt;
  Plan made{Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)};
  made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (device.handle) made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, device.handle);
  if (device.properties) made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *device.properties);
  made.plan.finalize("a plan is made");
  made.workspace = made.plan.values<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1).at(0);
  made.engine = number;
  if (made.workspace > most_workspace) return std::nullopt;
  return made;
} catch (const Refusal&) {
  return std::nullopt;
}

}  // namespace

Descriptor device_properties(const std::string& text) {
  Descriptor made(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  made.set_all<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, text).finalize("a device is described");
  return made;
}

std::vector<Plan> plans(const GraphOf& of, const PlanFor& device, int most) {
  const Descriptor operations = graph(of, device.handle);
  std::vector<Plan> found;
  const bool vectors = of.convolution.x[1] % vector == 0 && of.convolution.y[1] % vector == 0;
  int compiled = vectors ? 0 : most_compiled;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    if (!found.empty()) break;
    for (const Descriptor& configuration : configurations(operations, device, mode)) {
      if (std::ssize(found) == most) break;
      if (is_compiled(engine_of(configuration)) && ++compiled > most_compiled) continue;
      if (auto plan = plan_of(configuration, of, device)) found.push_back(std::move(*plan));
    }
  }
  return found;
}

}  // namespace cortado::cudnn
