#pragma once

#include "cortado/data/prefetch.h"

namespace cortado {

// The record source of a WindowData layer: windows of images, drawn anew for each sample, uniformly from
// those of the background for the first samples of a batch and from those of classes for the others. Throws
// UserError.
std::unique_ptr<SampleSource> open_window_list(const SourceOptions& source, const ReaderOptions& options);

}  // namespace cortado
