/* What a benchmark runs on: a plan, spectra with fringes and noise, and the check that an engine's
 * output is right before it is timed. */
#ifndef OCT_TOOLS_BENCH_SCENE_H
#define OCT_TOOLS_BENCH_SCENE_H

#include "pipeline/flow/engine.h"

#define OCT_BENCH_FRAMES 8u /* different B-scans in turn, so that no cache holds them all */

struct oct_config;

struct oct_bench_scene {
    struct oct_plan *plan;
    struct oct_raw_frame in[OCT_BENCH_FRAMES];
    uint16_t *samples[OCT_BENCH_FRAMES]; /* [M][N] what `in` holds, as u16 */
    struct oct_image_frame out[OCT_BENCH_FRAMES];
    float
        *dc[OCT_BENCH_FRAMES];  /* dc=running: lines for the jobs, those of each alone; else NULL */
    struct oct_display display; /* the config's; what is timed may take another range */
};

/* The config's geometry and calibration; where it names no calibration, a made-up spectrometer
 * with dispersion, so that the full chain runs. `depth` replaces the crop (0: the config's). */
enum oct_err oct_bench_scene_init(struct oct_bench_scene *scene, const struct oct_config *config,
                                  uint32_t depth, struct oct_error *err);
/* The same where there is no configuration: scene->plan is there, the B-scans are made. And the
 * made-up spectrometer of n pixels; the caller finishes cal. */
enum oct_err oct_bench_scene_fill(struct oct_bench_scene *scene, struct oct_error *err);
enum oct_err oct_bench_calibration(struct oct_calibration *cal, uint32_t n);

/* From now on the B-scans come in this format, once: N is even; of u8 the upper 8 of their 12
 * bits. */
enum oct_err oct_bench_scene_pack(struct oct_bench_scene *scene, enum oct_lines_format format,
                                  struct oct_error *err);

void oct_bench_scene_finish(struct oct_bench_scene *scene);

/* Compares lines of in[f] -> out[f] (made with display log, manual, u8 or f32) with direct sums in
 * double precision over the plan's tables; with nufft with the exact sum over the camera's samples,
 * from which an amplitude may differ by the accuracy that the plan promises. The largest difference
 * in grey levels (u8) or dB (f32, where the intensity is above the maximum - 80 dB). */
double oct_bench_scene_error(const struct oct_bench_scene *scene, unsigned f);

/* ---- the timing loop ---- */

#define OCT_BENCH_REPEATS 5 /* the best is taken: noise only makes times longer */

/* Does n of something; *took in seconds. */
typedef enum oct_err oct_bench_timed(void *context, uint64_t n, double *took,
                                     struct oct_error *err);

/* How many of it a second, at best: `first` of it, then OCT_BENCH_REPEATS times as many as take
 * about `seconds` together. */
enum oct_err oct_bench_fastest(oct_bench_timed *timed, void *context, uint64_t first,
                               double seconds, double *per_s, struct oct_error *err);

/* The middle one of n; sorts them. 0: there are none. */
double oct_bench_median(double *values, size_t n);

/* "manual", "auto", "percentile" */
const char *oct_bench_range_name(enum oct_range range);

#endif
