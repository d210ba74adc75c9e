/* The CUDA engine's kernels and its stream logic on the host (test/cuda_host/): the same tests that
 * the CPU engine passes, over both variants, one GPU and two, small batches and large. */
#include "test/engine_suite.h"

#include "test/cuda_host/cuda_host.h"

#define PATIENCE_MS 120000 /* a sanitizer or a busy machine is not a device that hangs */

int main(void)
{
    static const struct oct_engine_options variants[] = {
        {.cuda = "auto", .max_batch = 4, .deadline_ms = PATIENCE_MS},
        {.cuda = "plain", .max_batch = 2, .n_streams = 1, .deadline_ms = PATIENCE_MS},
    };
    static const struct oct_engine_options flows[] = {
        {.cuda = "fused", .deadline_ms = PATIENCE_MS},
        {.cuda = "fused", .gpus = "1,0", .max_batch = 3, .deadline_ms = PATIENCE_MS},
        {.cuda = "plain", .max_batch = 2, .n_streams = 5, .deadline_ms = PATIENCE_MS},
    };
    const struct oct_suite pictures = {&oct_engine_cuda, variants, 2};
    const struct oct_suite flow = {&oct_engine_cuda, flows, 3};
    cuda_host_reset(2, (size_t)2 << 30);
    int n_failed = oct_suite_run_pictures(&pictures);
    n_failed += oct_suite_run_flow(&flow);
    return n_failed > 0;
}
