#include "cortado/train/solver_options.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>

#include "cortado/base/error.h"
#include "cortado/base/nearest_name.h"
#include "cortado/base/text.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado {
namespace {

using Policy = LearningRateOptions::Policy;
using Solver = UpdateOptions::Solver;

template <typename Value>
struct Named {
  const char* name;
  Value value;
};

constexpr Named<Policy> policies[] = {
    {"fixed", Policy::fixed},     {"step", Policy::step},           {"exp", Policy::exp},
    {"inv", Policy::inv},         {"multistep", Policy::multistep}, {"poly", Policy::poly},
    {"sigmoid", Policy::sigmoid}, {"cosine", Policy::cosine}};

constexpr Named<Solver> solvers[] = {{"SGD", Solver::sgd},           {"Nesterov", Solver::nesterov},
                                     {"AdaGrad", Solver::adagrad},   {"RMSProp", Solver::rmsprop},
                                     {"AdaDelta", Solver::adadelta}, {"Adam", Solver::adam},
                                     {"LARS", Solver::lars}};

constexpr Named<UpdateOptions::Regularization> regularizations[] = {
    {"L2", UpdateOptions::Regularization::l2}, {"L1", UpdateOptions::Regularization::l1}};

// Reads checked values of one solver file; every complaint names the file and the field.
class SolverChecker {
 public:
  explicit SolverChecker(const std::string& file) : file_(file) {}

  void require(bool right, std::string_view field, const std::string& complaint) const {
    if (!right) throw UserError(fmt::format("{}: {}: {}", file_, field, complaint));
  }

  template <typename Number>
  Number at_least(std::string_view field, Number value, Number least) const {
    require(value >= least, field, fmt::format("{} is less than {}", value, least));
    return value;
  }

  double between(std::string_view field, double value, double low, double high) const {
    require(value >= low && value < high, field,
            fmt::format("{:g} is not in [{:g}, {:g})", value, low, high));
    return value;
  }

  template <typename Value, size_t Count>
  Value named(std::string_view field, const std::string& name, const Named<Value> (&known)[Count]) const {
    std::vector<std::string_view> names;
    for (const auto& entry : known) {
      if (entry.name == name) return entry.value;
      names.emplace_back(entry.name);
    }
    throw UserError(fmt::format("{}: {}: '{}' is unknown{} (known: {})", file_, field, name,
                                did_you_mean(name, names), joined(names)));
  }

 private:
  const std::string& file_;
};

LearningRateOptions rate_options(const caffe::SolverParameter& s, const SolverChecker& check) {
  LearningRateOptions o;
  check.require(s.has_lr_policy(), "lr_policy", "missing; for example lr_policy: \"fixed\"");
  o.base = s.base_lr();
  o.policy = check.named("lr_policy", s.lr_policy(), policies);
  o.gamma = s.gamma();
  o.power = s.power();
  const bool decays = o.policy != Policy::fixed && o.policy != Policy::poly && o.policy != Policy::cosine;
  if (decays) check.at_least("gamma", o.gamma, 0.0);
  const bool steps = o.policy == Policy::step || o.policy == Policy::sigmoid;
  check.require(!steps || s.has_stepsize(), "stepsize",
                fmt::format("missing; lr_policy \"{}\" needs it", s.lr_policy()));
  o.stepsize = steps ? check.at_least("stepsize", s.stepsize(), 1) : s.stepsize();
  o.stepvalues.assign(s.stepvalue().begin(), s.stepvalue().end());
  o.max_iterations = s.max_iter();
  o.warmup_iterations = check.at_least("warmup_iter", s.warmup_iter(), 0);
  o.warmup_start = check.at_least("warmup_start_lr", double{s.warmup_start_lr()}, 0.0);
  return o;
}

UpdateOptions update_options(const caffe::SolverParameter& s, const SolverChecker& check) {
  UpdateOptions o;
  o.solver = check.named("type", s.type(), solvers);
  o.regularization = check.named("regularization_type", s.regularization_type(), regularizations);
  o.momentum = s.momentum();
  o.momentum2 = s.momentum2();
  o.rms_decay = s.rms_decay();
  if (o.solver == Solver::rmsprop) check.between("rms_decay", o.rms_decay, 0, 1);
  o.delta = s.delta();
  check.require(o.delta > 0, "delta", fmt::format("{:g} is not above 0", o.delta));
  o.weight_decay = s.weight_decay();
  o.lars_eta = s.lars_eta();
  check.require(o.lars_eta > 0, "lars_eta", fmt::format("{:g} is not above 0", o.lars_eta));
  bool plain = o.solver == Solver::adagrad || o.solver == Solver::rmsprop;
  check.require(!plain || o.momentum == 0, "momentum",
                fmt::format("{} has none; leave it out", solver_name(o.solver)));
  return o;
}

// Names snapshots by the solver file where the prefix is a folder, or none is given.
std::string snapshot_prefix_of(const caffe::SolverParameter& s, const std::string& file) {
  const std::filesystem::path given = s.snapshot_prefix(), solver = file;
  if (given.empty()) return std::filesystem::path(solver).replace_extension().string();
  return std::filesystem::is_directory(given) ? (given / solver.stem()).string() : given.string();
}

}  // namespace

int history_tensors(const SolverOptions& options) {
  return history_count(options.update.solver) + (options.iter_size > 1 ? 1 : 0);
}

const char* solver_name(Solver solver) {
  auto entry =
      std::find_if(std::begin(solvers), std::end(solvers), [&](const auto& e) { return e.value == solver; });
  return entry->name;
}

std::vector<std::string> weight_files(const std::string& list) {
  std::vector<std::string> files;
  constexpr const char* blanks = " \t\r\n";
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string part = list.substr(begin, end - begin);
    if (const size_t first = part.find_first_not_of(blanks); first != std::string::npos)
      files.push_back(part.substr(first, part.find_last_not_of(blanks) + 1 - first));
    begin = end + 1;
  }
  return files;
}

SolverOptions solver_options(const caffe::SolverParameter& s, const std::string& file) {
  SolverChecker check(file);
  SolverOptions o;
  o.file = file;
  o.learning_rate = rate_options(s, check);
  o.update = update_options(s, check);
  o.max_iterations = check.at_least("max_iter", s.max_iter(), 0);
  o.iter_size = check.at_least("iter_size", s.iter_size(), 1);
  o.clip_gradients = s.clip_gradients();
  for (int count : s.test_iter()) o.test_iterations.push_back(check.at_least("test_iter", count, 0));
  o.test_interval = check.at_least("test_interval", s.test_interval(), 0);
  o.test_initialization = s.test_initialization();
  o.test_compute_loss = s.test_compute_loss();
  o.display = check.at_least("display", s.display(), 0);
  o.average_loss = check.at_least("average_loss", s.average_loss(), 1);
  o.snapshot = check.at_least("snapshot", s.snapshot(), 0);
  o.snapshot_prefix = snapshot_prefix_of(s, file);
  o.snapshot_format =
      s.snapshot_format() == caffe::SolverParameter::HDF5 ? SnapshotFormat::hdf5 : SnapshotFormat::caffe;
  o.snapshot_after_train = s.snapshot_after_train();
  if (s.random_seed() >= 0) o.seed = static_cast<uint64_t>(s.random_seed());
  for (const std::string& list : s.weights())
    std::ranges::copy(weight_files(list), std::back_inserter(o.weights));
  return o;
}

SnapshotFormat snapshot_format_named(const std::string& name, const std::string& file) {
  if (name == "cortado") return SnapshotFormat::cortado;
  if (name == "caffe") return SnapshotFormat::caffe;
  if (name == "hdf5") return SnapshotFormat::hdf5;
  throw UserError(
      fmt::format("{}: snapshot_format '{}' is unknown (known: cortado, caffe, hdf5)", file, name));
}

}  // namespace cortado
