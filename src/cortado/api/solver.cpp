#include "cortado/api/solver.h"

#include <fmt/format.h>

#include "cortado/api/impl/network.h"
#include "cortado/api/impl/solver.h"
#include "cortado/base/error.h"
#include "cortado/net/solver_state.h"
#include "cortado/train/warnings.h"

namespace cortado::api {
namespace {

caffe::SolverParameter message_of(const SolverOptions& o) {
  caffe::SolverParameter m;
  m.set_type(o.type);
  m.set_base_lr(static_cast<float>(o.base_lr));
  m.set_lr_policy(o.lr_policy);
  m.set_gamma(static_cast<float>(o.gamma));
  m.set_power(static_cast<float>(o.power));
  if (o.stepsize > 0) m.set_stepsize(static_cast<int32_t>(o.stepsize));
  for (int64_t value : o.stepvalue) m.add_stepvalue(static_cast<int32_t>(value));
  m.set_momentum(static_cast<float>(o.momentum));
  m.set_weight_decay(static_cast<float>(o.weight_decay));
  m.set_max_iter(static_cast<int32_t>(o.max_iter));
  m.set_iter_size(o.iter_size);
  m.set_clip_gradients(static_cast<float>(o.clip_gradients));
  if (o.test_iter > 0) m.add_test_iter(o.test_iter);
  m.set_test_interval(o.test_interval);
  m.set_test_initialization(o.test_initialization);
  m.set_average_loss(o.average_loss);
  m.set_snapshot(o.snapshot);
  if (!o.snapshot_prefix.empty()) m.set_snapshot_prefix(o.snapshot_prefix);
  m.set_snapshot_after_train(o.snapshot_after_train);
  m.set_random_seed(static_cast<int64_t>(o.random_seed));
  return m;
}

// The options that say which net of its file the network is, as a solver file says them.
std::shared_ptr<Solver::Impl> with_network(caffe::SolverParameter message, const std::string& file,
                                           const Network& network) {
  const Network::Impl& net = network.impl();
  message.mutable_train_state()->set_level(net.options.level);
  for (const std::string& stage : net.options.stages) message.mutable_train_state()->add_stage(stage);
  auto impl = std::make_shared<Solver::Impl>(Solver::Impl{std::move(message), file, net.file, {}});
  return impl;
}

}  // namespace

cortado::SolverOptions Solver::Impl::options() const {
  cortado::SolverOptions options = solver_options(message, file);
  if (!overrides.snapshot_format.empty())
    options.snapshot_format = snapshot_format_named(overrides.snapshot_format, file);
  return options;
}

SolverNets Solver::Impl::nets() const {
  const Overrides& o = overrides;
  SolverNets nets = solver_nets(message, file, net ? &*net : nullptr);
  const cortado::Precision precision = o.precision ? precision_of(*o.precision)
                                       : net       ? net->precision
                                                   : cortado::Precision::f32;
  override_data(
      nets, {static_cast<int>(o.batch), static_cast<int>(o.test_batch), o.sources, o.test_sources, precision},
      file);
  return nets;
}

Solver Solver::from_file(const std::string& path) {
  return Solver(std::make_shared<const Impl>(Impl{read_solver(path), path, {}, {}}));
}

Solver Solver::from_text(const std::string& text, const std::string& name_in_errors) {
  return Solver(
      std::make_shared<const Impl>(Impl{parse_solver(text, name_in_errors), name_in_errors, {}, {}}));
}

Solver Solver::from_text(const std::string& text, const Network& network, const std::string& name_in_errors) {
  return Solver(with_network(parse_solver(text, name_in_errors), name_in_errors, network));
}

Solver::Solver(const SolverOptions& options, const Network& network) {
  auto impl = with_network(message_of(options), "solver", network);
  impl->overrides.snapshot_format = options.snapshot_format;
  impl_ = std::move(impl);
}

Solver& Solver::set(const std::string& field, const std::string& value) {
  auto impl = std::make_shared<Impl>(*impl_);
  override_field(impl->message, field + "=" + value);
  impl_ = std::move(impl);
  return *this;
}

Solver& Solver::set(const Overrides& overrides) {
  auto impl = std::make_shared<Impl>(*impl_);
  impl->overrides = overrides;
  impl->message.mutable_train_state()->set_level(overrides.level);
  for (const std::string& stage : overrides.stages) impl->message.mutable_train_state()->add_stage(stage);
  impl_ = std::move(impl);
  return *this;
}

std::vector<std::string> Solver::warnings() const {
  std::vector<std::string> lines = fields_without_effect(impl_->message, impl_->file);
  for (const std::string& line : warnings_of(impl_->nets())) lines.push_back(line);
  return lines;
}

}  // namespace cortado::api
