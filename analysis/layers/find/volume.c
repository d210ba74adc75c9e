#include "analysis/layers/find/volume.h"

#include "analysis/layers/find/trace_parts.h"
#include "kernels/device/workers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BESIDE 3u    /* B-scans on each side */
#define REACH_UM 100.0    /* within which they are looked for */
#define NEAR_UM 30.0      /* and taken, if one is there */
#define LINE_STEP_UM 10.0 /* A-lines to the left and right that count as well */
#define HALF_UM 6.0 /* of the space between the bounds, beside the spread of what they come from */
#define MOST_SPREAD_UM 40.0
#define TRUSTED 1.25F       /* of the quality that an A-line needs */
#define AS_SURE 0.8F        /* of the quality of what was found without bounds */
#define SAME_UM 2.0         /* positions that agree */
#define BOUNDED_QUALITY 0.6 /* of min_quality: a path within bounds finds less in noise */
#define N_BESIDE (2 * MOST_BESIDE)

/* Memory of one thread. */
struct scratch {
    struct oct_trace *trace;
    float *memory;                                   /* of the rest: */
    float *least[OCT_N_LAYERS], *most[OCT_N_LAYERS]; /* [M] */
    struct oct_traced found;                         /* between bounds */
    float *values;                                   /* [N_LAYERS][M] for medians */
    uint8_t *line_valid;                             /* [M] */
};

struct finder {
    const struct oct_surfaces_setup *setup;
    const struct oct_volume_source *source;
    struct oct_surfaces *surfaces;
    const struct oct_surfaces *before; /* of the first pass, while the second runs */
    struct scratch *scratch;
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
        s->path[layer] = malloc(n * sizeof(float));
        s->quality[layer] = calloc(n, sizeof(float));
        failed = failed || !s->position[layer] || !s->path[layer] || !s->quality[layer];
        for (size_t i = 0; !failed && i < n; i++)
            s->position[layer][i] = s->path[layer][i] = NAN;
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
        free(s->path[layer]);
        free(s->quality[layer]);
    }
    free(s->shift_px);
    free(s->fate);
    *s = (struct oct_surfaces){0};
}

static enum oct_err scratch_init(struct scratch *scratch, const struct oct_surfaces_setup *setup,
                                 struct oct_error *err)
{
    struct oct_trace_setup trace = {
        .n_lines = setup->n_lines, .depth = setup->depth, .params = setup->trace};
    size_t m = setup->n_lines;

    enum oct_err e = oct_trace_create(&scratch->trace, &trace, err);
    if (e)
        return e;
    scratch->memory = malloc(6 * OCT_N_LAYERS * m * sizeof(float));
    scratch->line_valid = malloc(m);
    if (!scratch->memory || !scratch->line_valid)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the layers of %zu A-lines", m);
    scratch->values = scratch->memory;
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        float *rows = scratch->memory + (size_t)(OCT_N_LAYERS + 5 * layer) * m;
        scratch->least[layer] = rows;
        scratch->most[layer] = rows + m;
        scratch->found.position[layer] = rows + 2 * m;
        scratch->found.quality[layer] = rows + 3 * m;
        scratch->found.path[layer] = rows + 4 * m;
    }
    return OCT_OK;
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
        enum oct_err e = scratch_init(&f->scratch[i], f->setup, err);
        if (e)
            return e;
    }
    return OCT_OK;
}

static void finder_finish(struct finder *f)
{
    for (uint32_t i = 0; f->scratch && i < f->n_workers; i++) {
        oct_trace_destroy(f->scratch[i].trace);
        free(f->scratch[i].memory);
        free(f->scratch[i].line_valid);
    }
    for (uint32_t i = 0; f->pictures && i < f->n_batch; i++)
        oct_picture_finish(&f->pictures[i]);
    free(f->scratch);
    free(f->pictures);
}

/* ---- bounds ---- */

static bool is_aligned(const struct oct_surfaces *surfaces, uint32_t b)
{
    return surfaces->fate[b] == OCT_VOLUME_USED || surfaces->fate[b] == OCT_VOLUME_NEW;
}

/* The quality of a place that is trusted. */
static float trusted(const struct oct_surfaces_setup *setup)
{
    return TRUSTED * (float)setup->trace.min_quality;
}

static bool is_trusted(const struct oct_surfaces_setup *setup, const struct oct_surfaces *s,
                       int layer, size_t at)
{
    return !isnan(s->position[layer][at]) && s->quality[layer][at] >= trusted(setup);
}

/* How much deeper B-scan b lies than what `other` says with the shifts of both: the median over
 * their A-lines and layers. Without enough of them 0 where both are aligned, else NaN. */
static float offset_to(const struct oct_surfaces_setup *setup, const struct oct_surfaces *s,
                       uint32_t b, uint32_t other, float *values)
{
    uint32_t m = s->n_lines;
    float shift = (float)(s->shift_px[other] - s->shift_px[b]);
    size_t n = 0;

    for (int layer = 0; layer < OCT_N_LAYERS; layer++)
        for (uint32_t j = 0; j < m; j++) {
            size_t own = (size_t)b * m + j, its = (size_t)other * m + j;
            if (is_trusted(setup, s, layer, own) && is_trusted(setup, s, layer, its))
                values[n++] = s->position[layer][own] - s->position[layer][its] - shift;
        }
    if (n >= m / 2)
        return oct_trace_select(values, n, n / 2);
    return is_aligned(s, b) && is_aligned(s, other) ? 0 : NAN;
}

struct beside {
    uint32_t bscan;
    float shift; /* of its positions, into B-scan b's pixels */
};

/* The nearest B-scans on both sides that say something. */
static uint32_t find_beside(const struct oct_surfaces_setup *setup, const struct oct_surfaces *s,
                            uint32_t b, float *values, struct beside beside[N_BESIDE])
{
    double um = setup->bscan_um > 0 ? setup->bscan_um : setup->trace.line_um;
    uint32_t n = 0, reach = (uint32_t)fmin(fmax(REACH_UM / um, 1), s->n_bscans);
    uint32_t most = (uint32_t)fmin(fmax(NEAR_UM / um, 1), MOST_BESIDE);

    for (int side = -1; side <= 1; side += 2)
        for (uint32_t k = 1, found = 0; k <= reach && found < most; k++) {
            int64_t other = (int64_t)b + side * (int64_t)k;
            if (other < 0 || other >= s->n_bscans)
                break;
            float offset = offset_to(setup, s, b, (uint32_t)other, values);
            if (isnan(offset) || s->fate[other] == OCT_VOLUME_BLANK ||
                s->fate[other] == OCT_VOLUME_SKIPPED)
                continue;
            beside[n++] = (struct beside){(uint32_t)other,
                                          (float)(s->shift_px[other] - s->shift_px[b]) + offset};
            found++;
        }
    return n;
}

static bool bound_line(const struct oct_surfaces_setup *setup, const struct oct_surfaces *s,
                       int layer, uint32_t line, const struct beside *beside, uint32_t n_beside,
                       struct scratch *scratch)
{
    float values[3 * N_BESIDE];
    double depth_um = setup->trace.depth_um;
    int step = (int)fmax(1, LINE_STEP_UM / setup->trace.line_um);
    size_t n = 0;

    scratch->least[layer][line] = scratch->most[layer][line] = NAN;
    for (uint32_t k = 0; k < n_beside; k++)
        for (int side = -1; side <= 1; side++) {
            int64_t j = (int64_t)line + side * step;
            size_t at = (size_t)beside[k].bscan * s->n_lines + (size_t)j;
            if (j >= 0 && j < s->n_lines && is_trusted(setup, s, layer, at))
                values[n++] = s->position[layer][at] + beside[k].shift;
        }
    if (n < 3)
        return false;
    float low = oct_trace_select(values, n, n / 5);
    float high = oct_trace_select(values, n, n - 1 - n / 5);
    float middle = oct_trace_select(values, n, n / 2);
    float half = (float)(HALF_UM / depth_um) +
                 fminf(0.5F * (high - low), (float)(MOST_SPREAD_UM / depth_um));
    scratch->least[layer][line] = middle - half;
    scratch->most[layer][line] = middle + half;
    return true;
}

static bool find_bounds(const struct oct_surfaces_setup *setup, const struct oct_surfaces *surfaces,
                        uint32_t b, struct scratch *scratch)
{
    struct beside beside[N_BESIDE];
    uint32_t n = find_beside(setup, surfaces, b, scratch->values, beside), n_bounded = 0;

    for (int layer = 0; n && layer < OCT_N_LAYERS; layer++)
        for (uint32_t j = 0; j < surfaces->n_lines; j++)
            n_bounded += bound_line(setup, surfaces, layer, j, beside, n, scratch);
    return n_bounded > 0;
}

/* ---- both passes ---- */

/* A stretch of A-lines where the passes differ: what is found between bounds counts where nothing
 * else was found, or where all of it is trusted, or as sure as what was. Where a step is real, the
 * border is not to be seen between bounds, and the step stays. */
static void merge_stretch(const struct oct_surfaces_setup *setup, struct oct_surfaces *s, int layer,
                          size_t at, uint32_t first, uint32_t last, const struct scratch *scratch)
{
    const float *position = s->position[layer] + at, *quality = s->quality[layer] + at;
    float old = INFINITY, new = INFINITY;

    for (uint32_t j = first; j < last; j++) {
        old = isnan(position[j]) ? old : fminf(old, quality[j]);
        new = isnan(scratch->found.position[layer][j])
                  ? new
                  : fminf(new, scratch->found.quality[layer][j]);
    }
    if (isinf(new) || (!isinf(old) && new < fminf(AS_SURE * old, trusted(setup))))
        return;
    for (uint32_t j = first; j < last; j++)
        if (!isnan(scratch->found.position[layer][j])) {
            s->position[layer][at + j] = scratch->found.position[layer][j];
            s->path[layer][at + j] = scratch->found.path[layer][j];
            s->quality[layer][at + j] = scratch->found.quality[layer][j];
        }
}

static void merge(const struct oct_surfaces_setup *setup, struct oct_surfaces *surfaces, uint32_t b,
                  const struct scratch *scratch)
{
    const uint32_t m = surfaces->n_lines;
    const size_t at = (size_t)b * m;
    const float same = (float)fmax(SAME_UM / setup->trace.depth_um, 1);

    for (int layer = 0; layer < OCT_N_LAYERS; layer++)
        for (uint32_t j = 0, first = 0; j <= m; j++) {
            float old = j < m ? surfaces->position[layer][at + j] : NAN;
            float new = j < m ? scratch->found.position[layer][j] : NAN;
            if (isnan(old) != isnan(new) || fabsf(old - new) > same)
                continue;
            if (first < j)
                merge_stretch(setup, surfaces, layer, at, first, j, scratch);
            first = j + 1;
        }
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
    struct scratch *scratch = &f->scratch[worker];
    struct oct_picture *picture = &f->pictures[piece];
    struct oct_traced traced;

    if (is_skipped(f, f->first + piece))
        return;
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        size_t at = (size_t)(f->first + piece) * f->setup->n_lines;
        traced.position[layer] = f->surfaces->position[layer] + at;
        traced.quality[layer] = f->surfaces->quality[layer] + at;
        traced.path[layer] = f->surfaces->path[layer] + at;
    }
    oct_trace_run(scratch->trace, picture->pixels, valid_lines(picture, scratch->line_valid), NULL,
                  &traced);
}

/* A blink shows no layers, or shows them by itself. */
static void trace_second(void *context, unsigned piece, unsigned worker)
{
    struct finder *f = context;
    struct scratch *s = &f->scratch[worker];
    struct oct_picture *picture = &f->pictures[piece];
    const uint32_t b = f->first + piece;
    struct oct_trace_bounds bounds;

    if (is_skipped(f, b) || f->before->fate[b] == OCT_VOLUME_BLANK ||
        !find_bounds(f->setup, f->before, b, s))
        return;
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        bounds.least[layer] = s->least[layer];
        bounds.most[layer] = s->most[layer];
    }
    oct_trace_run(s->trace, picture->pixels, valid_lines(picture, s->line_valid), &bounds,
                  &s->found);
    merge(f->setup, f->surfaces, b, s);
}

static enum oct_err read_picture(void *context, uint32_t b, struct oct_picture *picture,
                                 struct oct_error *err)
{
    struct finder *f = context;
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
        f->done += n_pieces;
        if (f->source->progress)
            f->source->progress(f->source->context, f->done, f->all);
    }
    return OCT_OK;
}

/* ---- the volume ---- */

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
        .context = f, .n_bscans = s->n_bscans, .read = read_picture, .progress = show_aligned};
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
        s->shift_px[b] = !e && is_aligned(s, b) ? shifts[b].dx : 0;
    }
    free(shifts);
    f->done += f->source->n_bscans;
    return e == OCT_E_ARG ? OCT_OK : e;
}

/* The second pass looks at the layers of the first, whatever was done already. */
static enum oct_err second_pass(struct finder *f, struct oct_error *err)
{
    struct oct_surfaces copy, before = *f->surfaces;
    const size_t bytes = (size_t)before.n_bscans * before.n_lines * sizeof(float);
    enum oct_err e = surfaces_init(&copy, before.n_bscans, before.n_lines, err);

    if (e)
        return e;
    for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
        before.position[layer] = memcpy(copy.position[layer], before.position[layer], bytes);
        before.quality[layer] = memcpy(copy.quality[layer], before.quality[layer], bytes);
    }
    f->before = &before;
    for (uint32_t i = 0; i < f->n_workers; i++)
        f->scratch[i].trace->setup.params.min_quality *= BOUNDED_QUALITY;
    e = pass(f, trace_second, err);
    f->before = NULL;
    oct_surfaces_finish(&copy);
    return e;
}

void oct_surfaces_put_in_order(float *const position[OCT_N_LAYERS], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float least = -INFINITY;
        for (int layer = 0; layer < OCT_N_LAYERS; layer++) {
            if (!position[layer] || isnan(position[layer][i]))
                continue;
            least = position[layer][i] = fmaxf(position[layer][i], least);
        }
    }
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
    if (!(known.trace.depth_um > 0))
        known.trace.depth_um = OCT_TRACE_DEPTH_UM;
    if (!(known.trace.line_um > 0))
        known.trace.line_um = OCT_TRACE_LINE_UM;
    enum oct_err e = finder_init(&f, err);
    e = e ? e : surfaces_init(surfaces, source->n_bscans, setup->n_lines, err);
    for (uint32_t b = 0; !e && b < source->n_bscans; b++)
        surfaces->fate[b] = is_skipped(&f, b) ? OCT_VOLUME_SKIPPED : OCT_VOLUME_USED;
    e = e ? e : pass(&f, trace_first, err);
    if (!e && setup->align && source->n_bscans > 1)
        e = align(&f, err);
    if (!e && source->n_bscans > 1)
        e = second_pass(&f, err);
    if (e)
        oct_surfaces_finish(surfaces);
    else {
        /* Each border was merged from both passes by itself. */
        oct_surfaces_put_in_order(surfaces->position, (size_t)source->n_bscans * setup->n_lines);
        oct_surfaces_put_in_order(surfaces->path, (size_t)source->n_bscans * setup->n_lines);
        count_found(surfaces);
    }
    finder_finish(&f);
    return e;
}
