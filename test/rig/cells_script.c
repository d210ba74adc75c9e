#include "test/rig/cells_script.h"

#include <math.h>
#include <string.h>

static enum oct_err look(struct oct_cells_engine *engine, const struct oct_picture *picture,
                         struct oct_cell *cells, unsigned most, unsigned *n, struct oct_error *err)
{
    (void)picture;
    const struct cells_script_picture *p = &engine->picture;
    engine->n_looks++;
    engine->n_searches += most > 0;
    engine->n_starts = 0;
    if (p->look_fails)
        return oct_fail(err, p->look_fails, "the script says so");
    *n = most > 0 ? p->n_cells : 0;
    memcpy(cells, p->cells, *n * sizeof *cells);
    return OCT_OK;
}

static struct oct_cell_end end_of(const struct oct_cells_engine *engine,
                                  const struct oct_cell_start *start)
{
    const struct cells_script_picture *p = &engine->picture;
    struct oct_cell_end end = {.defined = !p->snakes_undefined, .left = p->snakes_leave};
    double nearest = INFINITY;
    end.x = start->x;
    end.y = start->y;
    for (unsigned i = 0; i < p->n_pale; i++) {
        const double dx = p->pale[i].x - start->x, dy = p->pale[i].y - start->y;
        if (fabs(dx) > 4 * engine->radius || fabs(dy) > 2 * engine->radius ||
            hypot(dx, dy) >= nearest)
            continue;
        nearest = hypot(dx, dy);
        end.x = p->pale[i].x;
        end.y = p->pale[i].y;
        end.cell = p->pale[i];
    }
    for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
        end.radii[i] = start->radii[i] + 0.125;
    end.cell.x = end.x;
    end.cell.y = end.y;
    return end;
}

static enum oct_err follow(struct oct_cells_engine *engine, const struct oct_cell_start *starts,
                           unsigned n, struct oct_cell_end *ends, struct oct_error *err)
{
    engine->n_follows++;
    if (engine->picture.follow_fails)
        return oct_fail(err, engine->picture.follow_fails, "the script says so");
    engine->n_starts = n < CELLS_SCRIPT_MOST ? n : CELLS_SCRIPT_MOST;
    memcpy(engine->starts, starts, engine->n_starts * sizeof *starts);
    for (unsigned i = 0; i < n; i++)
        ends[i] = end_of(engine, &starts[i]);
    return OCT_OK;
}

const struct oct_cells_engine_ops cells_script_ops = {
    .name = "script", .look = look, .follow = follow};
