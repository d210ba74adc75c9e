#include "analysis/cells/refine.h"

void oct_cells_refiner_init(struct oct_cells_refiner *refiner,
                            const struct oct_cells_params *params,
                            const struct oct_cells_circles *circles)
{
    static const double pi = 3.14159265358979323846;
    *refiner = (struct oct_cells_refiner){
        .radius = params->radius,
        .smooth = params->smooth * params->radius,
        .least = 0.75 * circles->circle[0].radius,
        .most = 1.25 * circles->circle[circles->n - 1].radius,
    };
    for (unsigned i = 0; i < OCT_CELLS_EDGE_SAMPLES; i++) {
        const double t = 2 * pi * i / OCT_CELLS_EDGE_SAMPLES;
        refiner->unit[2 * i] = (float)cos(t);
        refiner->unit[2 * i + 1] = (float)sin(t);
    }
}

void oct_cells_refine_edge(const struct oct_cells_refiner *refiner,
                           const struct oct_cells_slopes *slopes, struct oct_cells_place *place)
{
    place->radius = oct_cells_within(place->radius, refiner->least, refiner->most);
    for (int round = 0; round < OCT_CELLS_EDGE_ROUNDS; round++) {
        const double h = oct_cells_edge_side(round, refiner->radius);
        const int32_t x = (int32_t)floor(place->x), y = (int32_t)floor(place->y);
        const double u = place->x - x, v = place->y - y;
        double step[3];
        float f[27];
        for (int n = 0; n < 27; n++)
            f[n] = fabsf(oct_cells_edge_mean(
                slopes, refiner->unit, x, y, (float)(u + h * (n % 3 - 1)),
                (float)(v + h * (n / 3 % 3 - 1)), (float)(place->radius + h * (n / 9 - 1))));
        oct_cells_edge_step(f, step);
        place->x += h * step[0];
        place->y += h * step[1];
        place->radius =
            oct_cells_within(place->radius + h * step[2], refiner->least, refiner->most);
    }
    place->radius = oct_cells_edge_radius(place->radius, refiner->smooth);
}

static double vertex(const float *at, size_t step)
{
    const double before = (double)*(at - step), middle = (double)*at, after = (double)at[step];
    if (before == 0 || after == 0)
        return 0;
    return oct_cells_vertex(before * before, middle * middle, after * after);
}

void oct_cells_refine_peak(const float *score, size_t width, uint32_t x, uint32_t y,
                           struct oct_cells_place *place)
{
    const float *at = score + y * width + x;
    place->x = x + vertex(at, 1);
    place->y = y + vertex(at, width);
}
