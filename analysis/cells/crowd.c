#include "analysis/cells/crowd.h"

#include <math.h>
#include <stdlib.h>

static bool make_room(struct oct_crowd *crowd, size_t n_most)
{
    size_t n_table = 64;
    while (n_table < 2 * n_most)
        n_table *= 2;
    oct_crowd_finish(crowd);
    crowd->places = malloc(n_table / 2 * sizeof *crowd->places);
    crowd->table = malloc(n_table * sizeof *crowd->table);
    crowd->n_table = n_table;
    crowd->n_most = n_table / 2;
    return crowd->places && crowd->table;
}

enum oct_err oct_crowd_reset(struct oct_crowd *crowd, double distance, size_t n_most,
                             struct oct_error *err)
{
    if ((!crowd->table || n_most > crowd->n_most) && !make_room(crowd, n_most)) {
        oct_crowd_finish(crowd);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu cells", n_most);
    }
    crowd->distance = distance;
    crowd->n = 0;
    for (size_t i = 0; i < crowd->n_table; i++)
        crowd->table[i] = -1;
    return OCT_OK;
}

void oct_crowd_finish(struct oct_crowd *crowd)
{
    free(crowd->places);
    free(crowd->table);
    *crowd = (struct oct_crowd){0};
}

static int64_t square_of(const struct oct_crowd *crowd, double at)
{
    return (int64_t)floor(at / crowd->distance);
}

static size_t entry_of(const struct oct_crowd *crowd, int64_t ix, int64_t iy)
{
    uint64_t hash = (uint64_t)ix * 0x9e3779b97f4a7c15u ^ (uint64_t)iy * 0xc2b2ae3d27d4eb4fu;
    hash ^= hash >> 32;
    return (size_t)hash & (crowd->n_table - 1);
}

void oct_crowd_add(struct oct_crowd *crowd, double x, double y)
{
    const size_t entry = entry_of(crowd, square_of(crowd, x), square_of(crowd, y));
    crowd->places[crowd->n] = (struct oct_crowd_place){x, y, crowd->table[entry]};
    crowd->table[entry] = (int32_t)crowd->n++;
}

bool oct_crowd_is_near(const struct oct_crowd *crowd, double x, double y)
{
    const int64_t ix = square_of(crowd, x), iy = square_of(crowd, y);
    for (int64_t k = 0; k < 9; k++) {
        const size_t entry = entry_of(crowd, ix + k % 3 - 1, iy + k / 3 - 1);
        for (int32_t i = crowd->table[entry]; i >= 0; i = crowd->places[i].next) {
            const double dx = crowd->places[i].x - x, dy = crowd->places[i].y - y;
            if (dx * dx + dy * dy <= crowd->distance * crowd->distance)
                return true;
        }
    }
    return false;
}
