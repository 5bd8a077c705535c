#pragma once

#include <utility>

#include "cortado/kernels/kernel.h"

namespace cortado {

// A kernel around another one, which does all that the inner kernel does. Kernels that change something about
// another one override what they change; a new virtual function of Kernel is forwarded here alone.
class ForwardingKernel : public Kernel {
 public:
  explicit ForwardingKernel(std::unique_ptr<Kernel> inner) : inner_(std::move(inner)) {}

  std::string name() const override { return inner_->name(); }

  void forward(const Arguments& arguments) override { inner_->forward(arguments); }
  void backward(const Arguments& arguments) override { inner_->backward(arguments); }
  void backward_weights(const Arguments& arguments) override { inner_->backward_weights(arguments); }

  int64_t forward_sums() const override { return inner_->forward_sums(); }
  int64_t backward_sums() const override { return inner_->backward_sums(); }
  void forward_partial(const Arguments& arguments) override { inner_->forward_partial(arguments); }
  void backward_partial(const Arguments& arguments) override { inner_->backward_partial(arguments); }

  Bytes saved_bytes() const override { return inner_->saved_bytes(); }
  bool saves_by_samples() const override { return inner_->saves_by_samples(); }
  Bytes scratch_bytes() const override { return inner_->scratch_bytes(); }
  BackwardReads backward_reads() const override { return inner_->backward_reads(); }
  bool in_place() const override { return inner_->in_place(); }
  bool overwrites_output_gradients() const override { return inner_->overwrites_output_gradients(); }
  bool passes_output_gradient() const override { return inner_->passes_output_gradient(); }
  ParameterFormat parameter_format(int parameter) const override {
    return inner_->parameter_format(parameter);
  }

 protected:
  Kernel& inner() const { return *inner_; }
  // Rounds an offset in scratch memory up to a cache line.
  static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

 private:
  std::unique_ptr<Kernel> inner_;
};

}  // namespace cortado
