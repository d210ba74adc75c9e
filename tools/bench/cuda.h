/* What a GPU does, beside what its bus allows: the part of `octctl bench --backend cuda` that
 * scripts/gpu-check builds too, so it needs neither configuration nor JSON. */
#ifndef OCT_TOOLS_BENCH_CUDA_H
#define OCT_TOOLS_BENCH_CUDA_H

#include "tools/bench/scene.h"

struct oct_bench_cuda_row {
    char kernels[16];  /* "fused", "plain" */
    const char *range; /* of the rate and the latency: "manual", "auto", "percentile" */
    const char *interpolation;
    const char *in; /* the samples: "u16", "mono12p", "u8" */
    uint32_t samples, lines, depth;
    unsigned batch, streams;
    double error;              /* grey levels off the double-precision sums */
    double lines_per_s;        /* pinned memory to pinned memory, engine kept full */
    double copy_lines_per_s;   /* bare copies of the same bytes, both ways at once */
    double device_bytes_per_s; /* copy within the device, read + written */
    double kernel_lines_per_s; /* the kernels alone, batch after batch on all streams */
    double stage_us[3];        /* one batch alone: upload, kernels, download */
    double latency_us;         /* one B-scan alone, submit to collect, median */
};

/* Verifies, then measures; `seconds` is about what the timed part takes. The scene's plan must be
 * for u8; its frames are used as input, out[0] is written. OCT_E_BACKEND when the pictures are
 * wrong: then nothing is timed. */
enum oct_err oct_bench_cuda(struct oct_bench_scene *scene, const struct oct_engine_options *options,
                            enum oct_range range, double seconds, struct oct_bench_cuda_row *row,
                            struct oct_error *err);

/* A table on stdout; then a line for each row of nufft that has a like one of linear: how many
 * times its A-lines/s they are, with copies and by the kernels alone. */
void oct_bench_cuda_print_head(void);
void oct_bench_cuda_print(const struct oct_bench_cuda_row *row);
void oct_bench_cuda_print_ratios(const struct oct_bench_cuda_row *rows, size_t n);

/* The row of linear that is like that one of nufft in all else; NULL: there is none. */
const struct oct_bench_cuda_row *oct_bench_cuda_linear(const struct oct_bench_cuda_row *rows,
                                                       size_t n,
                                                       const struct oct_bench_cuda_row *nufft);

#endif
