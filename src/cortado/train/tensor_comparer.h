#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cortado/comm/communicator.h"
#include "cortado/exec/executor.h"
#include "cortado/train/layer_difference.h"

namespace cortado {

double largest_magnitude(std::span<const float> values);

// Keeps the first fault, and the largest difference.
void keep_first(std::string& fault, std::string found);
void keep_largest(std::optional<double>& difference, double found);

// How far a tensor is from the uncut one, gathered part by part.
class Difference {
 public:
  // `where`: which part of the tensor it is.
  void add(std::span<const float> uncut, std::span<const float> cut, const std::string& where);
  double largest() const { return largest_; }
  // The text of a fault where the norm of the difference is beyond `limit` times that of the uncut tensor. A
  // typical element smaller than `least` counts as that.
  std::string fault(const std::string& name, double limit, double least = 0) const;

 private:
  double largest_ = 0, squares_ = 0, uncut_squares_ = 0, elements_ = 0;
  std::string place_;
};

// Compares tensors after one iteration, each part that a rank holds with the same box of the uncut tensor.
class TensorComparer {
 public:
  enum class Which { activation, gradient };
  // `uncut` is null but at rank 0. All ranks make it, and call compare() in the same order.
  TensorComparer(const Network& network, Communicator& job, const Executor& cut, const Executor* uncut);

  // At rank 0, where both trainings have the tensor: compares every part of it.
  void compare(TensorIndex tensor, Which which, LayerDifference& layer);

 private:
  template <class T>
  struct OfBoth {
    T activation{}, gradient{};
    T& operator[](Which which) { return which == Which::activation ? activation : gradient; }
    const T& operator[](Which which) const { return which == Which::activation ? activation : gradient; }
  };
  template <class T>
  using PerTensor = IndexedVector<TensorIndex, OfBoth<T>>;

  const Shape& shape_of(TensorIndex tensor) const { return network_.tensors()[tensor].shape; }
  int64_t elements_of_parts(TensorIndex tensor, Which which) const;
  Difference difference(TensorIndex tensor, Which which, double& magnitude);
  void tell(TensorIndex tensor, Which which, std::vector<int64_t>& words) const;
  void hear(const std::vector<int64_t>& words);

  const Network& network_;
  Communicator& job_;
  const Executor& cut_;
  const Executor* uncut_;
  std::vector<PerTensor<std::optional<Box>>> parts_;  // per rank
  PerTensor<bool> whole_;                             // at rank 0, uncut
};

}  // namespace cortado
