#pragma once

#include <memory>

#include "cortado/data/reader.h"

namespace cortado {

// Opens what `source` names. Throws UserError: missing file or database, wrong backend, unreadable record,
// crop larger than image, mean of another shape.
std::unique_ptr<Reader> open_reader(const SourceOptions& source, const ReaderOptions& options);

}  // namespace cortado
