#pragma once

// Before a function that is compiled for a GPU, too, where the compiler is one for GPUs.
#ifdef __CUDACC__
#define CORTADO_EVERYWHERE __host__ __device__
#else
#define CORTADO_EVERYWHERE
#endif
