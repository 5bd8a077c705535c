#pragma once

#include "cortado/layers/loss_normalization.h"
#include "cortado/layers/task.h"

namespace cortado {

// What a loss is divided by (layers/loss_normalization.h), also where several devices share the layer: the
// number of labels that are not ignored is then the one thing they sum. The total is kept for the backward
// pass in saved_bytes() of saved memory.
class LossDivisor {
 public:
  // `samples` and `positions` of the whole scores; `ignores`: there is a label to ignore.
  LossDivisor(const Task& task, Normalization normalization, bool ignores, int64_t samples, int64_t positions)
      : normalization_(normalization), samples_(samples), positions_(positions), cut_(task.cut) {
    travels_ = task.cut && ignores && normalization == Normalization::valid;
  }

  int64_t sums() const { return travels_ ? 1 : 0; }  // KernelOf::forward_sums
  int64_t saved_bytes() const { return travels_ ? int64_t{sizeof(double)} : 0; }

  // `valid`: this device's labels that are not ignored; `totals`: ArgumentsOf::sums; `saved` may be null.
  double forward(int64_t valid, const double* totals, std::byte* saved) const {
    if (travels_ && saved) *reinterpret_cast<double*>(saved) = totals[0];
    return of(valid, totals);
  }
  double backward(int64_t valid, const std::byte* saved) const {
    return of(valid, reinterpret_cast<const double*>(saved));
  }

 private:
  double of(int64_t valid, const double* totals) const {
    const int64_t all = samples_ * positions_;
    const int64_t total = travels_ ? static_cast<int64_t>(totals[0]) : cut_ ? all : valid;
    return loss_normalizer(normalization_, samples_, positions_, total);
  }

  Normalization normalization_;
  int64_t samples_, positions_;
  bool cut_, travels_;
};

}  // namespace cortado
