/* In place of matcher_cuda.cu in a build without CUDA: no engine comes of it. */
#include "analysis/align/matcher.h"

const struct oct_matcher_ops oct_matcher_cuda = {.name = "cuda"};
