/* Whole pixels: where pictures, and windows of their rows, fit a reference best by ZNCC
 * (analysis/correlate/correlate.h), behind one table for the CPU and the CUDA engine. What follows
 * from them (sub-pixels, strips, drift) is computed on the host by the caller.
 *
 *     create -> set_reference -> { load n pictures -> find, look, look, ... } -> destroy
 *
 * Sign: shift d puts picture(p) onto reference(p + d). Pictures are f32 [height][width]; windows
 * are whole rows. One thread uses a matcher at a time. */
#ifndef OCT_ANALYSIS_ALIGN_MATCHER_H
#define OCT_ANALYSIS_ALIGN_MATCHER_H

#include "numeric/picture.h"

#include <math.h>

struct oct_workers;
struct oct_level;

struct oct_match {
    int32_t dy, dx;
    /* ZNCC at (dy, dx); NaN: it is defined nowhere in the search, and the shift is 0. */
    float score;
    /* Of whole pictures: how far the score stands out of those of all shifts, see
     * oct_match_significance; of windows NaN. */
    float significance;
    float around[3][3]; /* ZNCC at (dy - 1 .. dy + 1, dx - 1 .. dx + 1); NaN where not defined, and
                           beyond the search */
};

/* Whether all neighbours of the score are there, along the axes of the search: on the border of
 * what was sought, or of what overlaps, the true maximum may lie beyond. max_dy, max_dx 0: not
 * sought along that axis. */
bool oct_match_is_inside(const struct oct_match *match, uint32_t max_dy, uint32_t max_dx);

/* ---- how far a score stands out ----
 *
 * A score by chance has the standard deviation 1 / sqrt(N) of its overlap N, except for how alike
 * neighbouring pixels are. So scores times sqrt(N) of all shifts of two pictures show what chance
 * does with these two, whatever their noise and their structure:
 *
 *     significance = (peak - median) / (1.4826 MAD)       of values atanh(score) * sqrt(N / pixels)
 *
 * (Fisher's z: high scores of few pixels are rarer by chance than their deviation says)
 * over a third of the sides at least, however small the search is: next to the peak lies the peak
 * itself. Measured with noise of up to twice the contrast: of right shifts 7.1 or more on B-scans,
 * 17 or more on photoreceptors; of pictures of other places 5.5 at most, but 9.6 of B-scans of
 * another eye that have hardly any noise, whose layers are alike.
 *
 * Small pictures of few structures, and regular ones, stand out of themselves by less whatever they
 * score: right shifts 2.5 to 6.3 with scores of 0.67 to 0.95. Other places scored 0.27 at most.
 *
 * Where shifts are sought along one axis alone, a hundred of them, chance finds less than among ten
 * thousand: right shifts in depth of neighbours in a volume, 150 um apart at the fovea, 5.7. */
#define OCT_MATCH_LEAST_SIGNIFICANCE 6.5
#define OCT_MATCH_LEAST_SIGNIFICANCE_LINE 4.5
#define OCT_MATCH_HIGH_SCORE 0.6

/* Whether that is no chance. NaN: it is. max_dy, max_dx: what was sought. */
static inline bool oct_match_stands_out(double score, double significance, uint32_t max_dy,
                                        uint32_t max_dx)
{
    const bool is_line = max_dy == 0 || max_dx == 0;
    return score >= OCT_MATCH_HIGH_SCORE ||
           significance >=
               (is_line ? OCT_MATCH_LEAST_SIGNIFICANCE_LINE : OCT_MATCH_LEAST_SIGNIFICANCE);
}

#define OCT_MATCH_SAMPLES 2048u /* of the shifts, spread evenly */

/* The largest shift whose scores show what chance is, for a search of max_d. */
static inline uint32_t oct_match_reach(uint32_t max_d, uint32_t side)
{
    return max_d > side / 3 ? max_d : side / 3;
}

/* Of n shifts the k-th sample. */
static inline size_t oct_match_sample(uint32_t k, size_t n)
{
    return (size_t)((uint64_t)k * n / OCT_MATCH_SAMPLES);
}

/* A score of N pixels, part = N / pixels; NaN: of a score that is not defined. */
static inline float oct_match_value(float score, float part)
{
    return atanhf(score > 0.999F ? 0.999F : score < -0.999F ? -0.999F : score) * sqrtf(part);
}

/* N / pixels at a shift of pictures of height x width. */
static inline float oct_match_part(int32_t dy, int32_t dx, uint32_t height, uint32_t width)
{
    const float y = 1 - (float)(dy < 0 ? -dy : dy) / (float)height;
    const float x = 1 - (float)(dx < 0 ? -dx : dx) / (float)width;
    return y * x;
}

/* samples: [OCT_MATCH_SAMPLES] values, NaN where not defined; overwritten. peak: a value. NaN: too
 * few are defined. */
float oct_match_significance(float *samples, float peak);

/* Rows y0 .. y0 + n_rows - 1 of a loaded picture, sought at the shifts within `radius` pixels of
 * (dy, dx) in both directions. Where fewer than min_window_overlap of the window's pixels meet the
 * reference, ZNCC is not defined. */
struct oct_match_window {
    unsigned picture; /* below n of load */
    uint32_t y0, n_rows;
    int32_t dy, dx;  /* within max_dy + max_radius, max_dx + max_radius of 0 */
    uint32_t radius; /* at most max_radius */
};

struct oct_matcher_setup {
    uint32_t height, width;
    uint32_t max_dy, max_dx;     /* of whole pictures */
    double min_overlap;          /* of whole pictures: part of the largest overlap */
    uint32_t max_rows;           /* of a window; 0: no windows are asked for */
    uint32_t max_radius;         /* of a window's search */
    double min_window_overlap;   /* part of the window */
    bool masked;                 /* pictures may have masks */
    unsigned n_batch;            /* most pictures loaded at once */
    struct oct_workers *workers; /* of the CPU engine; NULL: the caller alone */
    const char *gpus;            /* as pipeline.gpus */
    unsigned deadline_ms;        /* of a GPU; 0: 2000 */
    bool plans_ahead;            /* the CPU engine makes at create what it may need later */
};

struct oct_matcher;

struct oct_matcher_ops {
    const char *name; /* "cpu", "cuda" */

    /* *matcher is NULL on error. OCT_E_ARG: sizes that cannot be; OCT_E_BACKEND: no device;
     * OCT_E_NO_MEMORY. */
    enum oct_err (*create)(struct oct_matcher **matcher, const struct oct_matcher_setup *setup,
                           struct oct_error *err);

    /* Copies what it needs of the reference, which has contrast (oct_picture_has_contrast). */
    enum oct_err (*set_reference)(struct oct_matcher *matcher, const struct oct_picture *reference,
                                  struct oct_error *err);

    /* Takes n <= n_batch pictures in the place of those before; they are borrowed until the next
     * load. Those without contrast match nowhere. */
    enum oct_err (*load)(struct oct_matcher *matcher, const struct oct_picture *pictures,
                         unsigned n, struct oct_error *err);

    /* The shifts of all loaded pictures: matches[n of load]. */
    enum oct_err (*find)(struct oct_matcher *matcher, struct oct_match *matches,
                         struct oct_error *err);

    /* The shifts of n windows, of any loaded pictures in any order: matches[n]. The more are asked
     * for in one call, the better it runs in parallel. */
    enum oct_err (*look)(struct oct_matcher *matcher, const struct oct_match_window *windows,
                         unsigned n, struct oct_match *matches, struct oct_error *err);

    /* Loaded picture i, or the reference (i = UINT32_MAX), made ready for sums of products, where
     * the engine has it on the host: valid until the next load, or set_reference. NULL: it has
     * not. */
    const struct oct_level *(*level)(const struct oct_matcher *matcher, unsigned i);

    /* The name of the engine that searches at present. NULL: `name`, always. */
    const char *(*running)(const struct oct_matcher *matcher);

    void (*destroy)(struct oct_matcher *matcher); /* NULL is fine */
};

extern const struct oct_matcher_ops oct_matcher_cpu, oct_matcher_cuda;

/* What engines refuse: sizes or shifts that cannot be, and windows outside what was set up of n
 * loaded pictures. OCT_E_ARG. */
enum oct_err oct_matcher_check(const struct oct_matcher_setup *setup, struct oct_error *err);
enum oct_err oct_matcher_check_windows(const struct oct_matcher_setup *setup, unsigned n_loaded,
                                       const struct oct_match_window *windows, unsigned n,
                                       struct oct_error *err);

/* "auto", "cpu" or "cuda": the table to use and a matcher made by it. The table of a GPU is one
 * that fails over: when the CUDA engine says OCT_E_BACKEND, the CPU goes on with the same
 * pictures, and the log says so. OCT_E_BACKEND: "cuda", and there is no GPU. */
enum oct_err oct_matcher_select(const struct oct_matcher_ops **ops, struct oct_matcher **matcher,
                                const char *backend, const struct oct_matcher_setup *setup,
                                struct oct_error *err);

/* Whether a tenth of the pixels is valid and they are not all the same. */
bool oct_picture_has_contrast(const struct oct_picture *picture);

#endif
