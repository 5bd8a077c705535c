#pragma once

#include "cortado/base/units.h"

namespace cortado {

// The most memory that this process has had resident so far.
Bytes peak_resident_memory();

}  // namespace cortado
