#pragma once

// The whole public face of Cortado (docs/how-to/embed.md). These headers include each other and the standard
// library alone.
#include "cortado/api/convert.h"
#include "cortado/api/data.h"
#include "cortado/api/error.h"
#include "cortado/api/job.h"
#include "cortado/api/layer.h"
#include "cortado/api/machine.h"
#include "cortado/api/net.h"
#include "cortado/api/network.h"
#include "cortado/api/plan.h"
#include "cortado/api/simulation.h"
#include "cortado/api/solver.h"
#include "cortado/api/strategy.h"
#include "cortado/api/sweep.h"
#include "cortado/api/tensor.h"
#include "cortado/api/trainer.h"
#include "cortado/api/weights.h"
