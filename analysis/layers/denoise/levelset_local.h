/* Local weights of one tile of a band, for three instruction sets. Private to levelset_local.c.
 *
 * D(x, x + o) of one offset o is the box filter over the patch of (phi[z] - phi[z + o])^2. It is
 * made for all voxels of the tile's box at once: summed over the patch along b, then along j, then,
 * where a voxel of the band is, along d; always by adding up, since running sums that take away
 * what leaves the patch would cancel. D is symmetric: of two opposite offsets one is computed, over
 * the tile and the tile moved back by the offset.
 *
 * Voxels of the band are held as segments of 16 depths, which are a vector. */
#ifndef OCT_ANALYSIS_LAYERS_DENOISE_LEVELSET_LOCAL_H
#define OCT_ANALYSIS_LAYERS_DENOISE_LEVELSET_LOCAL_H

#include "analysis/layers/denoise/levelset_band.h"
#include "pipeline/base/simd.h"

#include <stddef.h>

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
    uint32_t voxel;    /* the band's first in it */
    uint64_t n_pairs;  /* of the last pass */
    /* The box of all lanes of the segments, ends not included. */
    int32_t least[3], end[3];
};

/* Voxels with borders: (b, j, d) is at b * plane + j * row + d; what lies up to 2 reach + n beyond
 * the box, along d by another 2 vectors, may be read. */
struct oct_levelset_grid {
    float *phi; /* as loaded; beyond the box the nearest voxel of it */
    float *now; /* as moved; OCT_LEVELSET_NOT_IN_BAND elsewhere */
    ptrdiff_t plane, row;
    int32_t patch, reach;
};

#define OCT_LEVELSET_MOST_OFFSETS ((17 * 17 * 17 - 1) / 2)

struct oct_levelset_tiles {
    struct oct_levelset_setup setup;
    const struct oct_levelset_passes *passes;
    struct oct_levelset_grid grid; /* of memory: phi, now, each [n_b][n_j][row] with borders */
    int32_t border;
    int8_t offsets[OCT_LEVELSET_MOST_OFFSETS][3]; /* one of each two that are opposite */
    uint32_t n_offsets;
    float *memory,
        *scratch; /* scratch: of each thread n_scratch floats of a tile's sums of squares,
                                then its sums or smallest D */
    size_t n_scratch, n_thread;

    /* Of the band. */
    struct oct_levelset_segment *segments; /* [n_segments], by tiles */
    struct oct_levelset_tile *tiles;       /* [n_tiles] */
    uint32_t n_segments, n_tiles, n_voxels;

    /* Of a load or a pass. */
    const float *source;
    const struct oct_levelset_band *band;
    unsigned rank;
    double c2;
};

/* Passes over a tile; scratch at a cache line. Return the pairs x and y, both in the band. */
struct oct_levelset_passes {
    /* smallest: [tile->n][rank][16], D of each voxel, ascending; INFINITY: there are fewer. */
    uint64_t (*ranks)(const struct oct_levelset_tiles *t, const struct oct_levelset_tile *tile,
                      float *scratch, float *smallest);
    /* sums: [tile->n][2][16]: sum w (phi_y - phi_x), sum w. */
    uint64_t (*sums)(const struct oct_levelset_tiles *t, const struct oct_levelset_tile *tile,
                     float *scratch, float *sums);
};

OCT_SIMD_TABLES(struct oct_levelset_passes, oct_levelset_passes);

#endif
