#include "synth/model.h"

#include <stdlib.h>

#define SOFTNESS 0.15 /* of an edge, in radii */
#define ROUNDS 20u    /* until a place fits the motion at its time */

float oct_floating_at(const struct oct_cell_paths *paths, double x_um, double y_um, double time)
{
    double most = 0;
    for (unsigned i = 0; i < paths->setup.n_cells; i++) {
        const struct oct_cell_place cell = oct_cell_paths_at(paths, i, time);
        const double distance = hypot(cell.x - x_um, cell.y - y_um);
        if (distance < 2 * cell.radius)
            most = fmax(most, oct_cell_profile(distance, cell.radius, SOFTNESS * cell.radius));
    }
    return (float)most;
}

/* A-line j of B-scan b looks at (j width / M + x[b], b height / V + y[b]): solved for b and j. */
static bool find_place(const struct oct_floating_view *v, unsigned cell,
                       struct oct_cell_place *place, double px[2])
{
    const struct oct_cell_paths_setup *s = &v->paths->setup;
    double b = v->n_bscans / 2.0, j = v->n_lines / 2.0;
    for (unsigned n = 0; n < ROUNDS; n++) {
        const double at = fmin(fmax(b, 0), v->n_bscans - 1.0);
        const double *motion = v->bscan_um + 3 * (size_t)lround(at);
        *place = oct_cell_paths_at(v->paths, cell, v->volume + (at + j / v->n_lines) / v->n_bscans);
        b = (place->y - motion[1]) * v->n_bscans / s->height;
        j = fmin(fmax((place->x - motion[0]) * v->n_lines / s->width, -1), v->n_lines);
    }
    px[0] = j;
    px[1] = b;
    return j >= 0 && b >= 0 && j <= v->n_lines - 1.0 && b <= v->n_bscans - 1.0;
}

enum oct_err oct_floating_truth(const struct oct_floating_view *v, struct oct_retina_cells *cells,
                                struct oct_error *err)
{
    const size_t most = v->paths->setup.n_cells;
    double *values = calloc(most, 7 * sizeof(double));
    if (!values)
        return oct_fail(err, OCT_E_NO_MEMORY, "synth: no memory for the truth of cells");
    *cells = (struct oct_retina_cells){.track = values,
                                       .um = values + most,
                                       .px = values + 3 * most,
                                       .radius_um = values + 5 * most,
                                       .time_s = values + 6 * most};
    for (unsigned i = 0; i < most; i++) {
        struct oct_cell_place place;
        if (!find_place(v, i, &place, cells->px + 2 * cells->n))
            continue;
        cells->track[cells->n] = (double)place.track;
        cells->um[2 * cells->n] = place.x;
        cells->um[2 * cells->n + 1] = place.y;
        cells->radius_um[cells->n] = place.radius;
        cells->time_s[cells->n++] = place.time * v->volume_s;
    }
    return OCT_OK;
}
