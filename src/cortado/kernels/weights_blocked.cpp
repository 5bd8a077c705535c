#include <algorithm>

#include "cortado/kernels/blocked.h"
#include "cortado/kernels/forwarding_kernel.h"

namespace cortado {
namespace {

class WeightsBlockedKernel : public ForwardingKernel {
 public:
  WeightsBlockedKernel(std::unique_ptr<Kernel> whole, std::unique_ptr<Kernel> blocks)
      : ForwardingKernel(std::move(whole)), blocks_(std::move(blocks)) {}

  std::string name() const override { return inner().name() + "; weights: " + blocks_->name(); }
  void backward_weights(const Arguments& arguments) override { blocks_->backward_weights(arguments); }
  Bytes scratch_bytes() const override {
    return {std::max(inner().scratch_bytes().count, blocks_->scratch_bytes().count)};
  }

 private:
  std::unique_ptr<Kernel> blocks_;
};

}  // namespace

std::unique_ptr<Kernel> make_weights_blocked(std::unique_ptr<Kernel> whole, std::unique_ptr<Kernel> blocks) {
  return std::make_unique<WeightsBlockedKernel>(std::move(whole), std::move(blocks));
}

}  // namespace cortado
