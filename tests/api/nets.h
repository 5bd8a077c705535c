#pragma once

#include <cmath>
#include <string>

#include "cortado/api/cortado.h"

namespace cortado::api {

// LeNet on 12x12 images, in either phase.
inline std::string small_lenet() {
  return R"(name: "small-lenet"
layer { name: "data" type: "Input" top: "data" top: "label"
  input_param { shape { dim: 16 dim: 1 dim: 12 dim: 12 } shape { dim: 16 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "ip1" type: "InnerProduct" bottom: "pool1" top: "ip1"
  inner_product_param { num_output: 16 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";
}

// A noisy bright bar whose place tells one of four classes; by the sample's number alone.
inline void fill_bars(BatchRequest& batch) {
  auto image = batch.tops[0].values.begin();
  auto label = batch.tops[1].values.begin();
  for (int64_t sample = batch.begin; sample < batch.end; ++sample) {
    const int64_t number = batch.number * batch.batch + sample, kind = number * 7 % 4;
    for (int64_t row = 0; row < 12; ++row)
      for (int64_t column = 0; column < 12; ++column) {
        const auto noise =
            static_cast<float>(std::sin(static_cast<double>(number * 144 + row * 12 + column)));
        *image++ = 0.2F * noise + (row / 3 == kind ? 1.F : 0.F);
      }
    *label++ = static_cast<float>(kind);
  }
}

inline Solver small_solver(const std::string& prefix = "", const std::string& net = small_lenet()) {
  return Solver(SolverOptions{.type = "Adam",
                              .base_lr = 0.005,
                              .momentum = 0.9,
                              .max_iter = 40,
                              .test_iter = 4,
                              .snapshot_prefix = prefix},
                Network::from_text(net));
}

}  // namespace cortado::api
