#pragma once

#include <string>
#include <vector>

#include "cortado/data/image_set.h"

namespace cortado {

// Throws UserError where one of `outputs` is there and is one of `inputs` or (files of) `images`, which may
// be null, or where two outputs are one. Empty paths are passed over.
void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs,
                   ImageSet* images);

}  // namespace cortado
