#pragma once

#include "cortado/api/impl/reader.h"
#include "cortado/api/net.h"
#include "cortado/net/net_file.h"
#include "cortado/train/open_net.h"

namespace cortado::api {

struct Net::Impl {
  // A net of its own.
  Impl(const Network& network, const Data& data, const NetOptions& options);
  // A net of a trainer, which is made of `loaded` and must outlive this.
  Impl(OpenNet& open, const LoadedNetwork& loaded, Phase phase, int threads);

  // What a net of its own is made of; the later members refer to the earlier ones.
  struct Parts {
    std::unique_ptr<DataReaders> readers;
    std::unique_ptr<DataNetwork> data;
    std::unique_ptr<OpenSources> sources;
    std::shared_ptr<ParameterStore> parameters;
    std::unique_ptr<Executor> executor;
    std::unique_ptr<OpenNet> open;
  };

  NetOptions options;
  NetFile file;
  caffe::NetState state;
  Data data;
  Parts parts;  // null: of a trainer
  OpenNet* open = nullptr;
  Network network;
  Phase phase = Phase::train;

  // Makes the parts of `net`, with the parameters of `store`.
  Parts make(const NetFile& net, std::shared_ptr<ParameterStore> store) const;
  void take(Parts made);
  // Gives new parts the values of source layers whose shapes stay, their places in the data, and their feeds.
  void carry_over(Parts& made);
  void require_own(const char* what) const;

  std::string checked(const std::string& blob) const;
  void check_size(const std::string& what, size_t given, int64_t wanted) const;
  void copy_out(const std::string& what, const Tensor& from, std::span<float> to) const;  // checks its size
  NodeIndex layer(const std::string& name) const;
  NodeIndex last_part(NodeIndex layer) const;
  ParameterIndex parameter(const std::string& name) const;
  int64_t size_of(ParameterIndex parameter) const;
};

}  // namespace cortado::api
