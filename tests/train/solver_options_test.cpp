#include "cortado/train/solver_options.h"

#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado {
namespace {

caffe::SolverParameter small_solver() {
  caffe::SolverParameter solver;
  solver.set_base_lr(0.01f);
  solver.set_lr_policy("step");
  solver.set_gamma(0.1f);
  solver.set_stepsize(100);
  solver.set_max_iter(1000);
  return solver;
}

std::string complaint_about(const caffe::SolverParameter& solver) {
  try {
    solver_options(solver, "my_solver.prototxt");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(SolverOptions, DefaultsAreCaffes) {
  SolverOptions o = solver_options(small_solver(), "s");
  EXPECT_EQ(o.update.solver, UpdateOptions::Solver::sgd);
  EXPECT_EQ(o.update.regularization, UpdateOptions::Regularization::l2);
  EXPECT_FLOAT_EQ(o.update.delta, 1e-8f);
  EXPECT_EQ(o.iter_size, 1);
  EXPECT_LT(o.clip_gradients, 0);
  EXPECT_TRUE(o.test_initialization);
  EXPECT_TRUE(o.snapshot_after_train);
  EXPECT_EQ(o.snapshot_format, SnapshotFormat::caffe);
  EXPECT_EQ(o.seed, 1u);
}

TEST(SolverOptions, ComplaintsNameFileFieldAndRemedy) {
  struct Case {
    std::string assignment, complaint;
  };
  const Case cases[] = {
      {"type=Adm", "type: 'Adm' is unknown; did you mean 'Adam'?"},
      {"lr_policy=steps", "lr_policy: 'steps' is unknown; did you mean 'step'?"},
      {"stepsize=0", "stepsize: 0 is less than 1"},
      {"lr_policy=cosin", "lr_policy: 'cosin' is unknown; did you mean 'cosine'?"},
      {"gamma=-1", "gamma: -1 is less than 0"},
      {"iter_size=0", "iter_size: 0 is less than 1"},
      {"delta=0", "delta: 0 is not above 0"},
      {"test_iter=-1", "test_iter: -1 is less than 0"},
      {"regularization_type=L3", "regularization_type: 'L3' is unknown"},
  };
  for (const Case& c : cases) {
    caffe::SolverParameter solver = small_solver();
    override_field(solver, c.assignment);
    std::string complaint = complaint_about(solver);
    EXPECT_EQ(complaint.find("my_solver.prototxt: " + c.complaint), 0u) << c.assignment << ": " << complaint;
  }
}

TEST(SolverOptions, MissingFieldsAreNamed) {
  for (const char* field : {"lr_policy", "stepsize"}) {
    caffe::SolverParameter solver = small_solver();
    solver.GetReflection()->ClearField(&solver, solver.GetDescriptor()->FindFieldByName(field));
    EXPECT_NE(complaint_about(solver).find(std::string(field) + ": missing"), std::string::npos) << field;
  }
}

TEST(SolverOptions, WhatCaffeHasDefaultsForMayBeLeftOut) {
  caffe::SolverParameter solver;
  solver.set_lr_policy("inv");
  const SolverOptions o = solver_options(solver, "kept/my_solver.prototxt");
  EXPECT_EQ(o.learning_rate.base, 0);
  EXPECT_EQ(o.learning_rate.gamma, 0);
  EXPECT_EQ(o.learning_rate.power, 0);
  EXPECT_EQ(o.max_iterations, 0);
  EXPECT_EQ(o.snapshot_prefix, "kept/my_solver");
  EXPECT_EQ(weight_files(" a.caffemodel,b ,, c d"), (std::vector<std::string>{"a.caffemodel", "b", "c d"}));
}

TEST(OverrideField, SetsEveryKindOfField) {
  caffe::SolverParameter solver = small_solver();
  solver.add_stepvalue(7);
  override_field(solver, "base_lr=0.5");
  override_field(solver, "type=Adam");
  override_field(solver, "stepvalue=10,20");
  override_field(solver, "test_initialization=false");
  override_field(solver, "snapshot_format=HDF5");
  override_field(solver, "random_seed=123456789012");
  override_field(solver, "weights=a.caffemodel,b.h5");
  EXPECT_FLOAT_EQ(solver.base_lr(), 0.5f);
  EXPECT_EQ(solver.type(), "Adam");
  ASSERT_EQ(solver.stepvalue_size(), 2);
  EXPECT_EQ(solver.stepvalue(1), 20);
  EXPECT_FALSE(solver.test_initialization());
  EXPECT_EQ(solver.snapshot_format(), caffe::SolverParameter::HDF5);
  EXPECT_EQ(solver.random_seed(), 123456789012);
  EXPECT_EQ(solver.weights(1), "b.h5");
}

TEST(OverrideField, RefusesWhatItCannotSet) {
  caffe::SolverParameter solver;
  auto complaint = [&](const std::string& assignment) -> std::string {
    try {
      override_field(solver, assignment);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(complaint("base_ lr=1"),
            "set base_ lr: solver files have no such field; did you mean 'base_lr'?");
  EXPECT_EQ(complaint("max_iter=ten"), "set max_iter: 'ten' is no int32");
  EXPECT_EQ(complaint("max_iter=10x"), "set max_iter: '10x' is no int32");
  EXPECT_NE(complaint("max_iter").find("key=value"), std::string::npos);
  EXPECT_NE(complaint("snapshot_format=ZIP").find("known: HDF5, BINARYPROTO"), std::string::npos);
  EXPECT_NE(complaint("train_state=1").find("fields of its own"), std::string::npos);
}

}  // namespace
}  // namespace cortado
