#pragma once

#include "cortado/data/prefetch.h"

namespace cortado {

// The record source of a VolumeData layer: `source` lists volumes, a line "VOLUME LABELS" or, with one top,
// "VOLUME". Of each it reads the boxes that are asked for, of what random crops and mirrors make of it.
// Throws UserError.
std::unique_ptr<SampleSource> open_volume_list(const SourceOptions& source, const ReaderOptions& options);

}  // namespace cortado
