#pragma once

#include "cortado/kernels/gpu/sums.h"
#include "cortado/kernels/loss_divisor.h"

namespace cortado::gpu {

// What a loss is divided by, where its labels may be ignored: kernels/loss_divisor.h on a device.
struct CountedDivisor {
  bool travels = false;  // the labels of all devices are summed
  double fixed = 0;      // what it is where labels do not matter; else 0

  // `samples` and `positions` of the whole scores.
  CountedDivisor(const Task& task, Normalization normalization, bool ignores, int64_t samples,
                 int64_t positions)
      : travels(LossDivisor(task, normalization, ignores, samples, positions).sums() > 0) {
    if (normalization != Normalization::valid || (task.cut && !travels))
      fixed = loss_normalizer(normalization, samples, positions, samples * positions);
  }
};

// `sums`: the loss, and the labels of this device that count.
struct WriteCountedLoss {
  const double *sums, *labels_of_all;  // labels_of_all: null: those of this device are all
  double fixed;
  double* divisor;
  float* loss;
  CORTADO_EVERYWHERE void operator()(int64_t) const {
    const double labels = labels_of_all ? *labels_of_all : sums[1];
    *divisor = fixed > 0 ? fixed : labels > 1 ? labels : 1;
    *loss = static_cast<float>(sums[0] / *divisor);
  }
};

// Scratch of add_up_loss(), and of other sums of two columns.
inline Bytes loss_scratch(int64_t rows) { return sum_scratch(rows, 2) + Bytes{2 * int64_t{sizeof(double)}}; }
inline double* loss_totals(std::byte* scratch, int64_t rows) {
  return reinterpret_cast<double*>(scratch + sum_scratch(rows, 2).count);
}

struct WriteLossOver {
  const double* sum;
  double divisor;
  float* loss;
  CORTADO_EVERYWHERE void operator()(int64_t) const { *loss = static_cast<float>(*sum / divisor); }
};

// loss = the sum of term(row, 0) over all rows / divisor.
template <typename Term>
void add_up_loss(void* stream, int64_t rows, std::byte* scratch, const Term& term, double divisor,
                 float* loss) {
  double* const total = loss_totals(scratch, rows);
  sum_rows(stream, rows, 1, scratch, total, term);
  for_each(stream, 1, WriteLossOver{total, divisor, loss});
}

}  // namespace cortado::gpu
