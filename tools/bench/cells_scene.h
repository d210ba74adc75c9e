/* A film of 48 cells, and what an engine makes of it compared with the definitions in double
 * precision. */
#ifndef OCT_TOOLS_BENCH_CELLS_SCENE_H
#define OCT_TOOLS_BENCH_CELLS_SCENE_H

#include "numeric/picture.h"
#include "pipeline/base/err.h"

#define OCT_BENCH_CELLS 48u
#define OCT_BENCH_CELLS_RADIUS 10.0 /* px */
#define OCT_BENCH_CELLS_HEIGHT 480
#define OCT_BENCH_CELLS_WIDTH 640
#define OCT_BENCH_CELLS_FRAMES 20

/* 8-bit disks of 60 grey levels with noise of 8, never outside of the part that is searched. The
 * last picture is followed by the first. */
struct oct_bench_cells_film {
    struct oct_picture frames[OCT_BENCH_CELLS_FRAMES];
};

/* Finished by the caller, on error too. */
enum oct_err oct_bench_cells_film_init(struct oct_bench_cells_film *film, struct oct_error *err);
void oct_bench_cells_film_finish(struct oct_bench_cells_film *film);

/* Where cell i is, px. */
void oct_bench_cells_place(unsigned i, unsigned frame, double *x, double *y);

/* The CPU engine's scores at some pixels, profile boyer, against the sum over all samples, and the
 * MGVF of one cell against the iteration with the arctangent: the largest errors. OCT_E_STATE:
 * beyond 1e-4 (of an |S| up to 10, relative to that above) or 1e-6. */
enum oct_err oct_bench_cells_verify(const struct oct_bench_cells_film *film, double *score_error,
                                    double *field_error, struct oct_error *err);

#endif
