#pragma once

#include <set>

#include "cortado/api/data.h"
#include "cortado/train/data_network.h"

namespace cortado::api {

// A reader of batches of these shapes that `source` fills.
std::unique_ptr<Reader> reader_of(const Data::Source& source, const ReaderOptions& options,
                                  std::vector<cortado::Shape> shapes);

// Opens the readers of a trainer's nets: what `data` has of a source layer, else what the file names.
class DataReaders {
 public:
  explicit DataReaders(Data data) : data_(std::move(data)) {}
  OpenReader opener();  // must not outlive this
  // Throws UserError where `data` names a layer that none of the nets has.
  void check_used() const;

 private:
  std::unique_ptr<Reader> open(const SourceOptions& source, const ReaderOptions& options);

  Data data_;
  std::set<std::string> opened_;  // layers, by name
};

}  // namespace cortado::api
