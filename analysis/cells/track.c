#include "analysis/cells/track.h"

#include <math.h>
#include <string.h>

static void set_radii(struct oct_track *track, double radius)
{
    for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
        track->radii[i] = radius;
}

void oct_track_begin(struct oct_track *track, uint64_t number, const struct oct_cell *cell,
                     const struct oct_cells_params *params)
{
    *track = (struct oct_track){.number = number,
                                .n_seen = 1,
                                .x = cell->x,
                                .y = cell->y,
                                .seen_x = cell->x,
                                .seen_y = cell->y,
                                .radius = cell->radius,
                                .snake_x = cell->x,
                                .snake_y = cell->y,
                                .ys = {cell->y},
                                .n_ys = 1,
                                .is_dark = cell->score > 0};
    set_radii(track, params->predicts ? cell->radius : params->radius);
}

void oct_track_predict(struct oct_track *track, const struct oct_cells_params *params,
                       uint32_t frames)
{
    const double step = params->max_step > 0 ? params->max_step : 2 * params->radius;
    track->predicted_x = track->x + track->vx * frames;
    track->predicted_y = track->y + track->vy * frames;
    if (track->has_velocity)
        track->gate = params->radius * sqrt(track->misses + track->left_out + (double)frames);
    else
        track->gate = step * frames;
}

static void remember(struct oct_track *track, uint32_t frames)
{
    track->frames += frames;
    track->before = track->frames;
    track->last_x = track->seen_x;
    track->last_y = track->seen_y;
}

/* The cell was seen at (x, y). */
static void see(struct oct_track *track, double x, double y, double radius, uint32_t frames)
{
    remember(track, frames);
    const double dx = (x - track->last_x) / track->before, dy = (y - track->last_y) / track->before;
    track->vx = track->has_velocity ? (track->vx + dx) / 2 : dx;
    track->vy = track->has_velocity ? (track->vy + dy) / 2 : dy;
    track->has_velocity = true;
    track->x = track->seen_x = x;
    track->y = track->seen_y = y;
    track->radius = radius;
    track->frames = 0;
    track->n_seen++;
}

void oct_track_detect(struct oct_track *track, const struct oct_cell *cell, uint32_t frames)
{
    see(track, cell->x, cell->y, cell->radius, frames);
    set_radii(track, cell->radius);
    track->is_dark = cell->score > 0;
    track->misses = track->left_out = 0;
}

void oct_track_follow(struct oct_track *track, const struct oct_cell_end *end, uint32_t frames)
{
    see(track, end->cell.x, end->cell.y, end->cell.radius, frames);
    track->snake_x = end->x;
    track->snake_y = end->y;
    if (track->n_ys == OCT_TRACK_MOST_YS)
        memmove(track->ys, track->ys + 1, --track->n_ys * sizeof *track->ys);
    track->ys[track->n_ys++] = end->y;
    for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
        track->radii[i] = end->radii[i];
    track->left_out += frames - 1;
}

double oct_track_mean_y(const struct oct_track *track)
{
    double sum = 0;
    for (unsigned i = 0; i < track->n_ys; i++)
        sum += track->ys[i];
    return sum / track->n_ys;
}

void oct_track_coast(struct oct_track *track, uint32_t frames)
{
    track->x = track->predicted_x;
    track->y = track->predicted_y;
    remember(track, frames);
    track->left_out += frames - 1;
}

void oct_track_miss(struct oct_track *track, const struct oct_cells_params *params)
{
    track->misses++;
    track->has_ended = track->misses > params->memory;
}
