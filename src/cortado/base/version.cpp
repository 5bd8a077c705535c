#include "cortado/base/version.h"

namespace cortado {

std::string_view version() { return CORTADO_VERSION; }

}  // namespace cortado
