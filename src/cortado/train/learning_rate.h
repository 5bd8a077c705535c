#pragma once

#include "cortado/train/solver_options.h"

namespace cortado {

// The learning rate of an iteration (counted from 0), by Caffe's policies:
//   fixed      base
//   step       base * gamma ^ floor(iteration / stepsize)
//   exp        base * gamma ^ iteration
//   inv        base * (1 + gamma * iteration) ^ -power
//   multistep  base * gamma ^ (number of stepvalues <= iteration)
//   poly       base * (1 - iteration / max_iterations) ^ power
//   sigmoid    base / (1 + exp(-gamma * (iteration - stepsize)))
// and by one that Caffe has not (Loshchilov, Hutter, "SGDR", 2017, equation 5, one period that ends at 0):
//   cosine     base * (1 + cos(pi * iteration / max_iterations)) / 2
// During the first warmup_iterations it grows linearly from warmup_start to what the policy says.
double learning_rate(const LearningRateOptions& options, int64_t iteration);

// How many stepvalues lie at or before the iteration (Caffe's current_step, kept in solverstate files);
// for `step`, floor(iteration / stepsize); else 0.
int learning_rate_step(const LearningRateOptions& options, int64_t iteration);

}  // namespace cortado
