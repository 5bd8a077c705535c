#include "cortado/layers/silence.h"

#include <algorithm>

#include "cortado/kernels/reference/reference.h"

namespace cortado {
namespace {

template <typename T>
class SilenceReference : public KernelOf<T> {
 public:
  explicit SilenceReference(const Task& task) {
    for (size_t i = 0; i < task.inputs.size(); ++i) sizes_.push_back(task.local_input(i).size());
  }
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const ArgumentsOf<T>&) override {}

  void backward(const ArgumentsOf<T>& arguments) override {
    for (size_t i = 0; i < sizes_.size(); ++i) {
      if (arguments.input_gradients[i]) std::fill_n(arguments.input_gradients[i], sizes_[i], T{0});
    }
  }

 private:
  std::vector<int64_t> sizes_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_silence_reference(const Task& task) {
  return std::make_unique<SilenceReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_silence_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_silence_reference<double>(const Task&);

}  // namespace cortado
