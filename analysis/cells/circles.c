#include "analysis/cells/circles.h"

#include <math.h>

static int32_t to_pixel(double offset, bool truncated)
{
    return (int32_t)(truncated ? trunc(offset) : round(offset));
}

void oct_cells_circles_init(struct oct_cells_circles *circles,
                            const struct oct_cells_params *params)
{
    static const double pi = 3.14159265358979323846;
    double radius[OCT_CELLS_MOST_CIRCLES];
    *circles = (struct oct_cells_circles){
        .n = oct_cells_circles(params, radius),
        .border = oct_cells_border(params),
    };
    for (unsigned i = 0; i < OCT_CELLS_SAMPLES; i++) {
        const double t = 2 * pi * i / OCT_CELLS_SAMPLES;
        circles->cosine[i] = cos(t);
        circles->sine[i] = sin(t);
    }
    for (unsigned k = 0; k < circles->n; k++) {
        struct oct_cells_circle *circle = &circles->circle[k];
        circle->radius = radius[k];
        for (unsigned i = 0; i < OCT_CELLS_SAMPLES; i++) {
            circle->dx[i] = to_pixel(radius[k] * circles->cosine[i], params->truncated);
            circle->dy[i] = to_pixel(radius[k] * circles->sine[i], params->truncated);
        }
    }
}
