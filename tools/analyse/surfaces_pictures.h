/* The pictures of octctl surfaces: thickness with the ETDRS grid, B-scans with their layers, the
 * layers in relief, slabs. Writers as those of surfaces_files.h. */
#ifndef OCT_TOOLS_SURFACES_PICTURES_H
#define OCT_TOOLS_SURFACES_PICTURES_H

#include "tools/analyse/surfaces_files.h"

/* The thickness; of one layer its depth. */
enum oct_err oct_surfaces_draw_map(void *report, const char *path, bool force,
                                   struct oct_error *err);

/* Five B-scans spread over the volume. */
enum oct_err oct_surfaces_draw_bscans(void *report, const char *path, bool force,
                                      struct oct_error *err);

/* Each layer as found and as denoised. */
enum oct_err oct_surfaces_draw_relief(void *report, const char *path, bool force,
                                      struct oct_error *err);

enum oct_err oct_surfaces_draw_slab(void *report, const char *path, bool force,
                                    struct oct_error *err); /* which_slab */

#endif
