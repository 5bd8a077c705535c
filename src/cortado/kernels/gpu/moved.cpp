// Crop, Tile, Permute, ShuffleChannel, BatchReindex, Filter and Im2col: each element of an output is one of
// the input's.
#include <limits>
#include <vector>

#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/places.h"
#include "cortado/layers/batch_reindex.h"
#include "cortado/layers/crop.h"
#include "cortado/layers/filter.h"
#include "cortado/layers/im2col.h"
#include "cortado/layers/permute.h"
#include "cortado/layers/shuffle_channel.h"
#include "cortado/layers/tile.h"

namespace cortado {
namespace gpu {
namespace {

// A move says where an element of the output comes from, source(at, from), false where it is missing() in its
// place; and calls visit(to) for all that elements of the input may go to, of which the output's part counts.
struct Move {
  static constexpr bool reads_inputs = false;  // when it is bound
  CORTADO_EVERYWHERE float missing() const { return 0; }
};

struct CropMove : Move {
  Indices offsets;
  int rank = 0;
  explicit CropMove(const Task& task) : rank(task.outputs[0].rank()) {
    const std::vector<int64_t> given = dynamic_cast<const Crop&>(task.layer()).offsets(task.inputs[0]);
    for (int axis = 0; axis < rank; ++axis) offsets[axis] = given[static_cast<size_t>(axis)];
  }
  CropMove bound(const Arguments&) const { return *this; }
  CORTADO_EVERYWHERE bool source(const Indices& at, Indices& from) const {
    for (int axis = 0; axis < rank; ++axis) from[axis] = at[axis] + offsets[axis];
    return true;
  }
  template <typename Visit>
  CORTADO_EVERYWHERE void targets(const Indices& at, const AxesPlace&, Visit&& visit) const {
    Indices to;
    for (int axis = 0; axis < rank; ++axis) to[axis] = at[axis] - offsets[axis];
    visit(to);
  }
};

struct TileMove : Move {
  int axis, tiles;
  int64_t extent;
  explicit TileMove(const Task& task) {
    const TileOptions& options = dynamic_cast<const Tile&>(task.layer()).options();
    axis = task.inputs[0].canonical_axis(options.axis);
    tiles = options.tiles;
    extent = task.inputs[0][axis];
  }
  TileMove bound(const Arguments&) const { return *this; }
  CORTADO_EVERYWHERE bool source(const Indices& at, Indices& from) const {
    from = at;
    from[axis] %= extent;
    return true;
  }
  template <typename Visit>
  CORTADO_EVERYWHERE void targets(const Indices& at, const AxesPlace&, Visit&& visit) const {
    Indices to = at;
    for (int tile = 0; tile < tiles; ++tile, to[axis] += extent) visit(to);
  }
};

struct PermuteMove : Move {
  int axes[most_axes] = {}, rank;
  explicit PermuteMove(const Task& task) : rank(task.inputs[0].rank()) {
    const std::vector<int> given = dynamic_cast<const Permute&>(task.layer()).axes(task.inputs[0]);
    std::ranges::copy(given, axes);
  }
  PermuteMove bound(const Arguments&) const { return *this; }
  CORTADO_EVERYWHERE bool source(const Indices& at, Indices& from) const {
    for (int axis = 0; axis < rank; ++axis) from[axes[axis]] = at[axis];
    return true;
  }
  template <typename Visit>
  CORTADO_EVERYWHERE void targets(const Indices& at, const AxesPlace&, Visit&& visit) const {
    Indices to;
    for (int axis = 0; axis < rank; ++axis) to[axis] = at[axes[axis]];
    visit(to);
  }
};

// Channel k of run i becomes k * groups + i.
struct ShuffleMove : Move {
  int64_t groups, run;
  explicit ShuffleMove(const Task& task)
      : groups(dynamic_cast<const ShuffleChannel&>(task.layer()).options().group),
        run(task.inputs[0][1] / groups) {}
  ShuffleMove bound(const Arguments&) const { return *this; }
  CORTADO_EVERYWHERE bool source(const Indices& at, Indices& from) const {
    from = at;
    from[1] = at[1] % groups * run + at[1] / groups;
    return true;
  }
  template <typename Visit>
  CORTADO_EVERYWHERE void targets(const Indices& at, const AxesPlace&, Visit&& visit) const {
    Indices to = at;
    to[1] = at[1] % run * groups + at[1] / run;
    visit(to);
  }
};

// An index that names no sample makes the output not a number.
struct ReindexMove : Move {
  static constexpr bool reads_inputs = true;
  const float* index = nullptr;
  int64_t first = 0, samples = 0;
  explicit ReindexMove(const Task& task) : first(task.output_boxes[0][0].begin), samples(task.inputs[0][0]) {}
  ReindexMove bound(const Arguments& a) const {
    ReindexMove move = *this;
    move.index = a.inputs[1];
    return move;
  }
  CORTADO_EVERYWHERE float missing() const { return std::numeric_limits<float>::quiet_NaN(); }
  CORTADO_EVERYWHERE bool names(int64_t output) const {
    const float value = index[output - first];
    return value >= 0 && value < static_cast<float>(samples);
  }
  CORTADO_EVERYWHERE bool source(const Indices& at, Indices& from) const {
    if (!names(at[0])) return false;
    from = at;
    from[0] = static_cast<int64_t>(index[at[0] - first]);
    return true;
  }
  template <typename Visit>
  CORTADO_EVERYWHERE void targets(const Indices& at, const AxesPlace& outputs, Visit&& visit) const {
    Indices to = at;
    for (to[0] = first; to[0] < first + outputs.extent[0]; ++to[0])
      if (names(to[0]) && static_cast<int64_t>(index[to[0] - first]) == at[0]) visit(to);
  }
};

// Where another number of samples passes than the layer says, outputs are not numbers.
struct FilterMove : Move {
  static constexpr bool reads_inputs = true;
  const float* selector = nullptr;
  int64_t samples = 0, passing = 0;
  explicit FilterMove(const Task& task) : samples(task.inputs.back()[0]), passing(task.outputs[0][0]) {}
  FilterMove bound(const Arguments& a) const {
    FilterMove move = *this;
    move.selector = a.inputs.back();
    return move;
  }
  CORTADO_EVERYWHERE float missing() const { return std::numeric_limits<float>::quiet_NaN(); }
  CORTADO_EVERYWHERE bool source(const Indices& at, Indices& from) const {
    from = at;
    int64_t passed = 0;
    for (int64_t n = 0; n < samples; ++n) {
      if (selector[n] == 0) continue;
      if (passed == at[0]) from[0] = n;
      ++passed;
    }
    return passed == passing;
  }
  template <typename Visit>
  CORTADO_EVERYWHERE void targets(const Indices& at, const AxesPlace&, Visit&& visit) const {
    if (selector[at[0]] == 0) return;
    Indices to = at;
    to[0] = 0;
    for (int64_t n = 0; n < at[0]; ++n) to[0] += selector[n] != 0;
    visit(to);
  }
};

// The windows' elements are channels; those of the padding are 0.
struct Im2colMove : Move {
  int axes, taps = 1;
  int64_t image[3], kernel[3], stride[3], pad[3], dilation[3];
  explicit Im2colMove(const Task& task) : axes(task.inputs[0].rank() - 2) {
    const Window window = dynamic_cast<const Im2col&>(task.layer()).window(task.inputs[0].rank());
    for (int i = 0; i < axes; ++i) {
      const WindowAxis& axis = window[static_cast<size_t>(i)];
      image[i] = task.inputs[0][i + 2];
      kernel[i] = axis.kernel, stride[i] = axis.stride, pad[i] = axis.pad, dilation[i] = axis.dilation;
      taps *= static_cast<int>(axis.kernel);
    }
  }
  Im2colMove bound(const Arguments&) const { return *this; }
  CORTADO_EVERYWHERE bool source(const Indices& at, Indices& from) const {
    from = at;
    from[1] = at[1] / taps;
    int64_t tap = at[1] % taps;
    for (int i = axes - 1; i >= 0; --i) {
      from[i + 2] = at[i + 2] * stride[i] - pad[i] + tap % kernel[i] * dilation[i];
      tap /= kernel[i];
      if (from[i + 2] < 0 || from[i + 2] >= image[i]) return false;
    }
    return true;
  }
  template <typename Visit>
  CORTADO_EVERYWHERE void targets(const Indices& at, const AxesPlace&, Visit&& visit) const {
    Indices to = at;
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t rest = tap;
      bool lies = true;
      for (int i = axes - 1; i >= 0; --i) {
        const int64_t begin = at[i + 2] + pad[i] - rest % kernel[i] * dilation[i];
        lies = lies && begin >= 0 && begin % stride[i] == 0;
        to[i + 2] = begin / stride[i];
        rest /= kernel[i];
      }
      to[1] = at[1] * taps + tap;
      if (lies) visit(to);
    }
  }
};

template <typename MoveType>
struct MovedElement {
  MoveType move;
  AxesPlace input, output;
  const float* x;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    Indices from;
    y[i] = move.source(output.indices(i), from) ? x[input.offset(from)] : move.missing();
  }
};

template <typename MoveType>
struct MovedGradient {
  MoveType move;
  AxesPlace input, output;
  const float* dy;
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    double sum = 0;
    move.targets(input.indices(i), output, [&](const Indices& to) {
      if (output.holds(to)) sum += dy[output.offset(to)];
    });
    dx[i] = static_cast<float>(sum);
  }
};

// Inputs beyond the outputs say where, and have no gradient.
template <typename MoveType>
class MovedKernel : public Kernel {
 public:
  explicit MovedKernel(const Task& task) : move_(task) {
    for (const Box& box : task.input_boxes) inputs_.push_back(axes_place(box));
    for (const Box& box : task.output_boxes) outputs_.push_back(axes_place(box));
  }
  std::string name() const override { return "gpu move"; }
  BackwardReads backward_reads() const override {
    return {.inputs = MoveType::reads_inputs, .outputs = false};
  }
  void forward(const Arguments& a) override {
    for (size_t k = 0; k < outputs_.size(); ++k)
      for_each(a.stream, outputs_[k].elements,
               MovedElement<MoveType>{move_.bound(a), inputs_[k], outputs_[k], a.inputs[k], a.outputs[k]});
  }
  void backward(const Arguments& a) override {
    for (size_t k = 0; k < inputs_.size(); ++k) {
      float* dx = a.input_gradients[k];
      if (!dx) continue;
      const float* dy = k < outputs_.size() ? a.output_gradients[k] : nullptr;
      if (dy)
        for_each(a.stream, inputs_[k].elements,
                 MovedGradient<MoveType>{move_.bound(a), inputs_[k], outputs_[k], dy, dx});
      else
        for_each(a.stream, inputs_[k].elements, FillElement{0, dx});
    }
  }

 private:
  MoveType move_;
  std::vector<AxesPlace> inputs_, outputs_;
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_moved(const Task& task) {
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  const Layer* layer = &task.layer();
  if (dynamic_cast<const Crop*>(layer)) return gpu::offered<gpu::MovedKernel<gpu::CropMove>>(task);
  if (dynamic_cast<const Tile*>(layer)) return gpu::offered<gpu::MovedKernel<gpu::TileMove>>(task);
  if (dynamic_cast<const Permute*>(layer)) return gpu::offered<gpu::MovedKernel<gpu::PermuteMove>>(task);
  if (dynamic_cast<const ShuffleChannel*>(layer))
    return gpu::offered<gpu::MovedKernel<gpu::ShuffleMove>>(task);
  if (dynamic_cast<const BatchReindex*>(layer)) return gpu::offered<gpu::MovedKernel<gpu::ReindexMove>>(task);
  if (dynamic_cast<const Filter*>(layer)) return gpu::offered<gpu::MovedKernel<gpu::FilterMove>>(task);
  if (dynamic_cast<const Im2col*>(layer)) return gpu::offered<gpu::MovedKernel<gpu::Im2colMove>>(task);
  return {nullptr, "moves nothing"};
}

}  // namespace cortado
