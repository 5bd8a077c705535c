#include "cortado/base/parallel_for.h"

#include <omp.h>

namespace cortado {

int compute_threads() { return omp_get_max_threads(); }
void set_compute_threads(int threads) { omp_set_num_threads(threads); }

}  // namespace cortado
