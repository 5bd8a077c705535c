#pragma once

// UserError: wrong input; its text says what, where, the value and the remedy, as the command prints it.
// PeerError: another rank failed or is gone. InternalError: a fault of Cortado.
#include "cortado/base/error.h"

namespace cortado::api {

using cortado::InternalError;
using cortado::PeerError;
using cortado::UserError;

}  // namespace cortado::api
