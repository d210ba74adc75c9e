/* In place of solver_cuda.cu in a build without CUDA: no engine comes of it. */
#include "analysis/warp/solver.h"

const struct oct_warp_ops oct_warp_cuda = {.name = "cuda"};
