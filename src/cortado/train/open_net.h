#pragma once

#include <map>
#include <string>
#include <vector>

#include "cortado/train/open_sources.h"

namespace cortado {

// How a net is compiled that OpenNet opens.
CompileOptions open_compile_options(CompileOptions options = {});

// A net on one rank whose layers run part by part, and whose values are read and written between. A blob is a
// name of tensors: a layer in place makes a second tensor of the name, and reading gives the one that was
// computed last. All values are in spoken order; parameters as files have them.
class OpenNet {
 public:
  // `executor` runs a Program of open_compile_options(), over `sources`; all must outlive this object. Throws
  // UserError: a blob is bf16.
  OpenNet(Executor& executor, ParameterStore& parameters, OpenSources& sources);

  const Network& network() const { return executor_.network(); }
  Executor& executor() { return executor_; }
  ParameterStore& parameters() { return parameters_; }
  OpenSources& sources() { return sources_; }

  // Computes the layers from `first` to `last`; returns the sum of their losses. Source layers among them
  // bring their next batch.
  double forward(NodeIndex first, NodeIndex last);
  // Computes the gradients of the layers from `first` back to `last`, from those of the outputs of `first`,
  // which were computed or written before. Gradients of parameters are added to what there is.
  void backward(NodeIndex first, NodeIndex last);

  std::vector<std::string> blobs() const { return names_; }  // in the order of the layers that make them
  std::vector<std::string> source_blobs() const;             // that source layers make
  bool has_blob(const std::string& blob) const { return blobs_.contains(blob); }
  const Shape& shape(const std::string& blob) const;
  bool has_gradient(const std::string& blob) const;  // one is computed
  std::vector<float> values(const std::string& blob);
  void set_values(const std::string& blob, std::span<const float> values);
  std::vector<float> gradient(const std::string& blob);  // zeros where none is computed
  void set_gradient(const std::string& blob, std::span<const float> values);

  std::vector<float> parameter(ParameterIndex parameter) const;
  void set_parameter(ParameterIndex parameter, std::span<const float> values);
  std::vector<float> parameter_gradient(ParameterIndex parameter);  // zeros where none is computed
  void set_parameter_gradient(ParameterIndex parameter, std::span<const float> values);
  void clear_parameter_gradients();

  // The executor has run on its own: blobs and gradients are those of that run.
  void ran();
  // Puts the gradients of the parameters where an Optimizer finds them.
  void hand_over_gradients();
  // Takes those that the executor left there, before something else is put there.
  void keep_gradients();

 private:
  struct Blob {
    std::vector<TensorIndex> tensors;  // in the order in which they are computed
    TensorIndex value, gradient;       // the ones computed last
  };
  bool is_source(TensorIndex tensor) const;
  void order_backward();
  void begin_gradients();
  void read_inputs();
  bool starts_at(const Step& step, NodeIndex node) const;
  const ParameterStore::Entry& entry(ParameterIndex parameter) const;
  std::vector<float>& kept_gradient(ParameterIndex parameter);

  Executor& executor_;
  ParameterStore& parameters_;
  OpenSources& sources_;
  std::vector<std::string> names_;
  std::map<std::string, Blob> blobs_;
  // Of the backward pass: each step and the layer that it is of.
  std::vector<std::pair<StepIndex, NodeIndex>> backward_;
  IndexedVector<ParameterIndex, std::vector<float>> gradients_;  // sums; empty: zeros
  bool in_store_ = false;    // the gradients are those that the executor left in the store
  bool has_inputs_ = false;  // they have been read
  bool has_begun_ = false;   // the gradients of tensors are set
  uint64_t passes_ = 0;
};

}  // namespace cortado
