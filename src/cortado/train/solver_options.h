#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cortado/kernels/update.h"

namespace caffe {
class SolverParameter;
}

namespace cortado {

// How the learning rate depends on the iteration (learning_rate.h).
struct LearningRateOptions {
  enum class Policy { fixed, step, exp, inv, multistep, poly, sigmoid, cosine };
  Policy policy = Policy::fixed;
  double base = 0.01;
  double gamma = 0.1, power = 1;
  int64_t stepsize = 1;
  std::vector<int64_t> stepvalues;  // multistep
  int64_t max_iterations = 0;       // poly, cosine
  int64_t warmup_iterations = 0;    // 0: none
  double warmup_start = 0;
  bool operator==(const LearningRateOptions&) const = default;
};

enum class SnapshotFormat { cortado, caffe, hdf5 };
// Throws UserError naming the solver's `file`: there is none of that name.
SnapshotFormat snapshot_format_named(const std::string& name, const std::string& file);

// What a solver file says, checked.
struct SolverOptions {
  std::string file;  // for messages
  LearningRateOptions learning_rate;
  UpdateOptions update;
  int64_t max_iterations = 0;
  int iter_size = 1;                 // batches whose gradients are summed for one update
  double clip_gradients = -1;        // largest l2 norm of all gradients together; below 0: off
  std::vector<int> test_iterations;  // batches of a test, one for each test net
  int test_interval = 0;             // 0: never
  bool test_initialization = true;
  bool test_compute_loss = false;
  int display = 0;              // iterations between two lines; 0: none
  int average_loss = 1;         // the displayed loss is the mean of so many iterations
  int snapshot = 0;             // iterations between two snapshots; 0: none
  std::string snapshot_prefix;  // where the file gives a folder, with the solver file's name in it
  SnapshotFormat snapshot_format = SnapshotFormat::caffe;
  bool snapshot_after_train = true;
  uint64_t seed = 1;                 // random_seed; 1 where the file names none, so that runs repeat
  std::vector<std::string> weights;  // files to start from, in order
};

// Tensors of a parameter's size that training keeps besides weights and gradient: the solver's history and,
// with iter_size above 1, the sum of gradients.
int history_tensors(const SolverOptions& options);

const char* solver_name(UpdateOptions::Solver solver);  // Caffe's type: "SGD", "AdaGrad", ...

// The files of a list as Caffe writes it: "a.caffemodel, b.h5".
std::vector<std::string> weight_files(const std::string& list);

// What Caffe has defaults for may be left out. Throws UserError naming `file` and the field: a value out of
// range, an unknown policy or type, a step without stepsize.
SolverOptions solver_options(const caffe::SolverParameter& solver, const std::string& file);

// Applies "key=value" to a field of the solver file: "base_lr=0.02", "type=Adam". A repeated field takes
// "1000,2000" and replaces what was there. Throws UserError: unknown key (with the nearest one), a value
// that is none of the field's type.
void override_field(caffe::SolverParameter& solver, const std::string& assignment);

}  // namespace cortado
