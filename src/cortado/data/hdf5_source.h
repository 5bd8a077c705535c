#pragma once

#include "cortado/data/prefetch.h"

namespace cortado {

// The record source of an HDF5Data layer: `source` lists files, one a line, each holding one dataset per top,
// named as the top, all with the same number of rows. With `shuffle` the files and the rows within each
// change their order every epoch. Throws UserError.
std::unique_ptr<SampleSource> open_hdf5_list(const SourceOptions& source, const ReaderOptions& options);

}  // namespace cortado
