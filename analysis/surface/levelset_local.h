/* Local weights of one tile of a band, for three instruction sets. Private to levelset_local.c.
 *
 * D(x, x + o) of one offset o is the box filter over the patch of (phi[z] - phi[z + o])^2. It is
 * made for all voxels of the tile's box at once: summed over the patch along b, then along j, then,
 * where a voxel of the band is, along d; always by adding up, since running sums that take away
 * what leaves the patch would cancel. D is symmetric: of two opposite offsets one is computed, over
 * the tile and the tile moved back by the offset.
 *
 * Voxels of the band are held as segments of 16 depths, which are a vector. */
#ifndef OCT_ANALYSIS_SURFACE_LEVELSET_LOCAL_H
#define OCT_ANALYSIS_SURFACE_LEVELSET_LOCAL_H

#include "analysis/surface/levelset_band.h"
#include "pipeline/base/simd.h"

#include <stddef.h>
#include <stdint.h>

enum {
    OCT_LEVELSET_LANES = 16,
    OCT_LEVELSET_SIDE = 16,  /* A-lines of a tile in either direction */
    OCT_LEVELSET_CHUNK = 48, /* depths that the segments of a tile may begin at */
    OCT_LEVELSET_TILE_SEGMENTS =
        OCT_LEVELSET_SIDE * OCT_LEVELSET_SIDE * OCT_LEVELSET_CHUNK / OCT_LEVELSET_LANES,
};

#define OCT_LEVELSET_NOT_IN_BAND 1e30f /* in `now` */

/* The voxels of the band among (b, j, d) .. (b, j, d + 15): bit i of mask is d + i. */
struct oct_levelset_segment {
    uint16_t b, j, d, mask;
};

struct oct_levelset_tile {
    uint32_t first, n; /* segments */
    /* The box of all lanes of the segments, ends not included. */
    int32_t least[3], end[3];
};

/* Voxels with borders: (b, j, d) is at b * plane + j * row + d; what lies up to 2 reach + n beyond
 * the box, along d by another 2 vectors, may be read. */
struct oct_levelset_grid {
    const float *phi; /* as loaded; beyond the box the nearest voxel of it */
    float *now;       /* as moved; OCT_LEVELSET_NOT_IN_BAND elsewhere */
    ptrdiff_t plane, row;
    int32_t patch, reach;
};

/* Of one tile. */
struct oct_levelset_work {
    const struct oct_levelset_grid *grid;
    const struct oct_levelset_tile *tile;
    const struct oct_levelset_segment *segments; /* [tile->n] */
    const int8_t (*offsets)[3];                  /* one of each two that are opposite */
    uint32_t n_offsets;
    double c1, c2;    /* of `sums` */
    unsigned rank;    /* of `ranks` */
    float *scratch;   /* [oct_levelset_scratch_floats], at a cache line */
    float *smallest;  /* [tile->n][rank][16], of `ranks` */
    float *sums;      /* [tile->n][2][16]: sum w (phi_y - phi_x), sum w */
    uint64_t n_pairs; /* x and y, both in the band; set */
};

size_t oct_levelset_scratch_floats(int32_t patch, int32_t reach);

struct oct_levelset_passes {
    /* The rank smallest D of each voxel, ascending; INFINITY where there are fewer. */
    void (*ranks)(struct oct_levelset_work *work);
    void (*sums)(struct oct_levelset_work *work);
};

OCT_SIMD_TABLES(struct oct_levelset_passes, oct_levelset_passes);

/* For tests: a band of oct_levelset_local (levelset_band.h) computes by this set, not the best.
 * False: the CPU lacks it. */
bool oct_levelset_local_use(struct oct_levelset_band *band, const char *simd);

#endif
