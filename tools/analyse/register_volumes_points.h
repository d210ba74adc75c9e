/* Places of the fixed volume as a table, and where they lie in each moving one. */
#ifndef OCT_TOOLS_REGISTER_VOLUMES_POINTS_H
#define OCT_TOOLS_REGISTER_VOLUMES_POINTS_H

#include "tools/analyse/register_volumes_run.h"

/* --points: rows of B-scan, A-line and depth, voxels from 0: the columns bscan, line and depth of a
 * table with a header, else the first three. Into run->points. OCT_E_FORMAT: the line that has no
 * three numbers, or lies outside the fixed volume; OCT_E_IO, OCT_E_NO_MEMORY. */
enum oct_err oct_volumes_read_points(struct oct_volumes_run *run, struct oct_error *err);

/* Of pair i, in voxels of its own grid. OCT_E_NO_MEMORY. */
enum oct_err oct_volumes_map_points(struct oct_volumes_run *run, unsigned i,
                                    const float *displacement, struct oct_error *err);

/* --points-out, for outputs.h; context: the run. */
enum oct_err oct_volumes_write_points(void *run, const char *path, bool force,
                                      struct oct_error *err);

#endif
