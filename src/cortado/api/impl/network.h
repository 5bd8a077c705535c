#pragma once

#include <mutex>
#include <optional>

#include "cortado/api/network.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"

namespace cortado::api {

struct Network::Impl {
  NetFile file;  // with what replaces its values
  caffe::NetState state;
  NetworkOptions options;

  Impl(NetFile net, caffe::NetState of, NetworkOptions said)
      : file(std::move(net)), state(std::move(of)), options(std::move(said)) {}
  explicit Impl(const LoadedNetwork& loaded) : built_(loaded) {}

  const LoadedNetwork& loaded() const;  // built at the first call
  const cortado::Network& network() const { return loaded().network; }

 private:
  mutable std::mutex building_;
  mutable std::optional<LoadedNetwork> built_;
};

// The tensor of that name. Throws UserError with the nearest name.
TensorIndex tensor_named(const cortado::Network& network, const std::string& name);
ParameterIndex parameter_named(const cortado::Network& network, const std::string& name);  // the same

cortado::Precision precision_of(Precision precision);
Shape shape_of(const cortado::Shape& shape);
cortado::Shape shape_of(const Shape& shape);

}  // namespace cortado::api
