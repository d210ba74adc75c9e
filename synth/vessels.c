/* Superficial retinal vessels: they come from the rim of the field, branch, taper and end at the
 * edge of the foveal avascular zone. */
#include "synth/model.h"

#include <stdlib.h>

#define N_RADIAL 9
#define MAX_BRANCHING 3
#define MAX_STEPS 20000

static const double avascular_um = 230.0, step_um = 3.0;

struct walker {
    double x, y, angle, radius;
    unsigned generation;
    uint64_t seed;
};

static void stamp(struct oct_vessels *map, double x, double y, double radius)
{
    double cx = (x - map->x0_um) / map->cell_um, cy = (y - map->y0_um) / map->cell_um;
    double r = radius / map->cell_um;
    int64_t x_first = (int64_t)fmax(0.0, ceil(cx - r)), y_first = (int64_t)fmax(0.0, ceil(cy - r));
    double x_last = fmin(map->n_x - 1.0, cx + r), y_last = fmin(map->n_y - 1.0, cy + r);
    for (int64_t j = y_first; (double)j <= y_last; j++)
        for (int64_t i = x_first; (double)i <= x_last; i++) {
            double dx = (double)i - cx, dy = (double)j - cy, h2 = r * r - dx * dx - dy * dy;
            float *half = &map->half_um[(size_t)j * map->n_x + (size_t)i];
            if (h2 > 0)
                *half = fmaxf(*half, (float)(map->cell_um * sqrt(h2)));
        }
}

/* Walks towards the fovea with a wandering heading; the pull is weaker far out. */
static void walk(struct oct_vessels *map, const double fovea_um[2], struct walker w)
{
    double turn = 0, end = avascular_um * (1.0 + 0.6 * oct_uniform(oct_mix64(w.seed + 7)));
    for (uint64_t i = 0; i < MAX_STEPS && w.radius > 3.0; i++) {
        uint64_t h = oct_hash(w.seed, OCT_STREAM_VESSELS, (int64_t)i, w.generation);
        double dx = fovea_um[0] - w.x, dy = fovea_um[1] - w.y, e = hypot(dx, dy);
        double off = remainder(atan2(dy, dx) - w.angle, 2.0 * OCT_PI);
        if (e < end || e > 12000.0)
            return;
        turn = 0.92 * turn + 0.009 * oct_normal(h);
        w.angle += turn + 0.010 * off;
        w.x += step_um * cos(w.angle);
        w.y += step_um * sin(w.angle);
        w.radius *= 0.9990;
        stamp(map, w.x, w.y, w.radius * fmin(1.0, 0.25 + (e - end) / 150.0));
        if (w.generation < MAX_BRANCHING && oct_uniform(oct_mix64(h + 3)) < 0.0055) {
            struct walker branch = w;
            branch.generation++;
            branch.seed = oct_mix64(h + 4);
            branch.radius *= 0.55 + 0.25 * oct_uniform(oct_mix64(h + 5));
            branch.angle +=
                (oct_mix64(h + 6) & 1 ? 1.0 : -1.0) * (0.5 + 0.4 * oct_uniform(oct_mix64(h + 8)));
            w.radius *= 0.93;
            walk(map, fovea_um, branch);
        }
    }
}

/* An arcade that passes the fovea without turning to it: the widest vessel of the picture. */
static void pass_by(struct oct_vessels *map, const double fovea_um[2], uint64_t seed, double side)
{
    double distance = 285.0 + 50.0 * oct_uniform(oct_mix64(seed));
    double phase = 6.0 * oct_uniform(oct_mix64(seed + 1));
    for (double x = map->x0_um; x < map->x0_um + map->n_x * map->cell_um; x += step_um) {
        double u = x - fovea_um[0];
        double y = fovea_um[1] + side * (distance - 0.00022 * (u - 250.0) * (u - 250.0) +
                                         12.0 * sin(u / 85.0 + phase));
        stamp(map, x, y, 17.0 + 0.006 * fmin(fmax(u, -500.0), 1500.0));
    }
}

enum oct_err oct_vessels_init(struct oct_vessels *vessels, uint64_t seed, const double fovea_um[2],
                              double width_um, double height_um, struct oct_error *err)
{
    double w = width_um + 2 * OCT_MARGIN_UM, h = height_um + 2 * OCT_MARGIN_UM;
    double start = hypot(w, h) + 100.0;
    vessels->x0_um = vessels->y0_um = -OCT_MARGIN_UM;
    vessels->cell_um = fmax(2.0, fmax(w, h) / 4000.0);
    vessels->n_x = (uint32_t)(w / vessels->cell_um) + 2;
    vessels->n_y = (uint32_t)(h / vessels->cell_um) + 2;
    vessels->half_um = calloc((size_t)vessels->n_x * vessels->n_y, sizeof(float));
    if (!vessels->half_um)
        return oct_fail(err, OCT_E_NO_MEMORY, "synth: no memory for the map of vessels");
    for (int i = 0; i < N_RADIAL; i++) {
        uint64_t s = oct_hash(seed, OCT_STREAM_VESSELS, i, 0);
        double angle = 2.0 * OCT_PI * (i + 0.7 * oct_uniform(s)) / N_RADIAL;
        struct walker walker = {.x = fovea_um[0] + start * cos(angle),
                                .y = fovea_um[1] + start * sin(angle),
                                .radius = 12.0 + 8.0 * oct_uniform(oct_mix64(s + 1)),
                                .seed = s};
        walker.angle = angle + OCT_PI + 0.3 * oct_normal(oct_mix64(s + 2));
        walk(vessels, fovea_um, walker);
    }
    pass_by(vessels, fovea_um, oct_hash(seed, OCT_STREAM_VESSELS, 100, 0), 1.0);
    pass_by(vessels, fovea_um, oct_hash(seed, OCT_STREAM_VESSELS, 101, 0), -1.0);
    return OCT_OK;
}

void oct_vessels_add_wide(struct oct_vessels *map, uint64_t seed, unsigned n, double width_um)
{
    for (unsigned i = 0; i < n; i++) {
        uint64_t s = oct_hash(seed, OCT_STREAM_VESSELS, 200 + i, 0);
        double x = (i + 0.2 + 0.6 * oct_uniform(s)) * width_um / n;
        double radius = 18.0 + 14.0 * oct_uniform(oct_mix64(s + 1));
        double slope = 0.4 * (oct_uniform(oct_mix64(s + 2)) - 0.5);
        double end = map->y0_um + map->n_y * map->cell_um, middle = (map->y0_um + end) / 2;
        for (double y = map->y0_um; y < end; y += step_um)
            stamp(map, x + slope * (y - middle), y, radius);
    }
}

void oct_vessels_finish(struct oct_vessels *vessels)
{
    free(vessels->half_um);
}

double oct_vessels_at(const struct oct_vessels *map, double x_um, double y_um)
{
    double cx = fmin(fmax((x_um - map->x0_um) / map->cell_um, 0.0), map->n_x - 1.001);
    double cy = fmin(fmax((y_um - map->y0_um) / map->cell_um, 0.0), map->n_y - 1.001);
    double fx = cx - floor(cx), fy = cy - floor(cy);
    const float *p = map->half_um + (size_t)cy * map->n_x + (size_t)cx;
    return (1 - fy) * ((1 - fx) * p[0] + fx * p[1]) +
           fy * ((1 - fx) * p[map->n_x] + fx * p[map->n_x + 1]);
}

void oct_vessel_apply(const struct oct_tissue *tissue, double half_um, float *amplitude,
                      float *mirror, float *shadow)
{
    double top = tissue->surface_um[OCT_SURFACE_ILM] + 6.0;
    double centre = fmax(tissue->surface_um[OCT_SURFACE_NFL_GCL] + 0.4 * half_um, top + half_um);
    int first = (int)floor((centre - half_um) / OCT_CELL_UM) + OCT_CELL_RPE;
    int last = (int)ceil((centre + half_um) / OCT_CELL_UM) + OCT_CELL_RPE;
    /* Blood scatters forward: little light comes back from below a vessel, but some always does. */
    float below = (float)(0.12 + 0.88 * exp(-half_um / 11.0));
    for (int i = 0; i < OCT_N_CELLS; i++) {
        double p = (i - first + 0.5) / (last - first + 1.0);
        shadow[i] = p < 0 ? 1.0f : p > 1 ? below : 1.0f + (below - 1.0f) * (float)p;
        if (p >= 0 && p <= 1)
            /* Bright wall and first blood, then the hourglass's dim lower half. */
            amplitude[i] = (float)(0.95 * exp(-3.0 * p));
        amplitude[i] *= shadow[i];
        mirror[i] *= shadow[i];
    }
}
