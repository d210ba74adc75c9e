#include "synth/cell_paths.h"

#include "synth/random.h"

#include <math.h>

/* In multiples of R. */
#define WANDER 0.3       /* across the lane, at most */
#define ASIDE 0.8        /* of a pair, from the middle of the lane, at most */
#define RIM 3.2          /* from the outermost path to the end of the scene */
#define APART 3.0        /* centres of separate cells, at least */
#define ROOM 3.5         /* of a cell in its lane, at least */
#define BEYOND 4.0       /* how far from the scene a cell comes back on the other side */
#define WANDER_FRAMES 40 /* period */

enum { LANE_SPEED, LANE_WAY, LANE_START };
enum { CELL_PLACE = 8, CELL_WANDER, CELL_PHASE, CELL_ASIDE, CELL_RADIUS };

/* Uniform from least to most, of a lane or a cell and what it is for. */
static double draw(const struct oct_cell_paths *p, unsigned of, int what, double least, double most)
{
    return least +
           (most - least) * oct_uniform(oct_hash(p->setup.seed, OCT_STREAM_CELL_PATHS, of, what));
}

/* A cell, or a pair of cells in one lane. */
static unsigned count_units(const struct oct_cell_paths_setup *s)
{
    return s->overtakes ? (s->n_cells + 1) / 2 : s->n_cells;
}

enum oct_err oct_cell_paths_init(struct oct_cell_paths *p, const struct oct_cell_paths_setup *setup,
                                 struct oct_error *err)
{
    *p = (struct oct_cell_paths){.setup = *setup, .cosine = 1};
    if (setup->has_flow) {
        p->cosine = cos(setup->flow_deg * OCT_PI / 180);
        p->sine = sin(setup->flow_deg * OCT_PI / 180);
    }
    const double r = setup->radius, aside = setup->overtakes ? ASIDE : 0;
    const double along = fabs(p->cosine) * setup->width + fabs(p->sine) * setup->height;
    const double across = fabs(p->sine) * setup->width + fabs(p->cosine) * setup->height;
    p->usable = across - 2 * (RIM + aside) * r;
    p->period = along + 2 * BEYOND * r;
    if (!(p->usable >= 0))
        return oct_fail(err, OCT_E_ARG,
                        "%.4g across the flow is too little for cells with a radius of %.4g: needs "
                        "%.4g",
                        across, r, 2 * (RIM + aside) * r);
    const double n_lanes = floor(p->usable / ((APART + 2 * WANDER + 2 * aside) * r)) + 1;
    const double most = n_lanes * floor(p->period / ((setup->overtakes ? 2 : 1) * ROOM * r));
    const unsigned n = count_units(setup);
    if (n == 0 || n > most || setup->n_cells > OCT_CELL_PATHS_MOST)
        return oct_fail(err, OCT_E_ARG, "%u cells: there is room for 1 to %.0f of this radius",
                        setup->n_cells,
                        fmin((setup->overtakes ? 2 : 1) * most, OCT_CELL_PATHS_MOST));
    p->n_lanes = n < n_lanes ? n : (unsigned)n_lanes;
    return OCT_OK;
}

/* Where on its lane a unit is in the middle of the time, and how many share the lane. */
static double middle_of(const struct oct_cell_paths *p, unsigned unit)
{
    const unsigned lane = unit % p->n_lanes, slot = unit / p->n_lanes;
    const unsigned n = (count_units(&p->setup) - lane + p->n_lanes - 1) / p->n_lanes;
    const double room = p->period / n, free = room - APART * p->setup.radius;
    const double place = (slot + 0.5) * room;
    if (p->setup.overtakes) /* in view, where there is one pair */
        return place + draw(p, unit, CELL_PLACE, -0.1, 0.1) * free;
    return place + draw(p, unit, CELL_PLACE, -0.45, 0.45) * free +
           draw(p, lane, LANE_START, 0, p->period);
}

static double speed_of(const struct oct_cell_paths *p, unsigned lane, bool is_fast)
{
    const struct oct_cell_paths_setup *s = &p->setup;
    const double way = s->has_flow || draw(p, lane, LANE_WAY, 0, 1) < 0.5 ? 1 : -1;
    const double share = draw(p, lane, LANE_SPEED, 0, s->overtakes ? 0.2 : 1);
    return way * (s->slowest + (is_fast ? 1 - share : share) * (s->fastest - s->slowest));
}

struct oct_cell_place oct_cell_paths_at(const struct oct_cell_paths *p, unsigned cell, double time)
{
    const struct oct_cell_paths_setup *s = &p->setup;
    const unsigned unit = s->overtakes ? cell / 2 : cell, lane = unit % p->n_lanes;
    const bool is_fast = s->overtakes && cell % 2 == 1;
    const double speed = speed_of(p, lane, is_fast);
    const double start = middle_of(p, unit) - speed * s->n_frames / 2;
    const double run = start + speed * time;
    const double lap = floor(run / p->period);
    const double along = run - (lap + 0.5) * p->period;
    const double wander =
        draw(p, unit, CELL_WANDER, WANDER / 3, WANDER) * s->radius *
        sin(2 * OCT_PI * (draw(p, unit, CELL_PHASE, 0, 1) + time / WANDER_FRAMES));
    const double first = p->n_lanes > 1 ? -p->usable / 2 : 0;
    double across = first + wander;
    if (p->n_lanes > 1)
        across += lane * p->usable / (p->n_lanes - 1);
    if (s->overtakes)
        across += (is_fast ? 1 : -1) * draw(p, unit, CELL_ASIDE, ASIDE / 2, ASIDE) * s->radius;
    return (struct oct_cell_place){
        .track = 1 + cell + (uint64_t)s->n_cells * (uint64_t)fabs(lap - floor(start / p->period)),
        .x = s->width / 2 + along * p->cosine - across * p->sine,
        .y = s->height / 2 + along * p->sine + across * p->cosine,
        .radius = s->radius * draw(p, cell, CELL_RADIUS, 0.95, 1.05),
        .time = time,
    };
}

/* By halving: a scan that is slower than the cell meets it once. */
struct oct_cell_place oct_cell_paths_scanned(const struct oct_cell_paths *p, unsigned cell,
                                             unsigned frame, double scan)
{
    double low = frame, high = frame + scan;
    struct oct_cell_place place = oct_cell_paths_at(p, cell, frame);
    for (unsigned n = 0; n < 50 && scan > 0; n++) {
        const double time = (low + high) / 2;
        place = oct_cell_paths_at(p, cell, time);
        if (place.y > (time - frame) / scan * p->setup.height)
            low = time;
        else
            high = time;
    }
    return place;
}

double oct_cell_profile(double distance, double radius, double softness)
{
    return 1 / (1 + exp(fmin((distance - radius) / softness, 700)));
}
