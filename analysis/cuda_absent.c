/* In a build without CUDA: tables that create nothing, in the place of those of the .cu files.
 * Weak: a test's own come first. */
#include "analysis/align/matcher.h"
#include "analysis/cells/engine.h"
#include "analysis/correlate/correlate.h"
#include "analysis/flow/engine.h"
#include "analysis/layers/denoise/levelset.h"
#include "analysis/warp/solver.h"

#pragma weak oct_cells_cuda_engine
#pragma weak oct_correlator_cuda
#pragma weak oct_flow_engine_cuda
#pragma weak oct_levelset_cuda
#pragma weak oct_matcher_cuda
#pragma weak oct_warp_cuda

const struct oct_cells_engine_ops oct_cells_cuda_engine = {.name = "cuda"};
const struct oct_correlator_ops oct_correlator_cuda = {.name = "cuda"};
const struct oct_flow_engine_ops oct_flow_engine_cuda = {.name = "cuda"};
const struct oct_levelset_ops oct_levelset_cuda = {.name = "cuda"};
const struct oct_matcher_ops oct_matcher_cuda = {.name = "cuda"};
const struct oct_warp_ops oct_warp_cuda = {.name = "cuda"};
