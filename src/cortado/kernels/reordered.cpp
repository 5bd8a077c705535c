#include "cortado/kernels/reordered.h"

#include "cortado/kernels/forwarding_kernel.h"

namespace cortado {
namespace {

// Scratch: the inner kernel's, then each reordered parameter in canonical order. A run needs there either the
// parameters or their gradients.
class ReorderedKernel : public ForwardingKernel {
 public:
  ReorderedKernel(std::unique_ptr<Kernel> inner_kernel, std::vector<ParameterFormat> formats,
                  const Task& task)
      : ForwardingKernel(std::move(inner_kernel)), formats_(std::move(formats)) {
    bytes_ = aligned(inner().scratch_bytes().count);
    for (size_t p = 0; p < formats_.size(); ++p) {
      offsets_.push_back(bytes_);
      if (!formats_[p].from_canonical) continue;
      const int64_t elements = task.parameter_box(0, static_cast<int>(p)).shape().size();
      bytes_ += aligned(elements * int64_t{sizeof(float)});
    }
  }

  std::string name() const override { return inner().name() + ", weights reordered"; }
  Bytes scratch_bytes() const override { return {bytes_}; }
  ParameterFormat parameter_format(int p) const override {
    return static_cast<size_t>(p) < formats_.size() ? formats_[p] : inner().parameter_format(p);
  }

  void forward_partial(const Arguments& arguments) override {
    inner().forward_partial(with_canonical(arguments));
  }
  void forward(const Arguments& arguments) override { inner().forward(with_canonical(arguments)); }
  void backward_partial(const Arguments& arguments) override {
    inner().backward_partial(with_canonical(arguments));
  }
  void backward(const Arguments& arguments) override { inner().backward(with_canonical(arguments)); }
  void backward_weights(const Arguments& arguments) override {
    Arguments canonical = arguments;
    for_each_reordered([&](size_t p) {
      if (arguments.parameter_gradients[p]) canonical.parameter_gradients[p] = memory(arguments, p);
    });
    inner().backward_weights(canonical);
    for_each_reordered([&](size_t p) {
      if (arguments.parameter_gradients[p]) {
        formats_[p].from_canonical(memory(arguments, p), arguments.parameter_gradients[p]);
      }
    });
  }

 private:
  template <typename Work>
  void for_each_reordered(Work&& work) const {
    for (size_t p = 0; p < formats_.size(); ++p) {
      if (formats_[p].from_canonical) work(p);
    }
  }
  float* memory(const Arguments& arguments, size_t p) const {
    return reinterpret_cast<float*>(arguments.scratch + offsets_[p]);
  }
  Arguments with_canonical(const Arguments& arguments) const {
    Arguments canonical = arguments;
    for_each_reordered([&](size_t p) {
      formats_[p].to_canonical(arguments.parameters[p], memory(arguments, p));
      canonical.parameters[p] = memory(arguments, p);
    });
    return canonical;
  }

  std::vector<ParameterFormat> formats_;
  std::vector<int64_t> offsets_;
  int64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_reordered(std::unique_ptr<Kernel> inner, std::vector<ParameterFormat> formats,
                                       const Task& task) {
  return std::make_unique<ReorderedKernel>(std::move(inner), std::move(formats), task);
}

}  // namespace cortado
