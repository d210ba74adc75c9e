/* An engine that is kept full of a scene's B-scans, and the bare transforms of its chain: what
 * benchmarks of the engine time. */
#ifndef OCT_TOOLS_BENCH_RUNNER_H
#define OCT_TOOLS_BENCH_RUNNER_H

#include "kernels/recon/fft.h"
#include "tools/bench/scene.h"

#define OCT_BENCH_MOST_IN_FLIGHT 128u

struct oct_bench_runner {
    struct oct_bench_scene *scene;                        /* borrowed */
    struct oct_image_frame out[OCT_BENCH_MOST_IN_FLIGHT]; /* first the scene's own, then ours */
    unsigned n_out;
    const struct oct_engine_ops *ops;
    struct oct_engine *engine;
};

/* Selects and starts the engine; why: which one and why. close is right after success alone. */
enum oct_err oct_bench_runner_open(struct oct_bench_runner *runner, struct oct_bench_scene *scene,
                                   const char *backend, const struct oct_engine_options *options,
                                   char *why, size_t why_bytes, struct oct_error *err);
void oct_bench_runner_close(struct oct_bench_runner *runner);

/* Checks a picture of the 60 dB below its maximum and one of the range that is timed against double
 * precision; that limits are right is what the tests say. OCT_E_BACKEND when they are wrong; *error
 * in grey levels. */
enum oct_err oct_bench_runner_verify(struct oct_bench_runner *runner, double *error,
                                     struct oct_error *err);

/* Seconds for n B-scans with the engine kept full. */
double oct_bench_runner_seconds(struct oct_bench_runner *runner, uint64_t n);

/* One B-scan alone, submit to collect: the median. */
double oct_bench_runner_latency_us(struct oct_bench_runner *runner);

/* The limit: the transforms of the plan's chain by FFTW with measured plans, and nothing else. */
struct oct_bench_transforms {
    struct oct_fft fft;
    bool is_one; /* nufft: one of P2/2 points a line */
    uint32_t padded;
    unsigned n_threads;
};

enum oct_err oct_bench_transforms_open(struct oct_bench_transforms *transforms,
                                       const struct oct_plan *plan, const char *wisdom_dir,
                                       unsigned n_threads, struct oct_error *err);
void oct_bench_transforms_close(struct oct_bench_transforms *transforms);

/* Seconds for *n_lines, which is made a multiple of the threads. */
double oct_bench_transforms_seconds(const struct oct_bench_transforms *transforms,
                                    uint64_t *n_lines);

#endif
