#include "cortado/layers/spp.h"

#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"

namespace cortado {
namespace gpu {
namespace {

constexpr int most_levels = 12;
constexpr int spatial = 3;  // d, h, w; a missing axis has one position

// The windows of a level along each axis: `count` of them, one `kernel` after the other.
struct PyramidLevel {
  int64_t kernel[spatial] = {1, 1, 1}, pad[spatial] = {}, count[spatial] = {1, 1, 1};
  int64_t first = 0;  // of its outputs among those of a sample

  CORTADO_EVERYWHERE int64_t windows() const { return count[0] * count[1] * count[2]; }
  CORTADO_EVERYWHERE int64_t size() const { return kernel[0] * kernel[1] * kernel[2]; }
};

struct Pyramid {
  Part input;
  int64_t outputs;          // of a sample
  int64_t samples, levels;  // samples: held
  PyramidLevel level[most_levels];

  // Calls visit(element of the input, number in the image) for what an output reads.
  template <typename Visit>
  CORTADO_EVERYWHERE void positions(int64_t i, Visit&& visit) const {
    int64_t k = i % outputs;
    int l = 0;
    while (l + 1 < levels && level[l + 1].first <= k) ++l;
    const PyramidLevel& own = level[l];
    k -= own.first;
    int64_t begin[spatial], end[spatial], window = k % own.windows();
    const int64_t image[spatial] = {input.d.size, input.h.size, input.w.size};
    for (int axis = spatial - 1; axis >= 0; --axis) {
      const int64_t first = window % own.count[axis] * own.kernel[axis] - own.pad[axis];
      begin[axis] = first > 0 ? first : 0;
      end[axis] = first + own.kernel[axis] < image[axis] ? first + own.kernel[axis] : image[axis];
      window /= own.count[axis];
    }
    Point at;
    at.n = input.n.begin + i / outputs;
    at.c = k / own.windows();
    for (at.d = begin[0]; at.d < end[0]; ++at.d)
      for (at.h = begin[1]; at.h < end[1]; ++at.h)
        for (at.w = begin[2]; at.w < end[2]; ++at.w) visit(input.offset(at), number(at));
  }
  CORTADO_EVERYWHERE int64_t size_of(int64_t i) const {
    int l = 0;
    while (l + 1 < levels && level[l + 1].first <= i % outputs) ++l;
    return level[l].size();
  }
  // The output of a level that reads an element.
  CORTADO_EVERYWHERE int64_t output(int l, const Point& at) const {
    const PyramidLevel& own = level[l];
    const int64_t d = (at.d + own.pad[0]) / own.kernel[0], h = (at.h + own.pad[1]) / own.kernel[1],
                  w = (at.w + own.pad[2]) / own.kernel[2];
    return (at.n - input.n.begin) * outputs + own.first + at.c * own.windows() +
           (d * own.count[1] + h) * own.count[2] + w;
  }
  CORTADO_EVERYWHERE int64_t number(const Point& at) const {
    return (at.d * input.h.size + at.h) * input.w.size + at.w;
  }
};

// The first maximum in spoken order; what is not finite is carried on.
struct PyramidMaximum {
  Pyramid p;
  const float* x;
  float* y;
  int64_t* selected;  // null: there is no backward pass
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    float largest = 0, zero = 0;
    int64_t best = -1;
    p.positions(i, [&](int64_t element, int64_t number) {
      const float value = x[element];
      zero += value * 0;
      if (best >= 0 && !(value > largest)) return;
      largest = value, best = number;
    });
    y[i] = largest + zero;
    if (selected) selected[i] = best;
  }
};

struct PyramidAverage {
  Pyramid p;
  const float* x;
  float* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    double sum = 0;
    p.positions(i, [&](int64_t element, int64_t) { sum += x[element]; });
    y[i] = static_cast<float>(sum / static_cast<double>(p.size_of(i)));
  }
};

struct PyramidGradient {
  Pyramid p;
  const float* dy;
  const int64_t* selected;  // null: averages
  float* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const Point at = p.input.point(i);
    double sum = 0;
    for (int l = 0; l < p.levels; ++l) {
      const int64_t output = p.output(l, at);
      if (!selected)
        sum += dy[output] / static_cast<double>(p.level[l].size());
      else if (selected[output] == p.number(at))
        sum += dy[output];
    }
    dx[i] = static_cast<float>(sum);
  }
};

class SppKernel : public Kernel {
 public:
  SppKernel(const Spp& layer, const Task& task)
      : maximum_(layer.options().method == SppOptions::Method::max), backward_(task.has_backward()) {
    pyramid_.input = part_of(task.input_boxes[0]);
    pyramid_.outputs = task.outputs[0][1];
    pyramid_.samples = pyramid_.input.n.size;
    pyramid_.levels = layer.options().pyramid_height;
    int64_t first = 0;
    for (int64_t l = 0; l < pyramid_.levels; ++l) {
      PyramidLevel& level = pyramid_.level[l];
      const Window window = layer.window(task.inputs[0], l);
      for (size_t i = 0; i < window.size(); ++i) {
        const size_t axis = i + spatial - window.size();
        level.kernel[axis] = window[i].kernel, level.pad[axis] = window[i].pad;
        level.count[axis] = int64_t{1} << l;
      }
      level.first = first;
      first += task.inputs[0][1] * level.windows();
    }
  }
  std::string name() const override { return "gpu spp"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  Bytes saved_bytes() const override {
    return {maximum_ && backward_ ? size() * int64_t{sizeof(int64_t)} : 0};
  }
  bool saves_by_samples() const override { return true; }
  void forward(const Arguments& a) override {
    if (maximum_)
      for_each(a.stream, size(), PyramidMaximum{pyramid_, a.inputs[0], a.outputs[0], selected(a)});
    else
      for_each(a.stream, size(), PyramidAverage{pyramid_, a.inputs[0], a.outputs[0]});
  }
  void backward(const Arguments& a) override {
    if (a.input_gradients[0])
      for_each(a.stream, pyramid_.input.elements(),
               PyramidGradient{pyramid_, a.output_gradients[0], selected(a), a.input_gradients[0]});
  }

 private:
  int64_t size() const { return pyramid_.samples * pyramid_.outputs; }
  int64_t* selected(const Arguments& a) const {
    return maximum_ && backward_ ? reinterpret_cast<int64_t*>(a.saved) : nullptr;
  }

  bool maximum_, backward_;
  Pyramid pyramid_{};
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_spp(const Task& task) {
  const auto* layer = dynamic_cast<const Spp*>(&task.layer());
  if (!layer) return {nullptr, "not an SPP"};
  if (auto refusal = gpu::common_refusal(task); !refusal.empty()) return {nullptr, std::move(refusal)};
  if (layer->options().pyramid_height > gpu::most_levels)
    return {nullptr, "more than " + std::to_string(gpu::most_levels) + " levels"};
  return gpu::offered<gpu::SppKernel>(*layer, task);
}

}  // namespace cortado
