/* Cells in one picture, behind one table for the CPU and the CUDA engine: circles found (GICOV),
 * brought to a fraction of a pixel, and followed by snakes (MGVF). What links pictures is
 * computed on the host (tracker.h).
 *
 *     create -> { look -> follow ... | map | field } -> destroy
 *
 * Pictures are f32 [height][width] of square pixels, with a mask or none. What is masked is filled
 * from the nearest valid pixel of its column, and no cell is reported within 2 R of it.
 *
 * Definitions (Boyer 2009; I the picture, I' the smoothed one, G its gradient):
 *   G: central differences, one-sided at the border
 *   circle k at p: e_i = (cos t_i, sin t_i), t_i = 2 pi i / 150, g_i = G(p + d_ki) . e_i with
 *     d_ki = rho_k e_i to the whole pixel; m_k, v_k: mean and variance (N - 1) of g_i
 *   S(p) = m_k / sqrt(v_k + v0) of the k with the largest m_k^2 / (v_k + v0), the first of equals
 *   v0 = (kappa sigma_g)^2, sigma_g = 1.4826 median of |gx| and |gy| together, of valid pixels
 * A peak has |S| above the threshold, S of the polarity, and the largest S^2 within the disk.
 *
 * The twins find the same peaks but where scores differ by less than 1e-4; centres agree to
 * 0.01 px. Same picture, same numbers, whatever the number of threads. One thread uses an engine at
 * a time. */
#ifndef OCT_ANALYSIS_CELLS_ENGINE_H
#define OCT_ANALYSIS_CELLS_ENGINE_H

#include "analysis/cells/params.h"
#include "numeric/picture.h"

#include <stdbool.h>
#include <stdint.h>

struct oct_workers;

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
                       in all of them while it was in fewer. 0: Ey is y, as it is where the start
                       is the one position of the cell so far */
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
     * circle, 255 there: [height][width]. Legal after a look that sought cells. */
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

/* u1 = int(max(x - 4 R + 0.5, 0)), u2 = int(min(x + 4 R + 0.5, width - 1)); v alike with 2 R.
 * False: it has fewer than 2 x 2 px. */
bool oct_cell_window_find(const struct oct_cells_params *params, uint32_t height, uint32_t width,
                          double x, double y, struct oct_cell_window *window);

/* Pixels of the largest window. */
uint32_t oct_cell_window_most(const struct oct_cells_params *params);

#endif
