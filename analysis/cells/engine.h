/* Cells in one picture: the parameters of a search, and one table for both engines (CPU, CUDA),
 * which find circles (GICOV), bring them to a fraction of a pixel, and follow them by snakes
 * (MGVF). What links pictures is computed on the host (cells.h).
 *
 *     create -> { look -> follow ... | map | field } -> destroy
 *
 * Method: M. Boyer, D. Tarjan, S. T. Acton, K. Skadron, "Accelerating leukocyte tracking using
 * CUDA" (IPDPS 2009), called Boyer 2009 in this room. Definitions (I the picture, I' the smoothed
 * one, G its gradient):
 *   G: central differences, one-sided at the border
 *   circle k at p: e_i = (cos t_i, sin t_i), t_i = 2 pi i / 150, g_i = G(p + d_ki) . e_i with
 *     d_ki = rho_k e_i to the whole pixel; m_k, v_k: mean and variance (N - 1) of g_i
 *   S(p) = m_k / sqrt(v_k + v0) of the k with the largest m_k^2 / (v_k + v0), the first of equals
 *   v0 = (kappa sigma_g)^2, sigma_g = 1.4826 median of |gx| and |gy| together, of valid pixels
 * A peak has |S| above the threshold, S of the polarity, and the largest S^2 within the disk.
 *
 * Coordinates: x = column, y = row, downward; pixel centres at whole numbers, the first at 0. All
 * lengths are pixels of the picture that is searched, f32 [height][width] of square pixels, with a
 * mask or none; those marked [R] are multiples of the radius. What is masked is filled from the
 * nearest valid pixel of its column, and no cell is reported within 2 R of it.
 *
 * The twins find the same peaks but where scores differ by less than 1e-4; centres agree to
 * 0.01 px. Same picture, same numbers, whatever the number of threads. One thread uses an engine at
 * a time. */
#ifndef OCT_ANALYSIS_CELLS_ENGINE_H
#define OCT_ANALYSIS_CELLS_ENGINE_H

#include "analysis/param.h"
#include "numeric/picture.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_CELLS_LEAST_RADIUS 1.5
#define OCT_CELLS_MOST_RADIUS 200.0
#define OCT_CELLS_MOST_CIRCLES 32u
#define OCT_CELLS_SAMPLES 150u /* N: of a circle */
#define OCT_CELLS_SNAXELS 20u
#define OCT_CELLS_MERGED 0.6 /* R: peaks as near as that are of one cell, where any are merged */
#define OCT_CELLS_NO_CIRCLE 255u /* of a pixel without a score */

enum oct_cells_polarity {
    OCT_CELLS_BRIGHT, /* S < 0: the outward gradient is negative */
    OCT_CELLS_DARK,   /* S > 0 */
    OCT_CELLS_BOTH,
    OCT_CELLS_N_POLARITIES
};

enum oct_cells_refine {
    OCT_CELLS_REFINE_NONE,   /* the pixel of the peak, the radius of its circle */
    OCT_CELLS_REFINE_PEAK,   /* the vertex of the parabolas through S^2 at the peak's neighbours */
    OCT_CELLS_REFINE_EDGE,   /* the largest |m(x, y, r)| between pixels and circles (find.h) */
    OCT_CELLS_REFINE_SPLINE, /* the B-spline snake of Boyer 2009 (find.h) */
    OCT_CELLS_N_REFINES
};

struct oct_cells_params {
    /* Detection. */
    double radius;            /* R, px */
    double first, last, step; /* [R] circles: first, first + step, .. up to last */
    bool truncated;           /* samples lie at offsets truncated toward zero; else rounded */
    enum oct_cells_polarity polarity;
    double threshold; /* a peak has |S| above it; above 0 */
    double smooth;    /* [R] sigma of the Gaussian before the gradient; 0: none */
    double floor;     /* kappa; 0: none */
    double spacing;   /* [R] radius of the disk in which a peak is the largest */
    bool merges;      /* of peaks within 0.6 R the first in raster order stays */
    enum oct_cells_refine refine;

    /* Following. */
    uint32_t detect_every; /* frames; 1: each */
    uint32_t memory;       /* frames: see cells.h */
    uint32_t min_frames;   /* a track that was seen in fewer is none */
    double max_step;       /* px a frame, while a track has no velocity; 0: 2 R */
    double flow_deg; /* cells go so, 0: to the right, 90: downward; NaN: each as it went before */
    bool predicts;   /* the octd tracker; false: Boyer 2009's: no prediction, every snake
                              counts, MGVF along (1, 1) */
    double stop;     /* px: a snake ends when an iteration moves it by no more */
};

/* What a person may set of it; the defaults are the profile octd's. */
extern const struct oct_params oct_cells_search_params;

/* The profiles for cells of that radius, in px; 0: the default. octd: rounded samples, Gaussian
 * 0.2 R, floor 1, refined at the edge, every frame, stop 0.01. boyer: truncated samples, no
 * smoothing, no floor, both polarities, B-splines, every 10th frame, stop 0.1. */
void oct_cells_params_octd(struct oct_cells_params *params, double radius);
void oct_cells_params_boyer(struct oct_cells_params *params, double radius);

/* Circles of the list; at most OCT_CELLS_MOST_CIRCLES; radius[k] in px, ascending. 0: the list is
 * empty or cannot be. */
unsigned oct_cells_circles(const struct oct_cells_params *params,
                           double radius[OCT_CELLS_MOST_CIRCLES]);

/* MaxR: S is defined for MaxR <= x < width - MaxR, and y likewise: ceil(largest circle) + 2. */
uint32_t oct_cells_border(const struct oct_cells_params *params);

/* OCT_E_ARG: what cannot be, and what it must be; a picture of height x width is too small: the
 * size that it needs, 2 MaxR + 1. */
enum oct_err oct_cells_params_check(const struct oct_cells_params *params, uint32_t height,
                                    uint32_t width, struct oct_error *err);

struct oct_cell {
    double x, y, radius; /* px, refined */
    float score; /* S of the peak, signed; of a snake: the S of largest S^2, of its polarity,
                            among pixels within 1 px of its end */
    int32_t peak_x, peak_y; /* the pixel of that score */
};

/* A snake to start: in a window about (x, y), along the flow (vx, vy) of cells. */
struct oct_cell_start {
    double x, y;
    double vx, vy;  /* their signs and ratio matter; 0, 0: plain diffusion */
    double mean_dy; /* Ey - y: Ey is the mean y of the cell in the ten pictures before this one, or
                       in all of them while it was in fewer */
    double radii[OCT_CELLS_SNAXELS];
    bool is_dark; /* the polarity of which a score is sought */
};

struct oct_cell_end {
    bool defined; /* the window has 2 x 2 px at least; else x, y and radii are those of start */
    bool left;    /* a snaxel is outside the window, where the snake ends: with params.predicts it
                     does not count; Boyer 2009 goes on from there */
    double x, y;  /* of the snake itself */
    double radii[OCT_CELLS_SNAXELS];
    uint32_t n_field, n_snake; /* iterations */
    struct oct_cell cell;      /* the score there, 0 where it is not defined; x, y, radius: refined
                                  from the snake's with REFINE_EDGE, else the snake's and the mean
                                  of its radii */
};

/* The window of the snake about (x, y): columns u1 .. u2, rows v1 .. v2, to be included. */
struct oct_cell_window {
    int32_t u1, u2, v1, v2;
};

/* u1 = int(max(x - 4 R + 0.5, 0)), u2 = int(min(x + 4 R + 0.5, width - 1)); v likewise with 2 R.
 * False: it has fewer than 2 x 2 px. */
bool oct_cell_window_find(const struct oct_cells_params *params, uint32_t height, uint32_t width,
                          double x, double y, struct oct_cell_window *window);

/* Pixels of the largest window, and of this one. */
uint32_t oct_cell_window_most(const struct oct_cells_params *params);
static inline size_t oct_cell_window_pixels(const struct oct_cell_window *window)
{
    return (size_t)(window->u2 - window->u1 + 1) * (size_t)(window->v2 - window->v1 + 1);
}

struct oct_workers;

struct oct_cells_engine_setup {
    uint32_t height, width;
    struct oct_cells_params params; /* checked for this size */
    bool keeps_fields;              /* field will be called */
    struct oct_workers *workers;    /* of the CPU engine; NULL: the caller alone */
    const char *gpus;               /* as pipeline.gpus */
    unsigned deadline_ms;           /* of a GPU; 0: 2000 */
};

struct oct_cells_engine;

struct oct_cells_engine_ops {
    const char *name; /* "cpu", "cuda" */

    /* *engine is NULL on error. OCT_E_ARG, OCT_E_BACKEND: no device; OCT_E_NO_MEMORY. */
    enum oct_err (*create)(struct oct_cells_engine **engine,
                           const struct oct_cells_engine_setup *setup, struct oct_error *err);

    /* Takes the picture (borrowed until the next look) and finds its cells, in raster order of
     * their peaks: cells[0 .. min(*n, most) - 1]. *n: how many there are; with more than `most` the
     * first ones are given. most 0: it is taken, and nothing is sought. A flat picture, and one
     * without valid pixels, has none. */
    enum oct_err (*look)(struct oct_cells_engine *engine, const struct oct_picture *picture,
                         struct oct_cell *cells, unsigned most, unsigned *n, struct oct_error *err);

    /* MGVF and snake of n cells in the picture last looked at. The more at once, the better it runs
     * in parallel. */
    enum oct_err (*follow)(struct oct_cells_engine *engine, const struct oct_cell_start *starts,
                           unsigned n, struct oct_cell_end *ends, struct oct_error *err);

    /* S of the picture last looked at, 0 where it is not defined, and the number k of the best
     * circle, OCT_CELLS_NO_CIRCLE there: [height][width]. Legal after a look that sought cells. */
    enum oct_err (*map)(struct oct_cells_engine *engine, float *score, uint8_t *best,
                        struct oct_error *err);

    /* The largest |S| of the picture last searched, of the polarity sought; 0: none. */
    double (*highest)(const struct oct_cells_engine *engine);

    /* The MGVF field of start i of the last follow: [v2 - v1 + 1][u2 - u1 + 1], room for
     * oct_cell_window_most pixels. Legal with keeps_fields. */
    enum oct_err (*field)(struct oct_cells_engine *engine, unsigned i,
                          struct oct_cell_window *window, float *field, struct oct_error *err);

    /* "cpu" or "cuda": what computes at present. NULL: `name`, always. */
    const char *(*running)(const struct oct_cells_engine *engine);

    void (*destroy)(struct oct_cells_engine *engine); /* NULL is fine */
};

extern const struct oct_cells_engine_ops oct_cells_cpu_engine, oct_cells_cuda_engine;

/* "auto", "cpu" or "cuda": the table to use and an engine made by it. The table of a GPU fails
 * over: when the CUDA engine says OCT_E_BACKEND, the CPU goes on with the same picture, and
 * the log says so. OCT_E_BACKEND: "cuda", and there is no GPU. */
enum oct_err oct_cells_engine_select(const struct oct_cells_engine_ops **ops,
                                     struct oct_cells_engine **engine, const char *backend,
                                     const struct oct_cells_engine_setup *setup,
                                     struct oct_error *err);

#endif
