/* The parts of the CPU engine, of engine_cpu.c and engine_cpu_follow.c alone. */
#ifndef OCT_ANALYSIS_CELLS_ENGINE_CPU_H
#define OCT_ANALYSIS_CELLS_ENGINE_CPU_H

#include "analysis/cells/engine.h"
#include "analysis/cells/peaks.h"
#include "analysis/cells/prepare.h"
#include "analysis/cells/refine.h"

struct oct_cells_cpu_following;

struct oct_cells_engine {
    struct oct_cells_engine_setup setup;
    const struct oct_cells_scorer *scorer;
    struct oct_cells_preparation *preparation;
    const struct oct_cells_prepared *prepared;
    struct oct_cells_circles circles;
    struct oct_cells_gicov gicov;
    struct oct_cells_refiner refiner;
    struct oct_cells_peaks *peaks;
    float *score;  /* [height][width] */
    uint8_t *best; /* [height][width] */
    bool has_picture, has_map;
    double highest;
    struct oct_cell *cells; /* [room] */
    unsigned n_cells, room;
    const struct oct_cells_peak *found; /* [n_cells], while look runs */
    struct oct_cells_cpu_following *following;
};

/* S and the number of the best circle at a pixel: of the map, or computed now where there is none.
 * 0: it is not defined. Any thread of follow. */
float oct_cells_cpu_score(const struct oct_cells_engine *engine, int64_t x, int64_t y,
                          uint8_t *best);

/* The gradient for refinement. */
struct oct_cells_slopes oct_cells_cpu_slopes(const struct oct_cells_engine *engine);

enum oct_err oct_cells_cpu_following_create(struct oct_cells_engine *engine, struct oct_error *err);
void oct_cells_cpu_following_destroy(struct oct_cells_cpu_following *following); /* NULL is fine */

enum oct_err oct_cells_cpu_follow(struct oct_cells_engine *engine,
                                  const struct oct_cell_start *starts, unsigned n,
                                  struct oct_cell_end *ends, struct oct_error *err);
enum oct_err oct_cells_cpu_field(struct oct_cells_engine *engine, unsigned i,
                                 struct oct_cell_window *window, float *field,
                                 struct oct_error *err);

#endif
