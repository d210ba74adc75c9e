/* Cones tile by tile: a density map. Tiles of tile x tile pixels every `step` pixels from
 * the top left corner, as many as fit; or the whole picture as one. Tiles of several pictures are
 * shared out over the worker pool; each worker has a finder of its own (cones.h).
 *
 * One thread uses a map at a time. */
#ifndef OCT_ANALYSIS_CONES_MAP_H
#define OCT_ANALYSIS_CONES_MAP_H

#include "analysis/cones/cones.h"

struct oct_workers;

struct oct_cones_map_setup {
    struct oct_cones_setup finder; /* height and width: of the pictures */
    uint32_t tile, step;           /* tile 0: the whole picture; step 0: half a tile */
    struct oct_workers *workers;   /* NULL: the caller alone */
};

struct oct_cones_map;

/* The cones of a tile, in pixels of the whole picture. Where tiles overlap a cone is that of the
 * tile whose middle is nearest: there may be fewer than the tile's count.n. */
struct oct_cones_map_places {
    struct oct_cone_place *place; /* [n]; NULL: no ring */
    uint32_t n;
};

/* *map is NULL on error. OCT_E_ARG: as oct_cones_create, or the tile is larger than the picture. */
enum oct_err oct_cones_map_create(struct oct_cones_map **map,
                                  const struct oct_cones_map_setup *setup, struct oct_error *err);
void oct_cones_map_destroy(struct oct_cones_map *map); /* NULL is fine */

void oct_cones_map_size(const struct oct_cones_map *map, uint32_t *rows, uint32_t *columns);

/* results: [n][rows][columns]. places: the same shape, NULL: not wanted; the caller frees each.
 * A tile without contrast, or with fewer than 10 % valid pixels, has no ring. A whole picture of
 * that kind has none either, and why[i] of [n] is then the error of oct_cones_find (OCT_E_ARG),
 * else OCT_OK. OCT_E_NO_MEMORY. */
enum oct_err oct_cones_map_run(struct oct_cones_map *map, const struct oct_picture *pictures,
                               unsigned n, struct oct_cones_result *results,
                               struct oct_cones_map_places *places, struct oct_error *why,
                               struct oct_error *err);

/* C1D of the last picture of the newest run, without tiles; 0 with tiles (cones.h). */
uint32_t oct_cones_map_profile(const struct oct_cones_map *map, const double **radius,
                               const double **c1d);

#endif
