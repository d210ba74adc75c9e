/* What the search of patch_search.h looks through: the patches of a band, sorted into blocks of
 * neighbours, and their first coordinates in an orthonormal basis, from which a distance is bounded
 * below. Private to patch_search*.c. */
#ifndef OCT_ANALYSIS_SURFACE_PATCH_SEARCH_INDEX_H
#define OCT_ANALYSIS_SURFACE_PATCH_SEARCH_INDEX_H

#include "pipeline/base/err.h"

#include <stddef.h>
#include <stdint.h>

#define OCT_PATCH_BLOCK 16u       /* patches of a block */
#define OCT_PATCH_COORDINATES 64u /* of a patch, in falling order of their variance */
#define OCT_PATCH_HEAD 32u        /* the first of them, which are scanned block by block */
#define OCT_PATCH_TAIL (OCT_PATCH_COORDINATES - OCT_PATCH_HEAD)
#define OCT_PATCH_BOX 8u /* the first of them, whose extents are those of a block's box */
#define OCT_PATCH_MOST_WIDTH 343u

/* Coordinates are those of patch - mean along directions; past the patch's width they are 0. */
struct oct_patch_basis {
    size_t width;      /* n^3 */
    double *mean;      /* [width] */
    double *direction; /* [width][OCT_PATCH_COORDINATES], orthonormal columns */
};

/* The principal components of `n` patches, [n][stride]; any n. finish: an unfilled one too. */
enum oct_err oct_patch_basis_init(struct oct_patch_basis *basis, size_t width, const float *patches,
                                  size_t stride, uint32_t n, struct oct_error *err);
void oct_patch_basis_finish(struct oct_patch_basis *basis);
/* Returns the squared norm of patch - mean. */
double oct_patch_basis_project(const struct oct_patch_basis *basis, const float *patch,
                               float coordinates[OCT_PATCH_COORDINATES]);

/* Sorts order[n] so that each OCT_PATCH_BLOCK of them are neighbours: the leaves of a k-d tree over
 * the first OCT_PATCH_BOX coordinates, [][OCT_PATCH_COORDINATES], all but the last one full. */
enum oct_err oct_patch_order(uint32_t *order, const float *coordinates, uint32_t n,
                             struct oct_error *err);

struct oct_patch_index {
    uint32_t n, n_blocks;
    size_t stride;     /* floats of a patch, those past its width 0; a multiple of 16 */
    uint32_t *order;   /* [n] numbers of patches */
    float *patches;    /* [n][stride], in this order */
    float *heads;      /* [n_blocks][OCT_PATCH_HEAD][OCT_PATCH_BLOCK] */
    float *tails;      /* [n][OCT_PATCH_TAIL] */
    float *low, *high; /* [OCT_PATCH_BOX][n_blocks] */
    /* A distance between coordinates, squared, exceeds the true one by no more than
     * (root of the true one + margin)^2 * OCT_PATCH_ROUNDING: they are f32. */
    double margin;
};
#define OCT_PATCH_ROUNDING (1 + 0x1p-17)

struct oct_patch_kept {
    double distance;
    uint32_t number;
};

/* Of the thread that searches a block. */
struct oct_patch_scratch {
    struct oct_patch_kept *heaps; /* [OCT_PATCH_BLOCK][most], the last in (distance, number) at 0 */
    float *limit;                 /* [OCT_PATCH_BLOCK] f32 distances above it are ruled out */
    float *bound;                 /* [n_blocks] */
    uint32_t *near;               /* [n_blocks] */
};

/* One instruction set. */
struct oct_patch_scan {
    const char *name; /* "avx512", "avx2", "plain" */
    /* Fills the heaps with the `most` others of least distance of each patch of the block; where
     * there are fewer, the rest is INFINITY and UINT32_MAX. */
    void (*run)(const struct oct_patch_index *index, uint32_t block, unsigned most,
                struct oct_patch_scratch *scratch);
};

extern const struct oct_patch_scan oct_patch_scan_plain;
#if defined(__x86_64__)
extern const struct oct_patch_scan oct_patch_scan_avx2, oct_patch_scan_avx512;
#endif

/* "auto", "avx512", "avx2" or "plain"; NULL: this CPU cannot run it, or the name is unknown. */
const struct oct_patch_scan *oct_patch_scan_select(const char *name);

struct oct_patch_search_setup;

/* oct_patch_search by this instruction set. */
enum oct_err oct_patch_search_by(const struct oct_patch_scan *scan,
                                 const struct oct_patch_search_setup *setup, uint32_t *number,
                                 float *distance, uint64_t *n_patches, struct oct_error *err);

#endif
