#include "analysis/cells/live.h"

#include "analysis/cells/gather.h"
#include "numeric/order.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WAITING 2u /* a volume that was left, and the one that is whole at once */
#define MOST_TRACK UINT64_C(16777215) /* a float holds it, and all below */

static const char *const labels[OCT_CELLS_N_COLUMNS] = {
    [OCT_CELLS_TRACK] = "track",      [OCT_CELLS_X] = "x_px",      [OCT_CELLS_Y] = "y_px",
    [OCT_CELLS_RADIUS] = "radius_px", [OCT_CELLS_SCORE] = "score", [OCT_CELLS_HOW] = "how",
    [OCT_CELLS_SPEED] = "speed_um_s",
};

static const struct oct_image_number numbers[OCT_CELLS_N_NUMBERS] = {
    [OCT_CELLS_COUNT] = {"count", 1},        [OCT_CELLS_MEDIAN] = {"median_speed_um_s", 1},
    [OCT_CELLS_FRAMES] = {"frames_done", 1}, [OCT_CELLS_WIDTH] = {"width", 1},
    [OCT_CELLS_HEIGHT] = {"height", 1},      [OCT_CELLS_IS_BSCAN] = {"is_bscan", 1},
};

static const char *const keys[OCT_CELLS_N_COLUMNS] = {"track", "x",   "y",         "r",
                                                      "score", "how", "speed_um_s"};
static const char *const hows[] = {"detected", "snake", "coasted", NULL}; /* oct_cells_how */
static const char *const *const words[OCT_CELLS_N_COLUMNS] = {[OCT_CELLS_HOW] = hows};
static const struct oct_image_objects objects = {.name = "cells", .keys = keys, .words = words};

static const char *const source_names[] = {"enface", "bscan", NULL};

#define S struct oct_cells_settings
static const struct oct_param param_rows[] = {
    {OCT_PARAM("enabled", S, enabled), OCT_PARAM_LIVE, .standard = "no",
     .meaning = "Cells are sought in what comes."},
    {OCT_PARAM_CHOICE("source", S, source, source_names), .when = OCT_CONFIG_IDLE,
     .is_option = true, .first = OCT_CELLS_OF_ENFACE, .standard = "enface",
     .meaning = "Cells of volumes from above (as enface_projection says), or of each B-scan."},
    {OCT_PARAM("radius_um", S, radius_um), OCT_PARAM_LIVE, .is_option = true, .least = 0,
     .most = 1e6, .standard = "0", .unit = "um",
     .meaning = "Radius of the cells, where the size of pixels is known; 0: radius_px."},
    {OCT_PARAM("max_speed_um_s", S, max_speed_um_s), OCT_PARAM_LIVE, .is_option = true,
     .option = "max-speed", .least = 0, .most = 1e9, .standard = "0", .unit = "um/s",
     .meaning = "Fastest cell whose first step is looked for; 0: two radii a picture."},
    {OCT_PARAM_OF_FORM("roi", S, roi, &oct_param_region), OCT_PARAM_LIVE, .is_option = true,
     .standard = "", .takes = OCT_PARAM_TAKES_REGION,
     .meaning = "Part of the picture that is searched; empty: all."},
    {OCT_PARAM("record", S, record), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Recordings have the cells too: /analysis/cells."},
};
#undef S
const struct oct_params oct_cells_params = OCT_PARAMS(param_rows);

struct table {
    struct oct_bscan_info info;
    uint32_t n;
    float rows[OCT_CELLS_LIVE_MOST][OCT_CELLS_N_COLUMNS];
    double numbers[OCT_CELLS_N_NUMBERS];
};

/* What there is while it is enabled; else all NULL. */
struct parts {
    struct oct_cells_gather *gather;
    struct oct_cells_film *film;
    float *speeds;         /* [OCT_CELLS_MOST] */
    struct table *waiting; /* [MOST_WAITING] to be taken, in order */
};

struct oct_analysis {
    struct oct_image_form input;
    struct oct_analysis_setup setup;
    char *gpus;
    struct oct_cells_settings settings;
    uint32_t height, width;
    double um[2];

    struct parts parts;
    unsigned n_waiting;

    bool ended;      /* the acquisition: what is under way becomes a picture */
    bool any;        /* a picture was searched since the last reset */
    uint64_t newest; /* its number */
    uint64_t n_done; /* pictures */
    /* The film's numbers of tracks go on over a reset, and begin anew with another film; given are
     * those plus first_track, modulo 2^64. */
    uint64_t first_track, last_of_film;
    _Atomic(const char *) running;
};

/* ---- a picture is searched ---- */

static void write_row(const struct oct_analysis *a, const struct oct_cells_found *f, float *row)
{
    row[OCT_CELLS_TRACK] = (float)((f->track + a->first_track - 1) % MOST_TRACK + 1);
    row[OCT_CELLS_X] = (float)f->x_px;
    row[OCT_CELLS_Y] = (float)f->y_px;
    row[OCT_CELLS_RADIUS] = (float)f->radius_px;
    row[OCT_CELLS_SCORE] = f->how == OCT_CELLS_COASTED ? NAN : (float)f->score;
    row[OCT_CELLS_HOW] = (float)f->how;
    row[OCT_CELLS_SPEED] = (float)f->speed_um_s;
}

/* The tracks that were seen often enough so far. */
static void write_table(struct oct_analysis *a, const struct oct_cells_found *found, unsigned n,
                        struct table *table)
{
    unsigned n_tracks = 0, n_speeds = 0;
    table->n = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct oct_cells_found *f = &found[i];
        a->last_of_film = f->track > a->last_of_film ? f->track : a->last_of_film;
        if (f->n_seen < a->settings.params.min_frames)
            continue;
        n_tracks++;
        if (isfinite(f->speed_um_s) && n_speeds < OCT_CELLS_MOST)
            a->parts.speeds[n_speeds++] = (float)f->speed_um_s;
        if (table->n < OCT_CELLS_LIVE_MOST)
            write_row(a, f, table->rows[table->n++]);
    }
    table->numbers[OCT_CELLS_COUNT] = n_tracks;
    table->numbers[OCT_CELLS_MEDIAN] = oct_floats_median(a->parts.speeds, n_speeds);
    table->numbers[OCT_CELLS_FRAMES] = (double)++a->n_done;
    table->numbers[OCT_CELLS_WIDTH] = a->width;
    table->numbers[OCT_CELLS_HEIGHT] = a->height;
    table->numbers[OCT_CELLS_IS_BSCAN] = a->settings.source == OCT_CELLS_OF_BSCAN;
}

/* Room for another table; the oldest goes where nobody took it. */
static struct table *next_table(struct oct_analysis *a)
{
    if (a->n_waiting == MOST_WAITING)
        memmove(a->parts.waiting, a->parts.waiting + 1, --a->n_waiting * sizeof(*a->parts.waiting));
    return &a->parts.waiting[a->n_waiting];
}

static unsigned count_skipped(const struct oct_analysis *a, uint64_t number)
{
    const uint64_t n = a->any && number > a->newest ? number - a->newest - 1 : 0;
    return n < UINT32_MAX ? (unsigned)n : UINT32_MAX;
}

static enum oct_err search(struct oct_analysis *a, struct oct_error *err)
{
    struct oct_cells_gathered g;
    const struct oct_cells_found *found;
    unsigned n;
    enum oct_err e = oct_cells_gather_picture(a->parts.gather, &g, err);
    if (!e)
        e = oct_cells_film_push(a->parts.film, &g.picture, &g.times, count_skipped(a, g.number),
                                &found, &n, err);
    atomic_store(&a->running, oct_cells_film_running(a->parts.film));
    if (e)
        return e;
    a->any = true;
    a->newest = g.number;
    struct table *table = next_table(a);
    write_table(a, found, n, table);
    table->info = g.info;
    a->n_waiting++;
    return OCT_OK;
}

/* ---- the contract's functions ---- */

static enum oct_err cells_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                               struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (!a->parts.film)
        return OCT_OK;
    a->ended = false;
    if (oct_cells_gather_has_left(a->parts.gather, &bscan->info))
        e = search(a, err);
    const enum oct_err pushed = oct_cells_gather_push(a->parts.gather, bscan, e ? NULL : err);
    e = e ? e : pushed;
    return !e && oct_cells_gather_is_whole(a->parts.gather) ? search(a, err) : e;
}

static enum oct_err cells_take(struct oct_analysis *a, struct oct_image_frame *result,
                               struct oct_error *err)
{
    if (a->ended && a->n_waiting == 0 && a->parts.film &&
        oct_cells_gather_is_open(a->parts.gather)) {
        enum oct_err e = search(a, err);
        if (e)
            return e;
    }
    if (a->n_waiting == 0)
        return OCT_E_AGAIN;
    const struct table *table = &a->parts.waiting[0];
    memcpy(result->pixels, table->rows, table->n * sizeof(table->rows[0]));
    memcpy(result->numbers, table->numbers, sizeof(table->numbers));
    result->dims[0] = table->n;
    result->info = table->info;
    memmove(a->parts.waiting, a->parts.waiting + 1, --a->n_waiting * sizeof(*a->parts.waiting));
    return OCT_OK;
}

static void cells_end(struct oct_analysis *a)
{
    a->ended = true;
}

static void cells_reset(struct oct_analysis *a)
{
    a->ended = a->any = false;
    a->n_waiting = 0;
    a->first_track = 0 - a->last_of_film;
    if (!a->parts.film)
        return;
    oct_cells_gather_reset(a->parts.gather);
    oct_cells_film_reset(a->parts.film);
}

static bool cells_is_at_rest(const struct oct_analysis *a)
{
    return !a->settings.enabled;
}

static const char *cells_running(const struct oct_analysis *a)
{
    return atomic_load(&((struct oct_analysis *)a)->running);
}

/* ---- settings ---- */

void oct_cells_settings_init(struct oct_cells_settings *settings)
{
    *settings = (struct oct_cells_settings){.cpu = false};
    oct_params_set_defaults(&oct_cells_params, settings);
    oct_cells_params_octd(&settings->params, 0);
}

struct oct_cells_film_setup oct_cells_live_film(const struct oct_cells_settings *settings,
                                                uint32_t height, uint32_t width, const double um[2])
{
    const struct oct_cells_settings *s = settings;
    return (struct oct_cells_film_setup){
        .height = height,
        .width = width,
        .um = {um[0], um[1]},
        .params = s->params,
        .radius_um = s->radius_um,
        .max_speed_um_s = s->max_speed_um_s,
        .roi = s->roi,
        .backend = s->cpu ? "cpu" : "auto",
    };
}

/* What cannot be is the configuration's fault here. */
static enum oct_err as_config(enum oct_err e)
{
    return e == OCT_E_ARG ? OCT_E_CONFIG : e;
}

enum oct_err oct_cells_live_check(const struct oct_cells_settings *settings,
                                  const struct oct_image_form *input, uint32_t n_bscans,
                                  double bscan_um, struct oct_error *err)
{
    uint32_t height, width;
    double um[2];
    oct_cells_gather_size(settings->source, input, n_bscans, bscan_um, &height, &width, um);
    const struct oct_cells_film_setup setup = oct_cells_live_film(settings, height, width, um);
    return as_config(oct_cells_film_check(&setup, err));
}

static enum oct_err check_settings(const struct oct_cells_settings *s, struct oct_error *err)
{
    const enum oct_err e = oct_params_check(&oct_cells_params, s, "cells", err);
    return e ? e : oct_params_check(&oct_cells_search_params, &s->params, "cells", err);
}

/* Whether the film goes on: what it was made with is the same. From which track on is told is the
 * analysis' own. */
static bool keeps_film(const struct oct_cells_settings *a, const struct oct_cells_settings *b)
{
    struct oct_cells_settings as_b = *b;
    as_b.params.min_frames = a->params.min_frames;
    return a->cpu == b->cpu && oct_params_are_same(&oct_cells_params, a, &as_b) &&
           oct_params_are_same(&oct_cells_search_params, &a->params, &as_b.params);
}

/* ---- life ---- */

static void finish_parts(struct parts *parts)
{
    oct_cells_gather_destroy(parts->gather);
    oct_cells_film_destroy(parts->film);
    free(parts->speeds);
    free(parts->waiting);
    *parts = (struct parts){.film = NULL};
}

static enum oct_err open_parts(const struct oct_analysis *a, struct parts *parts,
                               const struct oct_cells_settings *settings, struct oct_error *err)
{
    struct oct_cells_film_setup setup = oct_cells_live_film(settings, a->height, a->width, a->um);
    setup.workers = a->setup.workers;
    setup.gpus = a->setup.gpus;
    setup.deadline_ms = a->setup.deadline_ms;
    enum oct_err e = as_config(oct_cells_film_create(&parts->film, &setup, err));
    if (!e)
        e = oct_cells_gather_create(&parts->gather, &a->setup, settings, err);
    if (e)
        return e;
    parts->speeds = malloc(OCT_CELLS_MOST * sizeof(*parts->speeds));
    parts->waiting = calloc(MOST_WAITING, sizeof(*parts->waiting));
    return parts->speeds && parts->waiting ? OCT_OK
                                           : oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory");
}

/* Replaces the parts where new ones can be made. */
static enum oct_err make_parts(struct oct_analysis *a, const struct oct_cells_settings *settings,
                               struct oct_error *err)
{
    struct parts parts = {.film = NULL};
    enum oct_err e = settings->enabled ? open_parts(a, &parts, settings, err) : OCT_OK;
    if (e) {
        finish_parts(&parts);
        return e;
    }
    finish_parts(&a->parts);
    a->parts = parts;
    a->n_waiting = 0;
    a->any = a->ended = false;
    a->first_track += a->last_of_film;
    a->last_of_film = 0;
    atomic_store(&a->running, parts.film ? oct_cells_film_running(parts.film) : "cpu");
    return OCT_OK;
}

static enum oct_err cells_configure(struct oct_analysis *a, const void *settings,
                                    struct oct_error *err)
{
    struct oct_cells_settings wanted = *(const struct oct_cells_settings *)settings;
    wanted.source = a->settings.source;
    enum oct_err e = check_settings(&wanted, err);
    if (!e && !keeps_film(&a->settings, &wanted))
        e = make_parts(a, &wanted, err);
    else if (!e && a->parts.gather)
        e = oct_cells_gather_configure(a->parts.gather, &wanted.enface, err);
    if (!e)
        a->settings = wanted;
    return e;
}

static void cells_destroy(struct oct_analysis *a)
{
    if (!a)
        return;
    finish_parts(&a->parts);
    free(a->gpus);
    free(a);
}

static void describe(const struct oct_analysis *a, struct oct_image_form *form)
{
    *form = (struct oct_image_form){
        .name = "cells",
        .quantity = OCT_QUANTITY_NUMBERS,
        .type = OCT_SAMPLE_F32,
        .rank = 2,
        .dims = {OCT_CELLS_LIVE_MOST, OCT_CELLS_N_COLUMNS},
        .spacing_um = {NAN, NAN},
        .axes = {"cell", "column"},
        .labels = labels,
        .of_volume = a->settings.source == OCT_CELLS_OF_ENFACE,
        .numbers = numbers,
        .n_numbers = OCT_CELLS_N_NUMBERS,
        .objects = &objects,
    };
}

static enum oct_err cells_create(struct oct_analysis **out, const struct oct_analysis_setup *setup,
                                 struct oct_image_form *form, struct oct_error *err)
{
    const struct oct_cells_settings *settings = setup->settings;
    *out = NULL;
    enum oct_err e = check_settings(settings, err);
    if (e)
        return e;
    struct oct_analysis *a = calloc(1, sizeof(*a));
    if (!a || (setup->gpus && !(a->gpus = strdup(setup->gpus)))) {
        free(a);
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory");
    }
    a->input = *setup->input;
    a->setup = *setup;
    a->setup.input = &a->input;
    a->setup.gpus = a->gpus;
    a->settings = *settings;
    atomic_init(&a->running, "cpu");
    oct_cells_gather_size(settings->source, &a->input, setup->n_bscans, setup->spacing.bscan_um,
                          &a->height, &a->width, a->um);
    e = make_parts(a, settings, err);
    if (e) {
        cells_destroy(a);
        return e;
    }
    describe(a, form);
    *out = a;
    return OCT_OK;
}

/* Of B-scans the newest counts; of a volume each has a row. */
static unsigned most_behind(const void *settings)
{
    return ((const struct oct_cells_settings *)settings)->source == OCT_CELLS_OF_BSCAN ? 2 : 0;
}

const struct oct_analysis_ops oct_cells_analysis_cpu = {
    .name = "cells",
    .backend = "cpu",
    .meaning = "Cells of each volume from above, or of each B-scan: where they are, how fast.",
    .input = OCT_STAGE_PICTURES,
    .settings_bytes = sizeof(struct oct_cells_settings),
    .most_behind_of = most_behind,
    .create = cells_create,
    .run =
        {
            .push = cells_push,
            .take = cells_take,
            .end = cells_end,
            .reset = cells_reset,
            .configure = cells_configure,
            .is_at_rest = cells_is_at_rest,
            .running = cells_running,
            .destroy = cells_destroy,
        },
};
