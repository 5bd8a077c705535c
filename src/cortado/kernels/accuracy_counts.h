#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "cortado/layers/accuracy.h"
#include "cortado/layers/axes.h"
#include "cortado/layers/task.h"

namespace cortado {

// How labels seen and answers right become the outputs of Accuracy, also where several devices share the
// layer: each then computes an addend, its right answers over the labels that all of them see. Those are
// summed per class where there is an output per class, else, where some are ignored, as one number.
class AccuracyCounts {
 public:
  AccuracyCounts(const Task& task, const AccuracyOptions& options) {
    const AxisView view(task.inputs[0], options.axis);
    per_class_ = task.outputs.size() > 1;
    if (!task.cut) return;
    sums_ = per_class_ ? view.extent : options.ignore_label ? 1 : 0;
    if (!per_class_ && !options.ignore_label) known_ = view.before * view.after;
  }

  int64_t sums() const { return sums_; }  // KernelOf::forward_sums

  // This device's addends; `seen`: labels of each class.
  void add(const std::vector<int64_t>& seen, double* sums) const {
    if (per_class_) {
      std::copy(seen.begin(), seen.end(), sums);
    } else {
      sums[0] = static_cast<double>(total(seen));
    }
  }

  template <typename T>
  void write(const std::vector<int64_t>& seen, const std::vector<int64_t>& correct, const double* sums,
             const std::vector<T*>& outputs) const {
    std::vector<double> each(seen.begin(), seen.end());
    if (sums_ > 0 && per_class_) each.assign(sums, sums + sums_);
    double all = std::accumulate(each.begin(), each.end(), 0.0);
    if (sums_ > 0 && !per_class_) all = sums[0];
    if (known_ > 0) all = static_cast<double>(known_);
    outputs[0][0] = share<T>(static_cast<double>(total(correct)), all);
    for (size_t c = 0; c < seen.size() && per_class_; ++c) {
      outputs[1][c] = share<T>(static_cast<double>(correct[c]), each[c]);
    }
  }

 private:
  static int64_t total(const std::vector<int64_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), int64_t{0});
  }
  template <typename T>
  static T share(double part, double whole) {
    return static_cast<T>(whole == 0 ? 0 : part / whole);
  }

  bool per_class_ = false;
  int64_t sums_ = 0;
  int64_t known_ = 0;  // labels of the whole layer, where that number is known beforehand
};

}  // namespace cortado
