/* A slab of the depth as a user names it: "100:200" depth pixels, "40um:90um", "30%:50%" of the
 * depth, or one of each. Pure. */
#ifndef OCT_ANALYSIS_ENFACE_DEPTHS_H
#define OCT_ANALYSIS_ENFACE_DEPTHS_H

#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oct_depth_unit { OCT_DEPTH_PX, OCT_DEPTH_UM, OCT_DEPTH_SHARE };

struct oct_depth {
    double at; /* px: a whole number; share: 0 to 1 */
    enum oct_depth_unit unit;
};

/* From `first` to just before `last`. */
struct oct_depths {
    struct oct_depth first, last;
};

#define OCT_DEPTHS_NEED                                                                            \
    "two depths, A:B, A above B: each a depth pixel, micrometres (40um) or a share (30%)"

/* False: it is no slab, or its ends, of one unit, are not in order. */
bool oct_depths_parse(struct oct_depths *depths, const char *text);

/* The depth pixels *first .. *last - 1 of n, each of them `um` high (NaN: unknown): all that the
 * slab touches, one at least. OCT_E_ARG, which begins with `path`: it reaches beyond the depth,
 * its ends are not in order, or um are not known. */
enum oct_err oct_depths_find(const struct oct_depths *depths, const char *path, uint32_t n,
                             double um, uint32_t *first, uint32_t *last, struct oct_error *err);

#endif
