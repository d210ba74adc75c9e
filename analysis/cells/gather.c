#include "analysis/cells/gather.h"

#include "kernels/device/workers.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define NS 1e-9
#define LINES_AT_ONCE 16u    /* a cache line of a row of the turned picture */
#define NO_LIGHT_DB -119.99f /* a line that never came has -120 dB */

struct oct_cells_gather {
    enum oct_cells_source source;
    struct oct_image_form input;
    uint32_t n_bscans;
    double line_rate_hz;
    struct oct_picture picture; /* with room for a mask */
    double *time_s;             /* of each row, or column; NaN: it did not come */
    atomic_bool any_masked;
    struct oct_workers *workers;
    const struct oct_image_frame *bscan; /* while its lines are taken */

    uint64_t base_ns; /* of times */
    bool has_base;
    bool any, is_whole; /* of the volume, or the B-scan, under way */
    struct oct_bscan_info newest;

    /* Of volumes. */
    struct oct_analysis *enface;
    struct oct_image_form volume;
    uint32_t row_step;
    uint8_t *row_valid; /* [height] it came, with all its lines */
};

/* ---- sizes ---- */

void oct_cells_gather_size(enum oct_cells_source source, const struct oct_image_form *input,
                           uint32_t n_bscans, double bscan_um, uint32_t *height, uint32_t *width,
                           double um[2])
{
    const uint32_t step = oct_enface_row_step(n_bscans, input->dims[0]);
    *width = input->dims[0];
    um[1] = input->spacing_um[0];
    if (source == OCT_CELLS_OF_BSCAN) {
        *height = input->dims[1];
        um[0] = input->spacing_um[1];
    } else {
        *height = (n_bscans + step - 1) / step;
        um[0] = bscan_um * step;
    }
    for (int i = 0; i < 2; i++)
        um[i] = um[i] > 0 && isfinite(um[i]) ? um[i] : NAN;
}

/* ---- life ---- */

void oct_cells_gather_destroy(struct oct_cells_gather *g)
{
    if (!g)
        return;
    oct_enface_cpu.run.destroy(g->enface);
    oct_picture_finish(&g->picture);
    free(g->time_s);
    free(g->row_valid);
    free(g);
}

static enum oct_err open_enface(struct oct_cells_gather *g, const struct oct_analysis_setup *setup,
                                const struct oct_cells_settings *settings, struct oct_error *err)
{
    struct oct_analysis_setup of_enface = *setup;
    of_enface.settings = &settings->enface;
    of_enface.live = false; /* gives whole volumes alone */
    return oct_enface_cpu.create(&g->enface, &of_enface, &g->volume, err);
}

enum oct_err oct_cells_gather_create(struct oct_cells_gather **gather,
                                     const struct oct_analysis_setup *setup,
                                     const struct oct_cells_settings *settings,
                                     struct oct_error *err)
{
    uint32_t height, width;
    double um[2];
    *gather = NULL;
    struct oct_cells_gather *g = calloc(1, sizeof(*g));
    if (!g)
        return oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory");
    g->source = settings->source;
    g->input = *setup->input;
    g->n_bscans = setup->n_bscans;
    g->line_rate_hz = setup->line_rate_hz;
    g->workers = setup->workers;
    g->row_step = oct_enface_row_step(g->n_bscans, g->input.dims[0]);
    oct_cells_gather_size(g->source, &g->input, g->n_bscans, NAN, &height, &width, um);
    enum oct_err e = oct_picture_init(&g->picture, height, width, true, err);
    if (!e && g->source == OCT_CELLS_OF_ENFACE)
        e = open_enface(g, setup, settings, err);
    g->time_s = malloc((height > width ? height : width) * sizeof(*g->time_s));
    g->row_valid = malloc(height);
    if (!e && (!g->time_s || !g->row_valid))
        e = oct_fail(err, OCT_E_NO_MEMORY, "cells: out of memory");
    if (e) {
        oct_cells_gather_destroy(g);
        return e;
    }
    oct_cells_gather_reset(g);
    *gather = g;
    return OCT_OK;
}

static void begin(struct oct_cells_gather *g)
{
    g->any = g->is_whole = false;
    if (g->source != OCT_CELLS_OF_ENFACE)
        return;
    oct_enface_cpu.run.reset(g->enface);
    memset(g->row_valid, 0, g->picture.height);
    for (uint32_t i = 0; i < g->picture.height; i++)
        g->time_s[i] = NAN;
}

void oct_cells_gather_reset(struct oct_cells_gather *g)
{
    g->has_base = false;
    begin(g);
}

enum oct_err oct_cells_gather_configure(struct oct_cells_gather *g,
                                        const struct oct_enface_settings *settings,
                                        struct oct_error *err)
{
    return g->enface ? oct_enface_cpu.run.configure(g->enface, settings, err) : OCT_OK;
}

/* ---- times ---- */

static double seconds_of(struct oct_cells_gather *g, uint64_t time_ns)
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

/* ---- a B-scan ---- */

static bool has_light(const struct oct_cells_gather *g, const void *pixels, uint32_t line)
{
    const uint32_t depth = g->input.dims[1];
    const uint8_t *u8 = (const uint8_t *)pixels + (size_t)line * depth;
    const float *f32 = (const float *)pixels + (size_t)line * depth;
    const float least = g->input.quantity == OCT_QUANTITY_INTENSITY_DB ? NO_LIGHT_DB : 0;
    const bool is_u8 = g->input.type == OCT_SAMPLE_U8;
    for (uint32_t d = 0; d < depth; d++)
        if (is_u8 ? u8[d] > 0 : f32[d] > least)
            return true;
    return false;
}

/* Row d of the lines first .. first + n - 1; false: some pixel of it is masked. */
static bool turn_row(struct oct_cells_gather *g, uint32_t d, uint32_t first, uint32_t n,
                     const bool lit[LINES_AT_ONCE])
{
    const size_t depth = g->picture.height, to = (size_t)d * g->picture.width + first;
    float *pixels = g->picture.pixels + to;
    uint8_t *valid = g->picture.valid + to;
    bool all = true;
    if (g->input.type == OCT_SAMPLE_U8) {
        const uint8_t *from = (const uint8_t *)g->bscan->pixels + first * depth + d;
        for (uint32_t j = 0; j < n; j++)
            pixels[j] = from[j * depth];
    } else {
        const float *from = (const float *)g->bscan->pixels + first * depth + d;
        for (uint32_t j = 0; j < n; j++)
            pixels[j] = from[j * depth];
    }
    for (uint32_t j = 0; j < n; j++) {
        valid[j] = lit[j] && isfinite(pixels[j]);
        all &= valid[j] != 0;
    }
    return all;
}

static void take_lines(void *context, unsigned piece, unsigned worker)
{
    struct oct_cells_gather *g = context;
    (void)worker;
    const uint32_t first = piece * LINES_AT_ONCE, left = g->picture.width - first;
    const uint32_t n = left < LINES_AT_ONCE ? left : LINES_AT_ONCE;
    bool lit[LINES_AT_ONCE], all = true;
    for (uint32_t j = 0; j < n; j++)
        lit[j] = g->bscan->info.missing_lines == 0 || has_light(g, g->bscan->pixels, first + j);
    for (uint32_t d = 0; d < g->picture.height; d++) {
        all &= turn_row(g, d, first, n, lit);
    }
    if (!all)
        atomic_store(&g->any_masked, true);
}

static void take_bscan(struct oct_cells_gather *g, const struct oct_image_frame *bscan)
{
    const double start_s = seconds_of(g, bscan->info.time_ns);
    const uint32_t width = g->picture.width;
    atomic_store(&g->any_masked, false);
    g->bscan = bscan;
    oct_workers_run(g->workers, (width + LINES_AT_ONCE - 1) / LINES_AT_ONCE, take_lines, g);
    g->bscan = NULL;
    for (uint32_t j = 0; j < width; j++)
        g->time_s[j] = start_s + (g->line_rate_hz > 0 ? j / g->line_rate_hz : 0);
    g->is_whole = true;
}

/* ---- a volume ---- */

static bool mask_not_finite(struct oct_cells_gather *g)
{
    const size_t n = (size_t)g->picture.height * g->picture.width;
    bool any = false;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(g->picture.pixels[i])) {
            g->picture.valid[i] = 0;
            any = true;
        }
    return any;
}

static enum oct_err take_row(struct oct_cells_gather *g, const struct oct_image_frame *bscan,
                             struct oct_error *err)
{
    const struct oct_bscan_info *info = &bscan->info;
    enum oct_err e = oct_enface_cpu.run.push(g->enface, bscan, err);
    if (e)
        return e;
    const uint32_t row = info->bscan / g->row_step;
    g->time_s[row] = seconds_of(g, info->time_ns);
    g->row_valid[row] = info->missing_lines == 0;
    g->is_whole = info->bscan + 1 == g->n_bscans;
    return OCT_OK;
}

static enum oct_err take_volume(struct oct_cells_gather *g, struct oct_error *err)
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
    bool any_masked = false;
    for (uint32_t y = 0; y < p->height; y++) {
        memset(p->valid + (size_t)y * p->width, g->row_valid[y], p->width);
        any_masked = any_masked || !g->row_valid[y];
    }
    any_masked = mask_not_finite(g) || any_masked;
    atomic_store(&g->any_masked, any_masked);
    fill_times(g->time_s, p->height);
    return OCT_OK;
}

/* ---- in order ---- */

bool oct_cells_gather_is_open(const struct oct_cells_gather *g)
{
    return g->any;
}

bool oct_cells_gather_has_left(const struct oct_cells_gather *g, const struct oct_bscan_info *next)
{
    return g->source == OCT_CELLS_OF_ENFACE && g->any && next->volume != g->newest.volume;
}

enum oct_err oct_cells_gather_push(struct oct_cells_gather *g, const struct oct_image_frame *bscan,
                                   struct oct_error *err)
{
    if (!g->any)
        begin(g);
    if (g->source == OCT_CELLS_OF_BSCAN) {
        take_bscan(g, bscan);
    } else {
        enum oct_err e = take_row(g, bscan, err);
        if (e)
            return e;
    }
    g->any = true;
    g->newest = bscan->info;
    return OCT_OK;
}

bool oct_cells_gather_is_whole(const struct oct_cells_gather *g)
{
    return g->any && g->is_whole;
}

enum oct_err oct_cells_gather_picture(struct oct_cells_gather *g,
                                      struct oct_cells_gathered *gathered, struct oct_error *err)
{
    const bool of_bscan = g->source == OCT_CELLS_OF_BSCAN;
    enum oct_err e = of_bscan ? OCT_OK : take_volume(g, err);
    g->any = false;
    if (e)
        return e;
    *gathered = (struct oct_cells_gathered){
        .picture = g->picture,
        .times = {.time_s = g->time_s, .of_columns = of_bscan, .start_s = g->time_s[0]},
        .info = g->newest,
        .number = of_bscan ? g->newest.number : g->newest.volume,
    };
    if (of_bscan && !(g->line_rate_hz > 0))
        gathered->times.time_s = NULL;
    if (!atomic_load(&g->any_masked))
        gathered->picture.valid = NULL;
    return OCT_OK;
}
