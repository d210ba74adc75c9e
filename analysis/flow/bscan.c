#include "analysis/flow/bscan.h"

#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct oct_flow_kernels *oct_flow_kernels_best(void)
{
    static const struct oct_flow_kernels *const sets[OCT_N_SIMD + 1] = {
        OCT_SIMD_ALL(oct_flow_kernels_table)};
    return sets[oct_simd_choose("auto")];
}

enum oct_err oct_flow_bscan_init(struct oct_flow_bscan *b, uint32_t n_lines, uint32_t depth,
                                 struct oct_error *err)
{
    const size_t stride = oct_flow_stride(depth);
    *b = (struct oct_flow_bscan){.n_lines = n_lines, .depth = depth, .stride = stride};
    b->real = oct_aligned_calloc(64, 2 * n_lines * stride, sizeof(float));
    b->imaginary = b->real ? b->real + n_lines * stride : NULL;
    b->pieces = oct_aligned_calloc(64, oct_flow_pieces(n_lines) * stride, sizeof(float));
    b->blocks =
        calloc((size_t)oct_flow_pieces(n_lines) * (depth / OCT_FLOW_BLOCK) + 1, sizeof(float));
    b->power = calloc(n_lines, sizeof(float));
    return b->real && b->pieces && b->blocks && b->power
               ? OCT_OK
               : oct_fail(err, OCT_E_NO_MEMORY, "flow: out of memory for B-scans of %u x %u",
                          n_lines, depth);
}

void oct_flow_bscan_finish(struct oct_flow_bscan *b)
{
    free(b->real);
    free(b->pieces);
    free(b->blocks);
    free(b->power);
    *b = (struct oct_flow_bscan){.n_lines = 0};
}

/* ---- what comes in ---- */

struct put {
    struct oct_flow_bscan *b;
    const float *values;
    const struct oct_flow_kernels *k;
};

/* Whether it came; else zeros in its place. */
static bool put_line(const struct put *p, uint32_t j, float *sums)
{
    struct oct_flow_bscan *b = p->b;
    const uint32_t depth = b->depth;
    float *re = b->real + j * b->stride + OCT_FLOW_MARGIN;
    float *im = b->imaginary + j * b->stride + OCT_FLOW_MARGIN;
    const float power = p->k->split(p->values + 2 * (size_t)j * depth, depth, re, im, sums);
    const bool came = power > 0 && isfinite(power);
    b->power[j] = came ? power : 0;
    if (came)
        return true;
    memset(re, 0, depth * sizeof(*re));
    memset(im, 0, depth * sizeof(*im));
    return false;
}

static void put_lines(void *context, unsigned piece, unsigned worker)
{
    const struct put *p = context;
    struct oct_flow_bscan *b = p->b;
    const uint32_t depth = b->depth, first = piece * OCT_FLOW_LINES;
    const uint32_t end = first + OCT_FLOW_LINES < b->n_lines ? first + OCT_FLOW_LINES : b->n_lines;
    float *sums = b->pieces + piece * b->stride;
    bool all_came = true;
    (void)worker;
    memset(sums, 0, depth * sizeof(*sums));
    for (uint32_t j = first; j < end; j++)
        all_came = put_line(p, j, sums) && all_came;
    if (!all_came) { /* what has no number is in the sums */
        memset(sums, 0, depth * sizeof(*sums));
        for (uint32_t j = first; j < end; j++)
            p->k->add_power(oct_flow_bscan_line(b, j, 0), depth, sums);
    }
    p->k->sum_blocks(sums, depth, b->blocks + (size_t)piece * (depth / OCT_FLOW_BLOCK));
}

void oct_flow_bscan_put(struct oct_flow_bscan *b, const float *values, struct oct_workers *workers)
{
    struct put put = {b, values, oct_flow_kernels_best()};
    oct_workers_run(workers, oct_flow_pieces(b->n_lines), put_lines, &put);
    b->has_lines = false;
    for (uint32_t j = 0; j < b->n_lines; j++)
        b->has_lines = b->has_lines || b->power[j] > 0;
}

bool oct_flow_bscan_is_same(const struct oct_flow_bscan *a, const struct oct_flow_bscan *b)
{
    const size_t bytes = a->n_lines * a->stride * sizeof(float);
    return memcmp(a->real, b->real, bytes) == 0 && memcmp(a->imaginary, b->imaginary, bytes) == 0;
}
