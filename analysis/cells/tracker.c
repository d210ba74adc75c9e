#include "analysis/cells/tracker.h"

#include "analysis/cells/link.h"
#include "analysis/cells/texture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_YS 10u /* Ey of follow.h */
/* [R] Of cells that are nearer than that, one is seen at most, or each at a wrong place. */
#define MERGED 1.5
/* [R] a frame: tracks that separate by less do not pass each other. */
#define PASSING 0.1
/* A cell that is followed is paler than one that is found. */
#define SHARE_OF_THRESHOLD 0.7

const char *const oct_cells_how_names[OCT_CELLS_N_HOWS + 1] = {"detected", "snake", "coasted"};

/* One track: what is known of its cell's motion. */
struct track {
    uint64_t number;
    uint32_t n_seen;
    uint32_t misses, left_out; /* since it was detected */
    uint32_t frames;           /* since it was last seen */
    bool has_velocity, is_dark;
    double x, y, radius;             /* now: seen, or coasted */
    double seen_x, seen_y;           /* where it was last seen */
    double vx, vy;                   /* px a frame */
    double radii[OCT_CELLS_SNAXELS]; /* the next snake starts with */

    /* Without predicts: where it starts, and the y of the last snakes, newest at n_ys - 1. */
    double snake_x, snake_y;
    double ys[MOST_YS];
    unsigned n_ys;

    /* Of the picture that is being looked at. */
    double predicted_x, predicted_y, gate;
    double last_x, last_y; /* where it was last seen before, */
    uint32_t before;       /* so many frames ago; 0: it begins here */
    bool has_left;
    bool is_merged;    /* its detected cell is another track's as well */
    bool is_hidden;    /* it has none, as it passes that other one */
    int32_t pair, end; /* its detected cell, its snake among the ends; -1: none */
};

/* A picture's steps up to the last that can fail only fill what belongs to the picture; then the
 * tracks take it over. So a picture that failed leaves the tracks as they were. */
struct oct_cells_tracker {
    struct oct_cells_tracker_setup setup;
    uint64_t n_born;
    uint32_t since_search; /* frames; 0: none was searched yet */
    uint32_t left_out;     /* pictures since the last that was taken over */

    struct track *tracks; /* alive, in order of number */
    unsigned n_tracks;
    size_t room; /* of tracks, starts, ends, links, pair, followed and seen */
    struct oct_cells_seen *seen;

    /* Of the newest picture. */
    bool is_searched;
    uint32_t frames; /* since the picture before; of the first: 1 */
    struct oct_cell *cells;
    unsigned n_cells;
    struct oct_cell_start *starts;
    struct oct_cell_end *ends;
    uint64_t *followed; /* tracks of the starts */
    unsigned n_followed;
    struct oct_link_track *links;
    int32_t *pair;
    struct oct_link_cell *link_cells; /* [OCT_CELLS_MOST] */
    bool *is_paired;                  /* [OCT_CELLS_MOST] cells */
    struct oct_crowd crowd;
};

/* ---- steps 1 and 2: predictions, pairs ---- */

/* Where the cell will be, and how far from there it is looked for. A gate wider than the picture
 * pairs no more, and of a far wider one the shares that distances are of it would be lost to
 * rounding. */
static void predict(const struct oct_cells_tracker *t, struct track *track)
{
    const struct oct_cells_params *params = &t->setup.params;
    const double border = oct_cells_border(params);
    const double step = params->max_step > 0 ? params->max_step : 2 * params->radius;
    track->predicted_x = track->x + track->vx * t->frames;
    track->predicted_y = track->y + track->vy * t->frames;
    track->gate = track->has_velocity
                      ? params->radius * sqrt(track->misses + track->left_out + (double)t->frames)
                      : step * t->frames;
    track->gate = fmin(track->gate, hypot(t->setup.width, t->setup.height));
    const double px = floor(track->predicted_x + 0.5), py = floor(track->predicted_y + 0.5);
    const bool is_searchable = px >= border && px < t->setup.width - border && py >= border &&
                               py < t->setup.height - border;
    track->has_left = params->predicts && !is_searchable;
    track->is_merged = track->is_hidden = false;
    track->pair = track->end = -1;
}

/* `seen` has a cell, `missing` has none, and the cell may be both of them. */
static void merge(const struct oct_cells_tracker *t, struct track *seen, struct track *missing)
{
    const double radius = t->setup.params.radius;
    const struct oct_cell *cell = &t->cells[seen->pair];
    const double own = hypot(cell->x - seen->predicted_x, cell->y - seen->predicted_y);
    const double other = hypot(cell->x - missing->predicted_x, cell->y - missing->predicted_y);
    const double apart =
        hypot(seen->predicted_x - missing->predicted_x, seen->predicted_y - missing->predicted_y);
    if (other >= MERGED * radius || own >= apart)
        return;
    seen->is_merged = true;
    if (hypot(seen->vx - missing->vx, seen->vy - missing->vy) > PASSING * radius)
        missing->is_hidden = true;
}

static void find_merged(struct oct_cells_tracker *t)
{
    for (unsigned i = 0; i < t->n_tracks && t->n_cells > 0; i++) {
        struct track *missing = &t->tracks[i];
        if (missing->has_left || missing->pair >= 0 || !missing->has_velocity)
            continue;
        for (unsigned k = 0; k < t->n_tracks; k++)
            if (t->tracks[k].pair >= 0 && t->tracks[k].has_velocity)
                merge(t, &t->tracks[k], missing);
    }
}

/* Predicts every track and pairs those that have not left with the picture's cells. Distances count
 * as shares of the gate: else a track that is missing, whose gate is wide, would gain more by a
 * cell than the track that has been seen there all the time. */
static enum oct_err pair_tracks(struct oct_cells_tracker *t, struct oct_error *err)
{
    unsigned n = 0;
    for (unsigned c = 0; c < t->n_cells; c++) {
        t->link_cells[c] = (struct oct_link_cell){t->cells[c].x, t->cells[c].y};
        t->is_paired[c] = false;
    }
    for (unsigned i = 0; i < t->n_tracks; i++) {
        struct track *track = &t->tracks[i];
        predict(t, track);
        const double share = t->setup.params.radius / track->gate;
        if (!track->has_left)
            t->links[n++] = (struct oct_link_track){track->predicted_x, track->predicted_y,
                                                    track->gate, share * share};
    }
    if (!t->setup.params.predicts)
        return OCT_OK; /* its tracks have no pairs */
    const enum oct_err e = oct_cells_link(t->links, n, t->link_cells, t->n_cells, t->pair, err);
    if (e)
        return e;
    n = 0;
    for (unsigned i = 0; i < t->n_tracks; i++) {
        if (t->tracks[i].has_left)
            continue;
        const int32_t cell = t->tracks[i].pair = t->pair[n++];
        if (cell >= 0)
            t->is_paired[cell] = true;
    }
    find_merged(t);
    return OCT_OK;
}

/* ---- step 3: snakes ---- */

/* Of cos and sin of whole quarters, 0 is meant by 1e-16: the field asks for the sign. */
static double snapped(double v)
{
    return fabs(v) < 1e-9 ? 0 : v;
}

static struct oct_cell_start start_of(const struct oct_cells_tracker *t, const struct track *track)
{
    const struct oct_cells_params *params = &t->setup.params;
    struct oct_cell_start start = {.x = track->snake_x, .y = track->snake_y, .vx = 1, .vy = 1};
    start.is_dark =
        params->polarity == OCT_CELLS_BOTH ? track->is_dark : params->polarity == OCT_CELLS_DARK;
    memcpy(start.radii, track->radii, sizeof start.radii);
    if (!params->predicts) {
        double sum = 0;
        for (unsigned i = 0; i < track->n_ys; i++)
            sum += track->ys[i];
        start.mean_dy = sum / track->n_ys - track->snake_y;
        return start;
    }
    const double angle = params->flow_deg * (3.14159265358979323846 / 180);
    start.x = track->predicted_x;
    start.y = track->predicted_y;
    start.vx = !isnan(params->flow_deg) ? snapped(cos(angle)) : (track->vx > 0) - (track->vx < 0);
    start.vy = !isnan(params->flow_deg) ? snapped(sin(angle)) : 0;
    return start;
}

/* Whether the snake of a predicted cell counts, given the other cells of the picture. */
static bool counts(const struct oct_cells_tracker *t, const struct track *track,
                   const struct oct_cell_end *end)
{
    const double dx = end->cell.x - track->predicted_x, dy = end->cell.y - track->predicted_y;
    const double least = SHARE_OF_THRESHOLD * t->setup.params.threshold;
    return end->defined && !end->left && dx * dx + dy * dy <= track->gate * track->gate &&
           fabs((double)end->cell.score) >= least &&
           !oct_crowd_is_near(&t->crowd, end->cell.x, end->cell.y);
}

/* Snakes of the tracks that need one: fills their ends, -1 where there is none or it does not
 * count. */
static enum oct_err follow(struct oct_cells_tracker *t, struct oct_error *err)
{
    const struct oct_cells_tracker_setup *setup = &t->setup;
    for (unsigned i = 0; i < t->n_tracks; i++) {
        struct track *track = &t->tracks[i];
        if (track->pair >= 0 || track->has_left)
            continue;
        track->end = (int32_t)t->n_followed;
        t->starts[t->n_followed] = start_of(t, track);
        t->followed[t->n_followed++] = track->number;
    }
    if (t->n_followed == 0)
        return OCT_OK;
    enum oct_err e = setup->ops->follow(setup->engine, t->starts, t->n_followed, t->ends, err);
    if (!e)
        e = oct_crowd_reset(&t->crowd, setup->params.radius, (size_t)t->n_cells + t->n_tracks, err);
    if (e)
        return e;
    for (unsigned c = 0; c < t->n_cells; c++)
        oct_crowd_add(&t->crowd, t->cells[c].x, t->cells[c].y);
    for (unsigned i = 0; i < t->n_tracks; i++) {
        struct track *track = &t->tracks[i];
        if (track->end < 0)
            continue;
        const struct oct_cell_end *end = &t->ends[track->end];
        if (setup->params.predicts ? !counts(t, track, end) : !end->defined)
            track->end = -1;
        else
            oct_crowd_add(&t->crowd, end->cell.x, end->cell.y);
    }
    return OCT_OK;
}

/* ---- steps 4 and 5: the tracks take over the picture ---- */

static void set_radii(struct track *track, double radius)
{
    for (unsigned i = 0; i < OCT_CELLS_SNAXELS; i++)
        track->radii[i] = radius;
}

/* Another `frames` are over: where the cell was last seen is from now on where it was before. */
static void remember(struct track *track, uint32_t frames)
{
    track->frames += frames;
    track->before = track->frames;
    track->last_x = track->seen_x;
    track->last_y = track->seen_y;
}

static void see(struct track *track, const struct oct_cell *cell, uint32_t frames)
{
    remember(track, frames);
    const double dx = (cell->x - track->last_x) / track->before;
    const double dy = (cell->y - track->last_y) / track->before;
    track->vx = track->has_velocity ? (track->vx + dx) / 2 : dx;
    track->vy = track->has_velocity ? (track->vy + dy) / 2 : dy;
    track->has_velocity = true;
    track->x = track->seen_x = cell->x;
    track->y = track->seen_y = cell->y;
    track->radius = cell->radius;
    track->frames = 0;
    track->n_seen++;
}

static void detect(struct track *track, const struct oct_cell *cell, uint32_t frames)
{
    see(track, cell, frames);
    set_radii(track, cell->radius);
    track->is_dark = cell->score > 0;
    track->misses = track->left_out = 0;
}

static void take_snake(struct track *track, const struct oct_cell_end *end, uint32_t frames)
{
    see(track, &end->cell, frames);
    track->snake_x = end->x;
    track->snake_y = end->y;
    if (track->n_ys == MOST_YS)
        memmove(track->ys, track->ys + 1, --track->n_ys * sizeof *track->ys);
    track->ys[track->n_ys++] = end->y;
    memcpy(track->radii, end->radii, sizeof track->radii);
    track->left_out += frames - 1;
}

static void coast(struct track *track, uint32_t frames)
{
    track->x = track->predicted_x;
    track->y = track->predicted_y;
    remember(track, frames);
    track->left_out += frames - 1;
}

/* What the picture said of one track; true: it goes on. */
static bool update(const struct oct_cells_tracker *t, struct track *track)
{
    const struct oct_cells_params *params = &t->setup.params;
    if (track->has_left || (!params->predicts && track->end < 0))
        return false;
    if (track->is_merged) {
        track->pair = -1;
        coast(track, t->frames);
        return true;
    }
    if (track->pair >= 0) {
        detect(track, &t->cells[track->pair], t->frames);
        return true;
    }
    if (track->end >= 0)
        take_snake(track, &t->ends[track->end], t->frames);
    else
        coast(track, t->frames);
    const bool is_miss = track->end < 0 ? !track->is_hidden : t->is_searched;
    return !(params->predicts && is_miss && ++track->misses > params->memory);
}

static void begin_tracks(struct oct_cells_tracker *t)
{
    for (unsigned i = 0; i < t->n_tracks; i++)
        oct_crowd_add(&t->crowd, t->tracks[i].x, t->tracks[i].y);
    for (unsigned c = 0; c < t->n_cells; c++) {
        const struct oct_cell *cell = &t->cells[c];
        if (t->is_paired[c] || oct_crowd_is_near(&t->crowd, cell->x, cell->y))
            continue;
        struct track *track = &t->tracks[t->n_tracks++];
        *track = (struct track){.number = ++t->n_born,
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
                                .is_dark = cell->score > 0,
                                .pair = (int32_t)c,
                                .end = -1};
        set_radii(track, t->setup.params.predicts ? cell->radius : t->setup.params.radius);
        oct_crowd_add(&t->crowd, cell->x, cell->y);
    }
}

static struct oct_cells_seen seen_of(const struct oct_cells_tracker *t, const struct track *track)
{
    struct oct_cells_seen seen = {.track = track->number,
                                  .n_seen = track->n_seen,
                                  .before = track->before,
                                  .x = track->x,
                                  .y = track->y,
                                  .radius = track->radius,
                                  .last_x = track->last_x,
                                  .last_y = track->last_y,
                                  .score = NAN,
                                  .how = OCT_CELLS_COASTED};
    if (track->pair >= 0) {
        seen.score = t->cells[track->pair].score;
        seen.how = OCT_CELLS_DETECTED;
    } else if (track->end >= 0) {
        seen.score = t->ends[track->end].cell.score;
        seen.how = OCT_CELLS_SNAKE;
    }
    return seen;
}

/* Those that ended are left out, and new ones begin. */
static enum oct_err take_over(struct oct_cells_tracker *t, struct oct_error *err)
{
    const enum oct_err e =
        oct_crowd_reset(&t->crowd, t->setup.params.radius, (size_t)t->n_cells + t->n_tracks, err);
    if (e)
        return e;
    unsigned n = 0;
    for (unsigned i = 0; i < t->n_tracks; i++)
        if (update(t, &t->tracks[i]))
            t->tracks[n++] = t->tracks[i];
    t->n_tracks = n;
    begin_tracks(t);
    for (unsigned i = 0; i < t->n_tracks; i++)
        t->seen[i] = seen_of(t, &t->tracks[i]);
    return OCT_OK;
}

/* ---- a picture ---- */

/* The array with room for n elements; without memory as it was, and *is_whole false. */
static void *grown(void *array, size_t n, size_t size, bool *is_whole)
{
    void *larger = realloc(array, n * size);
    *is_whole = *is_whole && larger;
    return larger ? larger : array;
}

/* Room for the tracks and one more for each cell. */
static enum oct_err make_room(struct oct_cells_tracker *t, struct oct_error *err)
{
    const size_t needed = (size_t)t->n_tracks + t->n_cells, n = needed + needed / 2 + 16;
    bool is_whole = true;
    if (needed <= t->room)
        return OCT_OK;
    t->tracks = grown(t->tracks, n, sizeof *t->tracks, &is_whole);
    t->seen = grown(t->seen, n, sizeof *t->seen, &is_whole);
    t->starts = grown(t->starts, n, sizeof *t->starts, &is_whole);
    t->ends = grown(t->ends, n, sizeof *t->ends, &is_whole);
    t->followed = grown(t->followed, n, sizeof *t->followed, &is_whole);
    t->links = grown(t->links, n, sizeof *t->links, &is_whole);
    t->pair = grown(t->pair, n, sizeof *t->pair, &is_whole);
    if (!is_whole)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu tracks", n);
    t->room = n;
    return OCT_OK;
}

static enum oct_err look(struct oct_cells_tracker *t, const struct oct_picture *picture,
                         struct oct_error *err)
{
    const struct oct_cells_tracker_setup *setup = &t->setup;
    const unsigned most = t->is_searched ? OCT_CELLS_MOST : 0;
    unsigned n = 0;
    enum oct_err e = setup->ops->look(setup->engine, picture, t->cells, most, &n, err);
    t->n_cells = n < most ? n : most;
    if (!e)
        e = oct_cells_above_texture(&setup->params, picture, &t->crowd, t->cells, &t->n_cells, err);
    return e ? e : make_room(t, err);
}

static enum oct_err track_cells(struct oct_cells_tracker *t, struct oct_error *err)
{
    if (!t->setup.detect_only) {
        enum oct_err e = pair_tracks(t, err);
        if (!e)
            e = follow(t, err);
        return e ? e : take_over(t, err);
    }
    for (unsigned c = 0; c < t->n_cells; c++)
        t->seen[c] = (struct oct_cells_seen){.x = t->cells[c].x,
                                             .y = t->cells[c].y,
                                             .radius = t->cells[c].radius,
                                             .score = t->cells[c].score,
                                             .how = OCT_CELLS_DETECTED};
    return OCT_OK;
}

static uint32_t sum_of(uint32_t a, uint32_t b)
{
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

enum oct_err oct_cells_tracker_push(struct oct_cells_tracker *t, const struct oct_picture *picture,
                                    unsigned skipped, const struct oct_cells_seen **seen,
                                    unsigned *n_seen, struct oct_error *err)
{
    *seen = NULL;
    *n_seen = 0;
    t->frames = sum_of(sum_of(t->left_out, skipped), 1);
    t->is_searched = t->setup.detect_only || t->since_search == 0 ||
                     sum_of(t->since_search, t->frames) > t->setup.params.detect_every;
    t->n_followed = 0;
    enum oct_err e = look(t, picture, err);
    if (!e)
        e = track_cells(t, err);
    if (e) {
        t->left_out = t->frames;
        return e;
    }
    t->left_out = 0;
    t->since_search = t->is_searched ? 1 : sum_of(t->since_search, t->frames);
    *seen = t->seen;
    *n_seen = t->setup.detect_only ? t->n_cells : t->n_tracks;
    return OCT_OK;
}

bool oct_cells_tracker_detected(const struct oct_cells_tracker *t)
{
    return t->is_searched;
}

const uint64_t *oct_cells_tracker_followed(const struct oct_cells_tracker *t, unsigned *n)
{
    *n = t->n_followed;
    return t->followed;
}

const struct oct_cell_end *oct_cells_tracker_ends(const struct oct_cells_tracker *t)
{
    return t->ends;
}

void oct_cells_tracker_set_max_step(struct oct_cells_tracker *t, double max_step)
{
    t->setup.params.max_step = max_step;
}

/* ---- life ---- */

enum oct_err oct_cells_tracker_create(struct oct_cells_tracker **tracker,
                                      const struct oct_cells_tracker_setup *setup,
                                      struct oct_error *err)
{
    struct oct_cells_tracker *t = calloc(1, sizeof *t);
    *tracker = t;
    if (t) {
        t->setup = *setup;
        t->cells = malloc(OCT_CELLS_MOST * sizeof *t->cells);
        t->link_cells = malloc(OCT_CELLS_MOST * sizeof *t->link_cells);
        t->is_paired = malloc(OCT_CELLS_MOST * sizeof *t->is_paired);
    }
    if (t && t->cells && t->link_cells && t->is_paired)
        return OCT_OK;
    oct_cells_tracker_destroy(t);
    *tracker = NULL;
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the tracker of cells");
}

void oct_cells_tracker_destroy(struct oct_cells_tracker *t)
{
    if (!t)
        return;
    free(t->tracks);
    free(t->seen);
    free(t->cells);
    free(t->starts);
    free(t->ends);
    free(t->followed);
    free(t->links);
    free(t->pair);
    free(t->link_cells);
    free(t->is_paired);
    oct_crowd_finish(&t->crowd);
    free(t);
}

void oct_cells_tracker_reset(struct oct_cells_tracker *t)
{
    t->n_tracks = 0;
    t->since_search = 0;
    t->left_out = 0;
    t->n_followed = 0;
}
