/* What the search saw, for tests and the curious: an HDF5 file with
 *
 *     /score        f32 [T][H][W]  S of every pixel, NaN of frames that were not searched
 *     /best_radius  u8  [T][H][W]  the number of the best circle, 255: none
 *     /mgvf/field   f32 [n][h][w]  the MGVF field of each window, NaN beyond it
 *     /mgvf/frame, track, u1, v1, rows, columns, iterations   [n]
 *
 * H x W is the searched picture: (x, y) of the original is (x0 + dx * column, y0 + dy * row), which
 * are attributes of the file. Fields wait in a file without a name beside this one until their
 * number is known. One thread. */
#ifndef OCT_TOOLS_CELLS_MAPS_H
#define OCT_TOOLS_CELLS_MAPS_H

#include "analysis/cells/cells.h"

#include <stdbool.h>

struct oct_cells_maps;

/* *maps is NULL on error; errors as those of oct_results_create. The film is asked alone. */
enum oct_err oct_cells_maps_create(struct oct_cells_maps **maps, const char *path, bool force,
                                   const struct oct_cells_film *film, uint64_t n_frames,
                                   struct oct_error *err);

/* After the film's push of this frame. */
enum oct_err oct_cells_maps_take(struct oct_cells_maps *maps, struct oct_cells_film *film,
                                 uint64_t frame, struct oct_error *err);

/* Frees maps in any case; on error there is no file. NULL is fine. */
enum oct_err oct_cells_maps_publish(struct oct_cells_maps *maps, struct oct_error *err);
void oct_cells_maps_discard(struct oct_cells_maps *maps); /* NULL is fine */

#endif
