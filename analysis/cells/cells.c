#include "analysis/cells/cells.h"
#include "kernels/device/workers.h"
#include "numeric/order.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WAITING 2u /* a volume that was left, and the one that is whole at once */
#define MOST_TRACK UINT64_C(16777215) /* a float holds it, and all below */
#define NS 1e-9
#define LINES_AT_ONCE 16u    /* a cache line of a row of the turned picture */
#define NO_LIGHT_DB -119.99f /* a line that never came has -120 dB */

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
static const char *const *const words[OCT_CELLS_N_COLUMNS] = {[OCT_CELLS_HOW] =
                                                                  oct_cells_how_names};
static const struct oct_image_objects objects = {.name = "cells", .keys = keys, .words = words};

static const char *const source_names[] = {"enface", "bscan", NULL};

#define S struct oct_cells_settings
static const struct oct_param live_rows[] = {
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
const struct oct_params oct_cells_params = OCT_PARAMS(live_rows);

/* ---- the picture under way ----
 *
 * enface: a volume from above, [rows][M], whole when its last B-scan has come, or when a B-scan of
 * another volume comes, or at the end. bscan: each B-scan, [D][M]. */

struct gather {
    const struct oct_analysis_setup *setup;
    bool of_bscans;
    struct oct_picture picture;          /* with a mask */
    double *time_s;                      /* of each row, or column; NaN: it did not come */
    const struct oct_image_frame *bscan; /* while its lines are taken */

    uint64_t base_ns; /* of times */
    bool has_base;
    bool any, is_whole; /* of the volume, or the B-scan, under way */
    struct oct_bscan_info newest;

    /* Of volumes. */
    struct oct_analysis *enface;
    struct oct_image_form volume;
    uint32_t row_step;
    bool *is_row; /* [height] it came, with all its lines */
};

/* The size of pictures and their pixels, {dy, dx}, in um. */
static void gather_size(enum oct_cells_source source, const struct oct_image_form *input,
                        uint32_t n_bscans, double bscan_um, uint32_t *height, uint32_t *width,
                        double um[2])
{
    const uint32_t step = oct_enface_row_step(n_bscans, input->dims[0]);
    const bool of_bscan = source == OCT_CELLS_OF_BSCAN;
    *width = input->dims[0];
    *height = of_bscan ? input->dims[1] : (n_bscans + step - 1) / step;
    um[0] = of_bscan ? input->spacing_um[1] : bscan_um * step;
    um[1] = input->spacing_um[0];
    for (int i = 0; i < 2; i++)
        um[i] = um[i] > 0 && isfinite(um[i]) ? um[i] : NAN;
}

static void gather_finish(struct gather *g)
{
    oct_enface_cpu.run.destroy(g->enface);
    oct_picture_finish(&g->picture);
    free(g->time_s);
    free(g->is_row);
}

/* Another volume, or B-scan. */
static void gather_begin(struct gather *g)
{
    g->any = g->is_whole = false;
    if (g->of_bscans)
        return;
    oct_enface_cpu.run.reset(g->enface);
    for (uint32_t y = 0; y < g->picture.height; y++) {
        g->is_row[y] = false;
        g->time_s[y] = NAN;
    }
}

static void gather_reset(struct gather *g)
{
    g->has_base = false;
    gather_begin(g);
}

static enum oct_err gather_open(struct gather *g, const struct oct_analysis_setup *setup,
                                const struct oct_cells_settings *settings, struct oct_error *err)
{
    uint32_t height, width;
    double um[2];
    gather_size(settings->source, setup->input, setup->n_bscans, NAN, &height, &width, um);
    *g = (struct gather){.setup = setup,
                         .of_bscans = settings->source == OCT_CELLS_OF_BSCAN,
                         .row_step = oct_enface_row_step(setup->n_bscans, setup->input->dims[0]),
                         .time_s = malloc((height > width ? height : width) * sizeof(double)),
                         .is_row = malloc(height * sizeof(bool))};
    enum oct_err e = oct_picture_init(&g->picture, height, width, true, err);
    if (!e && !g->of_bscans) {
        struct oct_analysis_setup of_enface = *setup;
        of_enface.settings = &settings->enface;
        of_enface.live = false; /* gives whole volumes alone */
        e = oct_enface_cpu.create(&g->enface, &of_enface, &g->volume, err);
    }
    if (!e && (!g->time_s || !g->is_row))
        e = oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory");
    if (!e)
        gather_reset(g);
    return e;
}

static double seconds_of(struct gather *g, uint64_t time_ns)
{
    if (!g->has_base)
        g->base_ns = time_ns;
    g->has_base = true;
    return (double)(int64_t)(time_ns - g->base_ns) * NS;
}

/* Times of rows that did not come lie between those that did, or go on with the mean step of all
 * that did. With none that came all stay NaN. */
static void fill_times(double *time_s, uint32_t n)
{
    uint32_t first = 0, last = n;
    while (first < n && isnan(time_s[first]))
        first++;
    while (last > first && isnan(time_s[last - 1]))
        last--;
    if (first == last--)
        return;
    const double step = last > first ? (time_s[last] - time_s[first]) / (last - first) : 0;
    for (uint32_t i = 0; i < first; i++)
        time_s[i] = time_s[first] - step * (first - i);
    for (uint32_t i = last + 1; i < n; i++)
        time_s[i] = time_s[last] + step * (i - last);
    for (uint32_t from = first, to; from < last; from = to) {
        for (to = from + 1; isnan(time_s[to]);)
            to++;
        for (uint32_t i = from + 1; i < to; i++)
            time_s[i] = time_s[from] + (time_s[to] - time_s[from]) * (i - from) / (to - from);
    }
}

static inline float pixel_of(const struct gather *g, size_t at)
{
    return g->setup->input->type == OCT_SAMPLE_U8 ? ((const uint8_t *)g->bscan->pixels)[at]
                                                  : ((const float *)g->bscan->pixels)[at];
}

static bool has_light(const struct gather *g, uint32_t line)
{
    const bool is_db = g->setup->input->type != OCT_SAMPLE_U8 &&
                       g->setup->input->quantity == OCT_QUANTITY_INTENSITY_DB;
    const float least = is_db ? NO_LIGHT_DB : 0;
    const size_t depth = g->picture.height;
    for (size_t d = 0; d < depth; d++)
        if (pixel_of(g, line * depth + d) > least)
            return true;
    return false;
}

/* Some lines of a B-scan become columns. */
static void take_lines(void *context, unsigned piece, unsigned worker)
{
    struct gather *g = context;
    (void)worker;
    const uint32_t first = piece * LINES_AT_ONCE, left = g->picture.width - first;
    const uint32_t n = left < LINES_AT_ONCE ? left : LINES_AT_ONCE;
    const size_t depth = g->picture.height;
    bool is_lit[LINES_AT_ONCE];
    for (uint32_t j = 0; j < n; j++)
        is_lit[j] = g->bscan->info.missing_lines == 0 || has_light(g, first + j);
    for (size_t d = 0; d < depth; d++)
        for (uint32_t j = 0; j < n; j++) {
            const size_t to = d * g->picture.width + first + j;
            const float pixel = pixel_of(g, (first + j) * depth + d);
            g->picture.pixels[to] = pixel;
            g->picture.valid[to] = is_lit[j] && isfinite(pixel);
        }
}

static void take_bscan(struct gather *g, const struct oct_image_frame *bscan)
{
    const double start_s = seconds_of(g, bscan->info.time_ns);
    const double line_rate_hz = g->setup->line_rate_hz;
    const uint32_t width = g->picture.width;
    g->bscan = bscan;
    oct_workers_run(g->setup->workers, (width + LINES_AT_ONCE - 1) / LINES_AT_ONCE, take_lines, g);
    for (uint32_t j = 0; j < width; j++)
        g->time_s[j] = start_s + (line_rate_hz > 0 ? j / line_rate_hz : 0);
    g->is_whole = true;
}

static enum oct_err take_row(struct gather *g, const struct oct_image_frame *bscan,
                             struct oct_error *err)
{
    const struct oct_bscan_info *info = &bscan->info;
    enum oct_err e = oct_enface_cpu.run.push(g->enface, bscan, err);
    if (e)
        return e;
    g->time_s[info->bscan / g->row_step] = seconds_of(g, info->time_ns);
    g->is_row[info->bscan / g->row_step] = info->missing_lines == 0;
    g->is_whole = info->bscan + 1 == g->setup->n_bscans;
    return OCT_OK;
}

static enum oct_err take_volume(struct gather *g, struct oct_error *err)
{
    const struct oct_picture *p = &g->picture;
    struct oct_image_frame result = {
        .form = &g->volume, .info = g->newest, .pixels = g->picture.pixels};
    memcpy(result.dims, g->volume.dims, sizeof(result.dims));
    if (!g->is_whole)
        oct_enface_cpu.run.end(g->enface);
    enum oct_err e = oct_enface_cpu.run.take(g->enface, &result, err);
    if (e)
        return e == OCT_E_AGAIN ? oct_fail(err, OCT_E_STATE, "cells: a volume without rows") : e;
    for (size_t i = 0; i < (size_t)p->height * p->width; i++)
        p->valid[i] = g->is_row[i / p->width] && isfinite(p->pixels[i]);
    fill_times(g->time_s, p->height);
    return OCT_OK;
}

static enum oct_err gather_push(struct gather *g, const struct oct_image_frame *bscan,
                                struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    if (!g->any)
        gather_begin(g);
    if (g->of_bscans)
        take_bscan(g, bscan);
    else
        e = take_row(g, bscan, err);
    g->any = g->any || !e;
    g->newest = e ? g->newest : bscan->info;
    return e;
}

/* ---- the analysis ---- */

struct table {
    struct oct_bscan_info info;
    uint32_t n;
    float rows[OCT_CELLS_LIVE_MOST][OCT_CELLS_N_COLUMNS];
    double numbers[OCT_CELLS_N_NUMBERS];
};

/* What there is while it is enabled; else all zeros. */
struct parts {
    struct gather gather;
    struct oct_cells_film *film;
    float *speeds; /* [OCT_CELLS_MOST] */
};

struct oct_analysis {
    struct oct_image_form input;
    struct oct_analysis_setup setup;
    char *gpus;
    struct oct_cells_settings settings;
    uint32_t height, width;
    double um[2];
    struct parts parts;
    struct table waiting[MOST_WAITING]; /* to be taken, in order */
    unsigned n_waiting;

    bool ended;      /* the acquisition: what is under way becomes a picture */
    bool any;        /* a picture was searched since the last reset */
    uint64_t newest; /* its number: of the volume, the B-scan */
    uint64_t n_done; /* pictures */
    /* The film's numbers of tracks go on over a reset, and begin anew with another film; given are
     * those plus first_track, modulo 2^64. */
    uint64_t first_track, last_of_film;
    _Atomic(const char *) running;
};

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

static void drop_oldest(struct oct_analysis *a)
{
    memmove(a->waiting, a->waiting + 1, --a->n_waiting * sizeof(*a->waiting));
}

static enum oct_err search(struct oct_analysis *a, struct oct_error *err)
{
    struct gather *g = &a->parts.gather;
    const uint64_t number = g->of_bscans ? g->newest.number : g->newest.volume;
    const uint64_t skipped = a->any && number > a->newest ? number - a->newest - 1 : 0;
    const struct oct_cells_found *found;
    unsigned n;
    enum oct_err e = g->of_bscans ? OCT_OK : take_volume(g, err);
    struct oct_picture picture = g->picture;
    struct oct_cells_times times = {
        .time_s = g->time_s, .of_columns = g->of_bscans, .start_s = g->time_s[0]};
    g->any = false;
    if (g->of_bscans && !(a->setup.line_rate_hz > 0))
        times.time_s = NULL;
    if (!memchr(picture.valid, 0, (size_t)picture.height * picture.width))
        picture.valid = NULL;
    if (!e)
        e = oct_cells_film_push(a->parts.film, &picture, &times,
                                skipped < UINT32_MAX ? (unsigned)skipped : UINT32_MAX, &found, &n,
                                err);
    atomic_store(&a->running, oct_cells_film_running(a->parts.film));
    if (e)
        return e;
    a->any = true;
    a->newest = number;
    if (a->n_waiting == MOST_WAITING) /* nobody took it */
        drop_oldest(a);
    a->waiting[a->n_waiting].info = g->newest;
    write_table(a, found, n, &a->waiting[a->n_waiting++]);
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
    struct gather *g = &a->parts.gather;
    if (!g->of_bscans && g->any && bscan->info.volume != g->newest.volume)
        e = search(a, err); /* of the volume that was left */
    const enum oct_err pushed = gather_push(g, bscan, e ? NULL : err);
    e = e ? e : pushed;
    return !e && g->any && g->is_whole ? search(a, err) : e;
}

static enum oct_err cells_take(struct oct_analysis *a, struct oct_image_frame *result,
                               struct oct_error *err)
{
    if (a->ended && a->n_waiting == 0 && a->parts.film && a->parts.gather.any) {
        enum oct_err e = search(a, err);
        if (e)
            return e;
    }
    if (a->n_waiting == 0)
        return OCT_E_AGAIN;
    const struct table *table = &a->waiting[0];
    memcpy(result->pixels, table->rows, table->n * sizeof(table->rows[0]));
    memcpy(result->numbers, table->numbers, sizeof(table->numbers));
    result->dims[0] = table->n;
    result->info = table->info;
    drop_oldest(a);
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
    gather_reset(&a->parts.gather);
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
    gather_size(settings->source, input, n_bscans, bscan_um, &height, &width, um);
    const struct oct_cells_film_setup setup = oct_cells_live_film(settings, height, width, um);
    return as_config(oct_cells_film_check(&setup, err));
}

static enum oct_err check_settings(const struct oct_cells_settings *s, struct oct_error *err)
{
    const enum oct_err e = oct_params_check(&oct_cells_params, s, "cells", err);
    return e ? e : oct_params_check(&oct_cells_search_params, &s->params, "cells", err);
}

/* Whether the film goes on: what it was made with is the same. min_frames is the analysis' own. */
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
    gather_finish(&parts->gather);
    oct_cells_film_destroy(parts->film);
    free(parts->speeds);
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
        e = gather_open(&parts->gather, &a->setup, settings, err);
    if (e)
        return e;
    parts->speeds = malloc(OCT_CELLS_MOST * sizeof(*parts->speeds));
    return parts->speeds ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory");
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
    else if (!e && a->parts.gather.enface)
        e = oct_enface_cpu.run.configure(a->parts.gather.enface, &wanted.enface, err);
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
    gather_size(settings->source, &a->input, setup->n_bscans, setup->spacing.bscan_um, &a->height,
                &a->width, a->um);
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

static void cells_init(void *settings)
{
    oct_cells_settings_init(settings);
}

static void cells_join(void *settings, const struct oct_analysis_session *session)
{
    struct oct_cells_settings *s = settings;
    s->cpu = session->cpu;
    s->enface = *session->enface;
}

static enum oct_err cells_check(const void *settings, const struct oct_analysis_setup *setup,
                                struct oct_error *err)
{
    return oct_cells_live_check(settings, setup->input, setup->n_bscans, setup->spacing.bscan_um,
                                err);
}

const struct oct_analysis_ops oct_cells_analysis_cpu = {
    .name = "cells",
    .backend = "cpu",
    .meaning = "Cells of each volume from above, or of each B-scan: where they are, how fast.",
    .input = OCT_STAGE_PICTURES,
    .settings_bytes = sizeof(struct oct_cells_settings),
    .keys = {{.params = &oct_cells_params},
             {&oct_cells_search_params, offsetof(struct oct_cells_settings, params)}},
    .section = "Cells, found and followed live: topic and dataset `cells`.",
    .init = cells_init,
    .join = cells_join,
    .check = cells_check,
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
