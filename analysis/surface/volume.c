#include "analysis/surface/volume.h"

#include "analysis/surface/volume_parts.h"
#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct finder {
    const struct oct_surfaces_setup *setup;
    const struct oct_volume_source *source;
    struct oct_surfaces *surfaces;
    const struct oct_surfaces *before; /* of the first pass, while the second runs */
    struct oct_surfaces_scratch *scratch;
    struct oct_picture *pictures;       /* [n_batch] */
    uint32_t n_workers, n_batch, first; /* B-scan of the batch's first picture */
    uint64_t done, all;
};

/* ---- life ---- */

static enum oct_err surfaces_init(struct oct_surfaces *s, uint32_t n_bscans, uint32_t n_lines,
                                  struct oct_error *err)
{
    size_t n = (size_t)n_bscans * n_lines;
    bool failed = false;

    *s = (struct oct_surfaces){.n_bscans = n_bscans, .n_lines = n_lines};
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        s->position[layer] = malloc(n * sizeof(float));
        s->quality[layer] = calloc(n, sizeof(float));
        failed = failed || !s->position[layer] || !s->quality[layer];
        for (size_t i = 0; !failed && i < n; i++)
            s->position[layer][i] = NAN;
    }
    s->shift_px = calloc(n_bscans, sizeof(double));
    s->fate = calloc(n_bscans, sizeof(*s->fate));
    if (failed || !s->shift_px || !s->fate) {
        oct_surfaces_finish(s);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the layers of %u x %u A-lines",
                        n_bscans, n_lines);
    }
    return OCT_OK;
}

void oct_surfaces_finish(struct oct_surfaces *s)
{
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        free(s->position[layer]);
        free(s->quality[layer]);
    }
    free(s->shift_px);
    free(s->fate);
    *s = (struct oct_surfaces){0};
}

static enum oct_err finder_init(struct finder *f, struct oct_error *err)
{
    struct oct_workers *workers = f->setup->workers;

    f->n_workers = workers ? oct_workers_n_threads(workers) + 1 : 1;
    f->n_batch = 2 * f->n_workers;
    f->all = 2 * (uint64_t)f->source->n_bscans + (f->setup->align ? f->source->n_bscans : 0);
    f->scratch = calloc(f->n_workers, sizeof(*f->scratch));
    f->pictures = calloc(f->n_batch, sizeof(*f->pictures));
    if (!f->scratch || !f->pictures)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the layers of a volume");
    for (uint32_t i = 0; i < f->n_workers; i++) {
        enum oct_err e = oct_surfaces_scratch_init(&f->scratch[i], f->setup, err);
        if (e)
            return e;
    }
    return OCT_OK;
}

static void finder_finish(struct finder *f)
{
    for (uint32_t i = 0; f->scratch && i < f->n_workers; i++)
        oct_surfaces_scratch_finish(&f->scratch[i]);
    for (uint32_t i = 0; f->pictures && i < f->n_batch; i++)
        oct_picture_finish(&f->pictures[i]);
    free(f->scratch);
    free(f->pictures);
}

/* ---- B-scans ---- */

static bool is_skipped(const struct finder *f, uint32_t b)
{
    return f->setup->skip && f->setup->skip[b];
}

/* Masked pixels become NaN, which the trace takes as the darkest. */
static const uint8_t *valid_lines(struct oct_picture *picture, uint8_t *line_valid)
{
    if (!picture->valid)
        return NULL;
    for (uint32_t j = 0; j < picture->height; j++) {
        size_t at = (size_t)j * picture->width;
        line_valid[j] = 0;
        for (uint32_t d = 0; d < picture->width; d++) {
            line_valid[j] |= picture->valid[at + d] != 0;
            if (!picture->valid[at + d])
                picture->pixels[at + d] = NAN;
        }
    }
    return line_valid;
}

static void trace_first(void *context, unsigned piece, unsigned worker)
{
    struct finder *f = context;
    struct oct_surfaces_scratch *scratch = &f->scratch[worker];
    uint32_t b = f->first + piece;
    size_t at = (size_t)b * f->setup->n_lines;
    struct oct_traced traced;

    if (is_skipped(f, b))
        return;
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        traced.position[layer] = f->surfaces->position[layer] + at;
        traced.quality[layer] = f->surfaces->quality[layer] + at;
    }
    struct oct_picture *picture = &f->pictures[piece];
    const uint8_t *valid = valid_lines(picture, scratch->line_valid);
    oct_trace_run(scratch->first, picture->pixels, valid, NULL, &traced);
}

/* A blink shows no layers, or shows them by itself. */
static void trace_second(void *context, unsigned piece, unsigned worker)
{
    struct finder *f = context;
    struct oct_surfaces_scratch *scratch = &f->scratch[worker];
    uint32_t b = f->first + piece;
    struct oct_trace_bounds bounds;
    struct oct_traced traced;

    if (is_skipped(f, b) || f->before->fate[b] == OCT_VOLUME_BLANK ||
        !oct_surfaces_bound(f->setup, f->before, b, scratch))
        return;
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        bounds.least[layer] = scratch->least[layer];
        bounds.most[layer] = scratch->most[layer];
        traced.position[layer] = scratch->position[layer];
        traced.quality[layer] = scratch->quality[layer];
    }
    struct oct_picture *picture = &f->pictures[piece];
    const uint8_t *valid = valid_lines(picture, scratch->line_valid);
    oct_trace_run(scratch->second, picture->pixels, valid, &bounds, &traced);
    oct_surfaces_merge(f->setup, f->surfaces, b, scratch);
}

static void count(struct finder *f, uint64_t n)
{
    f->done += n;
    if (f->source->progress)
        f->source->progress(f->source->context, f->done, f->all);
}

static enum oct_err read_picture(struct finder *f, uint32_t b, struct oct_picture *picture,
                                 struct oct_error *err)
{
    enum oct_err e = f->source->read(f->source->context, b, picture, err);

    if (!e && (picture->height != f->setup->n_lines || picture->width != f->setup->depth))
        e = oct_fail(err, OCT_E_ARG, "B-scan %u is of %u x %u pixels, not %u x %u", b,
                     picture->height, picture->width, f->setup->n_lines, f->setup->depth);
    return e;
}

/* Reads B-scans on this thread, as many at a time as the workers take. */
static enum oct_err pass(struct finder *f,
                         void (*run)(void *context, unsigned piece, unsigned worker),
                         struct oct_error *err)
{
    uint32_t n = f->source->n_bscans;

    for (f->first = 0; f->first < n; f->first += f->n_batch) {
        uint32_t n_pieces = n - f->first < f->n_batch ? n - f->first : f->n_batch;
        for (uint32_t i = 0; i < n_pieces; i++) {
            oct_picture_finish(&f->pictures[i]);
            f->pictures[i] = (struct oct_picture){0};
            enum oct_err e = is_skipped(f, f->first + i)
                                 ? OCT_OK
                                 : read_picture(f, f->first + i, &f->pictures[i], err);
            if (e)
                return e;
        }
        oct_workers_run(f->setup->workers, n_pieces, run, f);
        count(f, n_pieces);
    }
    return OCT_OK;
}

/* ---- the volume ---- */

static enum oct_err read_aligned(void *context, uint32_t b, struct oct_picture *picture,
                                 struct oct_error *err)
{
    return read_picture(context, b, picture, err);
}

static void show_aligned(void *context, uint64_t done, uint64_t all)
{
    struct finder *f = context;

    if (f->source->progress && all)
        f->source->progress(f->source->context, f->done + done * f->source->n_bscans / all, f->all);
}

/* A volume whose B-scans do not fit each other, as one without a retina, stays as it is. */
static enum oct_err align(struct finder *f, struct oct_error *err)
{
    struct oct_surfaces *s = f->surfaces;
    const struct oct_volume_source source = {
        .context = f, .n_bscans = s->n_bscans, .read = read_aligned, .progress = show_aligned};
    const struct oct_volume_setup setup = {.height = f->setup->n_lines,
                                           .width = f->setup->depth,
                                           .skip = f->setup->skip,
                                           .backend = f->setup->backend,
                                           .gpus = f->setup->gpus,
                                           .deadline_ms = f->setup->deadline_ms};
    struct oct_volume_shift *shifts = calloc(s->n_bscans, sizeof(*shifts));

    if (!shifts)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the shifts of %u B-scans",
                        s->n_bscans);
    enum oct_err e = oct_volume_register(&setup, &source, shifts, NULL, err);
    for (uint32_t b = 0; b < s->n_bscans; b++) {
        s->fate[b] = e ? OCT_VOLUME_NO_FIT : shifts[b].fate;
        s->shift_px[b] = !e && oct_surfaces_is_aligned(s, b) ? shifts[b].dx : 0;
    }
    free(shifts);
    f->done += f->source->n_bscans;
    return e == OCT_E_ARG ? OCT_OK : e;
}

/* The second pass looks at the layers of the first, whatever was done already. */
static enum oct_err second_pass(struct finder *f, struct oct_error *err)
{
    struct oct_surfaces before, *s = f->surfaces;
    size_t n = (size_t)s->n_bscans * s->n_lines;
    enum oct_err e = surfaces_init(&before, s->n_bscans, s->n_lines, err);

    if (e)
        return e;
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        memcpy(before.position[layer], s->position[layer], n * sizeof(float));
        memcpy(before.quality[layer], s->quality[layer], n * sizeof(float));
    }
    memcpy(before.shift_px, s->shift_px, s->n_bscans * sizeof(double));
    memcpy(before.fate, s->fate, s->n_bscans * sizeof(*s->fate));
    f->before = &before;
    e = pass(f, trace_second, err);
    f->before = NULL;
    oct_surfaces_finish(&before);
    return e;
}

static void count_found(struct oct_surfaces *s)
{
    size_t n = (size_t)s->n_bscans * s->n_lines;

    for (int layer = 0; layer < OCT_N_LAYERS; layer++)
        for (size_t i = 0; i < n; i++)
            s->n_found[layer] += isnan(s->position[layer][i]) ? 0 : 1;
}

enum oct_err oct_surfaces_find(const struct oct_surfaces_setup *setup,
                               const struct oct_volume_source *source,
                               struct oct_surfaces *surfaces, struct oct_error *err)
{
    struct oct_surfaces_setup known = *setup;
    struct finder f = {.setup = &known, .source = source, .surfaces = surfaces};

    *surfaces = (struct oct_surfaces){0};
    if (source->n_bscans < OCT_SURFACES_LEAST_BSCANS)
        return oct_fail(err, OCT_E_ARG, "a volume of %u B-scans has no layers: %u are needed",
                        source->n_bscans, OCT_SURFACES_LEAST_BSCANS);
    if (!(known.trace.depth_um > 0))
        known.trace.depth_um = OCT_TRACE_DEPTH_UM;
    if (!(known.trace.line_um > 0))
        known.trace.line_um = OCT_TRACE_LINE_UM;
    enum oct_err e = finder_init(&f, err);
    e = e ? e : surfaces_init(surfaces, source->n_bscans, setup->n_lines, err);
    for (uint32_t b = 0; !e && b < source->n_bscans; b++)
        surfaces->fate[b] = is_skipped(&f, b) ? OCT_VOLUME_SKIPPED : OCT_VOLUME_USED;
    e = e ? e : pass(&f, trace_first, err);
    if (!e && setup->align)
        e = align(&f, err);
    e = e ? e : second_pass(&f, err);
    if (e)
        oct_surfaces_finish(surfaces);
    else
        count_found(surfaces);
    finder_finish(&f);
    return e;
}
