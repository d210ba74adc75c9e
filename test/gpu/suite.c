/* The engine suite on a real GPU (scripts/gpu-check): fused and plain kernels. With "--small" only
 * the contract's tests, whose B-scans are small enough for compute-sanitizer; with "--probe"
 * nothing but the search for a GPU.
 *
 * Exit status: 0 passed, 1 failed, 3 no GPU answers. */
#include "test/engine_suite.h"
#include "test/tap.h"

#include "kernels/cuda_device.h"

#include <stdio.h>
#include <string.h>

#ifdef OCT_TEST_GPU_CMOCKA_H
jmp_buf oct_small_cmocka_out;

int oct_small_cmocka_run(const char *group, const struct CMUnitTest *tests, size_t n)
{
    volatile int n_failed = 0;
    printf("# %s\n1..%zu\n", group, n);
    for (volatile size_t i = 0; i < n; i++) {
        void *state = tests[i].initial_state;
        int how = setjmp(oct_small_cmocka_out);
        if (how == 0)
            tests[i].test_func(&state);
        n_failed += how == 1;
        printf("%sok %zu - %s%s\n", how == 1 ? "not " : "", (size_t)i + 1, tests[i].name,
               how == 2 ? " # SKIP" : "");
        fflush(stdout);
    }
    return n_failed;
}
#endif

/* Under compute-sanitizer a kernel takes many times longer. */
#define PATIENCE_MS 300000

int main(int argc, char **argv)
{
    static const struct oct_engine_options variants[] = {
        {.cuda = "auto", .deadline_ms = PATIENCE_MS},
        {.cuda = "plain", .max_batch = 4, .deadline_ms = PATIENCE_MS},
    };
    static const struct oct_engine_options flows[] = {
        {.cuda = "fused", .deadline_ms = PATIENCE_MS},
        {.cuda = "fused", .max_batch = 3, .n_streams = 5, .deadline_ms = PATIENCE_MS},
        {.cuda = "plain", .max_batch = 2, .deadline_ms = PATIENCE_MS},
    };
    const bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    const struct oct_suite pictures = {&oct_engine_cuda, variants, 2};
    const struct oct_suite flow = {&oct_engine_cuda, flows, 3};
    char why[256], name[128];
    if (oct_cuda_count(why, sizeof(why)) == 0) {
        printf("no GPU answers: %s\n", why);
        return 3;
    }
    if (argc > 1 && strcmp(argv[1], "--probe") == 0)
        return 0;
    if (oct_cuda_name(0, name, sizeof(name), NULL) == OCT_OK)
        printf("# %s; %s\n", name, oct_cuda_built_with());
    int n_failed = oct_suite_run_flow(&flow);
    if (!small)
        n_failed += oct_suite_run_pictures(&pictures);
    return n_failed > 0;
}
