#include "viewer/model/overlay.h"

#include "viewer/model/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_TRACK 16777215.0 /* whole numbers of a float */
#define MOST_SIDE (1 << 20)
#define COASTED 2
#define MORE_NS (2 * OCT_NS_PER_S)

enum column { TRACK, X, Y, RADIUS, HOW, N_COLUMNS };
static const char *const names[N_COLUMNS] = {"track", "x_px", "y_px", "radius_px", "how"};

enum oct_err oct_view_cells_check(const struct oct_image_header *header, struct oct_error *err)
{
    if (header->type != OCT_SAMPLE_F32 || header->rank != 2 || header->dims[1] == 0 ||
        header->n_labels != header->dims[1] || header->dims[0] > OCT_VIEW_CELLS_MOST)
        return oct_fail(err, OCT_E_FORMAT,
                        "%.40s: cells are a table of labelled f32 numbers, of %u rows at most",
                        header->dataset, OCT_VIEW_CELLS_MOST);
    return OCT_OK;
}

/* ---- one table ---- */

/* False: the row is no cell of such a picture. A number that is none compares false. */
static bool read_row(const struct oct_view_cells *cells, const struct oct_image_header *h,
                     const float *row, struct oct_view_track *track)
{
    double v[N_COLUMNS];
    for (int i = 0; i < N_COLUMNS; i++)
        v[i] = oct_image_header_value(h, row, names[i]);
    if (!(v[TRACK] >= 1 && v[TRACK] <= MOST_TRACK) || !(v[X] >= 0 && v[X] < cells->width) ||
        !(v[Y] >= 0 && v[Y] < cells->height) ||
        !(v[RADIUS] > 0 && v[RADIUS] <= fmax(cells->width, cells->height)))
        return false;
    *track = (struct oct_view_track){.track = (uint32_t)v[TRACK],
                                     .n = 1,
                                     .x = {(float)v[X]},
                                     .y = {(float)v[Y]},
                                     .radius = (float)v[RADIUS],
                                     .is_coasting = v[HOW] >= COASTED};
    return true;
}

static const struct oct_view_track *find(const struct oct_view_cells *cells, uint32_t track)
{
    for (unsigned i = 0; i < cells->n; i++)
        if (cells->tracks[i].track == track)
            return &cells->tracks[i];
    return NULL;
}

/* Puts the positions of before in front of the one that is new. */
static void go_on(struct oct_view_track *track, const struct oct_view_track *before)
{
    const unsigned most = OCT_VIEW_CELLS_TAIL - 1, n = before->n < most ? before->n : most;
    const float x = track->x[0], y = track->y[0];
    memcpy(track->x, before->x + before->n - n, n * sizeof(*track->x));
    memcpy(track->y, before->y + before->n - n, n * sizeof(*track->y));
    track->x[n] = x;
    track->y[n] = y;
    track->n = n + 1;
}

static uint32_t side_of(const struct oct_image_header *h, const char *name)
{
    const double side = oct_image_header_number(h, name, 0);
    return side >= 1 && side <= MOST_SIDE ? (uint32_t)side : 0;
}

static bool is_another(const struct oct_view_cells *a, const struct oct_view_cells *b)
{
    return strcmp(a->acquisition_id, b->acquisition_id) != 0 || a->width != b->width ||
           a->height != b->height || a->is_bscan != b->is_bscan || b->frame_num < a->frame_num;
}

void oct_view_cells_set(struct oct_view_cells *cells, const struct oct_view_image *table)
{
    const struct oct_image_header *h = &table->header;
    const float *row = table->values;
    struct oct_view_cells next = {.n = 0};

    if (oct_view_cells_check(h, NULL))
        return;
    next.count = oct_image_header_number(h, "count", 0);
    next.median_um_s = oct_image_header_number(h, "median_speed_um_s", 0);
    next.width = side_of(h, "width");
    next.height = side_of(h, "height");
    next.is_bscan = oct_image_header_number(h, "is_bscan", 0) > 0;
    next.frame_num = h->frame_num;
    next.volume = h->volume;
    next.arrival_ns = table->arrival_ns;
    snprintf(next.acquisition_id, sizeof(next.acquisition_id), "%s", h->acquisition_id);
    const bool anew = is_another(cells, &next);
    if (!anew && cells->arrival_ns && next.arrival_ns > cells->arrival_ns)
        next.interval_ns = next.arrival_ns - cells->arrival_ns;
    for (uint32_t i = 0; i < h->dims[0]; i++, row += h->dims[1]) {
        struct oct_view_track *track = &next.tracks[next.n];
        if (!read_row(&next, h, row, track) || find(&next, track->track))
            continue;
        const struct oct_view_track *before = anew ? NULL : find(cells, track->track);
        if (before)
            go_on(track, before);
        next.n++;
    }
    *cells = next;
}

bool oct_view_cells_are_new(const struct oct_view_cells *cells, uint64_t now_ns)
{
    const uint64_t most_ns = 2 * cells->interval_ns + MORE_NS;
    return cells->arrival_ns > 0 &&
           (now_ns < cells->arrival_ns || now_ns - cells->arrival_ns < most_ns);
}
