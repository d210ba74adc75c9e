/* The CPU engine: transforms in f32, everything else in double. */
#include "analysis/correlate/correlate.h"

#include "analysis/correlate/side.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A shift at which a variance is below this part of the whole picture's has no C. */
#define LEAST_VARIANCE 1e-9

/* Products of a field of f and one of g, as windows. */
enum product { VALUES, MASKS, F_SUMS, G_SUMS, F_SQUARES, G_SQUARES, N_PRODUCTS };
static const struct {
    enum oct_field_kind f, g;
} fields_of[N_PRODUCTS] = {
    [VALUES] = {OCT_FIELD_VALUES, OCT_FIELD_VALUES},
    [MASKS] = {OCT_FIELD_MASK, OCT_FIELD_MASK},
    [F_SUMS] = {OCT_FIELD_VALUES, OCT_FIELD_MASK},
    [G_SUMS] = {OCT_FIELD_MASK, OCT_FIELD_VALUES},
    [F_SQUARES] = {OCT_FIELD_SQUARES, OCT_FIELD_MASK},
    [G_SQUARES] = {OCT_FIELD_MASK, OCT_FIELD_SQUARES},
};

struct oct_correlator {
    struct oct_correlator_setup setup;
    struct oct_fft2 *fft;
    struct oct_side f, g;
    const struct oct_side *other; /* g, or f where it is correlated with itself */
    bool has_reference, g_masked;
    uint32_t width;                                /* of a window */
    size_t n_shifts;                               /* [2 max_dy + 1][width] */
    float *window[N_PRODUCTS];                     /* [n_shifts]; VALUES: the caller's c2d */
    struct oct_box_overlap *f_columns, *g_columns; /* [width] where the pictures meet at each dx */
    double *per_column;                            /* [width] 1 / columns that meet; NaN: none */
    double *g_strip[OCT_N_FIELDS]; /* [g_width + 1]; those of f are the fields' own */
    double *row[4];                /* [width] sums of a row of shifts; only for zncc */
    float *scratch;                /* a row */
    bool masked;                   /* this time */
};

static bool needs_field(const struct oct_correlator_setup *s, enum oct_field_kind kind)
{
    if (kind == OCT_FIELD_VALUES)
        return true;
    if (!s->masked || s->norm == OCT_CORRELATION_EQ1)
        return false;
    return kind == OCT_FIELD_MASK || s->norm == OCT_CORRELATION_ZNCC;
}

/* Levels of fields that are not zero, and the sums of zncc, need boxes. */
static unsigned boxes_of(const struct oct_correlator_setup *s)
{
    unsigned kinds = 0;
    if (s->norm == OCT_CORRELATION_ZNCC)
        kinds |= 1u << OCT_FIELD_VALUES | 1u << OCT_FIELD_SQUARES;
    else if (s->keep_mean)
        kinds |= 1u << OCT_FIELD_VALUES;
    if (needs_field(s, OCT_FIELD_MASK))
        kinds |= 1u << OCT_FIELD_MASK;
    return kinds;
}

/* ---- life ---- */

static bool allocate(struct oct_correlator *c)
{
    const uint32_t f_width = c->setup.width, g_width = c->setup.g_width;
    bool fits = true;
    c->width = 2 * c->setup.max_dx + 1;
    c->n_shifts = (2 * (size_t)c->setup.max_dy + 1) * c->width;
    c->f_columns = calloc(c->width, sizeof(*c->f_columns));
    c->g_columns = calloc(c->width, sizeof(*c->g_columns));
    c->per_column = calloc(c->width, sizeof(double));
    for (unsigned i = 0; i < 4 && c->setup.norm == OCT_CORRELATION_ZNCC; i++)
        fits = (c->row[i] = oct_aligned_calloc(64, c->width, sizeof(double))) && fits;
    c->scratch = oct_aligned_alloc(64, f_width > g_width ? f_width : g_width, sizeof(float));
    for (unsigned kind = 0; kind < OCT_N_FIELDS; kind++)
        fits = (c->g_strip[kind] = oct_aligned_calloc(64, (size_t)g_width + 1, sizeof(double))) &&
               fits;
    for (unsigned p = MASKS; p < N_PRODUCTS; p++)
        if (needs_field(&c->setup, fields_of[p].f) && needs_field(&c->setup, fields_of[p].g) &&
            (p == MASKS || c->setup.norm == OCT_CORRELATION_ZNCC))
            fits = (c->window[p] = oct_aligned_alloc(64, c->n_shifts, sizeof(float))) && fits;
    return fits && c->f_columns && c->g_columns && c->per_column && c->scratch;
}

static bool allocate_spectra(struct oct_correlator *c, struct oct_side *side)
{
    for (unsigned kind = 0; kind < OCT_N_FIELDS; kind++)
        if (needs_field(&c->setup, kind) &&
            !(side->field[kind].spectrum = oct_fft2_spectrum(c->fft)))
            return false;
    return true;
}

static void cpu_destroy(struct oct_correlator *c)
{
    if (!c)
        return;
    oct_fft2_destroy(c->fft);
    oct_side_finish(&c->f);
    oct_side_finish(&c->g);
    for (unsigned p = MASKS; p < N_PRODUCTS; p++)
        free(c->window[p]);
    for (unsigned kind = 0; kind < OCT_N_FIELDS; kind++)
        free(c->g_strip[kind]);
    for (unsigned i = 0; i < 4; i++)
        free(c->row[i]);
    free(c->f_columns);
    free(c->g_columns);
    free(c->per_column);
    free(c->scratch);
    free(c);
}

static enum oct_err start(struct oct_correlator *c, struct oct_error *err)
{
    const struct oct_correlator_setup *s = &c->setup;
    const struct oct_fft2_setup shape = {
        .height = s->height > s->g_height ? s->height : s->g_height,
        .width = s->width > s->g_width ? s->width : s->g_width,
        .max_dy = s->max_dy,
        .max_dx = s->max_dx,
    };
    const bool keep_mean = s->keep_mean && s->norm != OCT_CORRELATION_ZNCC;
    c->f = (struct oct_side){.height = s->height, .width = s->width, .keep_mean = keep_mean};
    c->g = (struct oct_side){.height = s->g_height, .width = s->g_width, .keep_mean = keep_mean};
    enum oct_err e = oct_fft2_create(&c->fft, &shape, err);
    e = e ? e : oct_side_init(&c->f, s->g_height, s->max_dy, boxes_of(s), err);
    e = e ? e : oct_side_init(&c->g, s->height, s->max_dy, boxes_of(s), err);
    if (!e && (!allocate(c) || (s->masked && !allocate_spectra(c, &c->f))))
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for shifts to %u x %u", s->max_dy,
                     s->max_dx);
    for (uint32_t x = 0; x < c->width && !e; x++) {
        const int64_t dx = (int64_t)x - s->max_dx;
        c->f_columns[x] = oct_box_overlap_at(s->width, s->g_width, dx);
        c->g_columns[x] = oct_box_overlap_at(s->g_width, s->width, -dx);
        const uint32_t n = c->f_columns[x].end - c->f_columns[x].first;
        c->per_column[x] = n > 0 ? 1.0 / n : (double)NAN;
    }
    return e;
}

static enum oct_err cpu_create(struct oct_correlator **correlator,
                               const struct oct_correlator_setup *setup, struct oct_error *err)
{
    *correlator = NULL;
    enum oct_err e = oct_correlator_check(setup, err);
    if (e)
        return e;
    struct oct_correlator *c = calloc(1, sizeof(*c));
    if (!c)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a correlation");
    c->setup = *setup;
    e = start(c, err);
    if (e)
        cpu_destroy(c);
    else
        *correlator = c;
    return e;
}

/* ---- transforms ---- */

static struct oct_field_rows rows_of(struct oct_correlator *c, struct oct_side *side,
                                     enum oct_field_kind kind)
{
    return (struct oct_field_rows){.side = side, .kind = kind, .scratch = c->scratch};
}

static void transform_fields(struct oct_correlator *c, struct oct_side *side)
{
    for (unsigned kind = 0; kind < OCT_N_FIELDS; kind++) {
        if (!side->field[kind].spectrum)
            continue;
        struct oct_field_rows rows = rows_of(c, side, kind);
        const struct oct_fft2_rows in = oct_side_rows(&rows);
        oct_fft2_forward(c->fft, &in, side->field[kind].spectrum);
    }
}

static enum oct_err cpu_set_reference(struct oct_correlator *c, const struct oct_picture *g,
                                      struct oct_error *err)
{
    if (!g) {
        c->has_reference = false;
        return OCT_OK;
    }
    enum oct_err e = oct_side_look(&c->g, g, err);
    if (e)
        return e;
    if (!c->g.field[OCT_FIELD_VALUES].spectrum && !allocate_spectra(c, &c->g))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the reference's spectrum");
    transform_fields(c, &c->g);
    c->g_masked = g->valid != NULL;
    c->has_reference = true;
    return OCT_OK;
}

/* Without masks: the sums of zncc are box sums, and there is one product. */
static void correlate_plain(struct oct_correlator *c)
{
    struct oct_field_rows rows = rows_of(c, &c->f, OCT_FIELD_VALUES);
    const struct oct_fft2_rows in = oct_side_rows(&rows);
    if (c->has_reference)
        oct_fft2_cross(c->fft, &in, c->g.field[OCT_FIELD_VALUES].spectrum, c->window[VALUES]);
    else
        oct_fft2_auto(c->fft, &in, c->window[VALUES]);
}

/* Of a picture with itself the sums over g are those over f at -d. */
static void correlate_masked(struct oct_correlator *c)
{
    transform_fields(c, &c->f);
    for (unsigned p = 0; p < N_PRODUCTS; p++) {
        const enum oct_field_kind f = fields_of[p].f, g = fields_of[p].g;
        const float *mirrored = p == G_SUMS || p == G_SQUARES ? c->window[p - 1] : NULL;
        if (!c->window[p])
            continue;
        if (c->has_reference)
            oct_fft2_product(c->fft, c->f.field[f].spectrum, c->g.field[g].spectrum, c->window[p]);
        else if (f == g)
            oct_fft2_power(c->fft, c->f.field[f].spectrum, c->window[p]);
        else if (!mirrored)
            oct_fft2_product(c->fft, c->f.field[f].spectrum, c->f.field[g].spectrum, c->window[p]);
        else
            for (size_t i = 0; i < c->n_shifts; i++)
                c->window[p][i] = mirrored[c->n_shifts - 1 - i];
    }
}

/* ---- from products to C ---- */

/* Sets the strips to the rows that meet at dy; returns how many these are. */
static uint32_t set_rows(struct oct_correlator *c, int64_t dy)
{
    const struct oct_box_overlap rows = oct_box_overlap_at(c->f.height, c->other->height, dy);
    const struct oct_box_overlap g_rows = oct_box_overlap_at(c->other->height, c->f.height, -dy);
    for (unsigned kind = 0; kind < OCT_N_FIELDS; kind++) {
        struct oct_field *f = &c->f.field[kind];
        if (!f->has_boxes || (kind == OCT_FIELD_MASK && !c->masked))
            continue;
        oct_boxes_strip(&f->boxes, rows, f->strip);
        oct_boxes_strip(&c->other->field[kind].boxes, g_rows, c->g_strip[kind]);
    }
    return rows.end - rows.first;
}

static double over(const double *strip, struct oct_box_overlap columns)
{
    return strip[columns.end] - strip[columns.first];
}

/* The sum of a product with the levels put back; i: the shift, x: its column. */
static double product_sum(const struct oct_correlator *c, enum product p, size_t i, uint32_t x,
                          double n)
{
    const enum oct_field_kind f = fields_of[p].f, g = fields_of[p].g;
    const double f_level = (double)c->f.field[f].level;
    const double g_level = (double)c->other->field[g].level;
    double sum = (double)c->window[p][i] + f_level * g_level * n;
    if (g_level != 0)
        sum += g_level * over(c->f.field[f].strip, c->f_columns[x]);
    if (f_level != 0)
        sum += f_level * over(c->g_strip[g], c->g_columns[x]);
    return sum;
}

static double count_at(const struct oct_correlator *c, size_t i, uint32_t x, double n)
{
    return c->masked ? round(product_sum(c, MASKS, i, x, n)) : n;
}

/* zncc of pictures with masks; rectangle: pixels that meet. */
static float zncc_at(const struct oct_correlator *c, size_t i, uint32_t x, double rectangle,
                     double least_n)
{
    const double n = count_at(c, i, x, rectangle);
    if (n < least_n || n < 1)
        return NAN;
    const double sf = product_sum(c, F_SUMS, i, x, rectangle);
    const double sg = product_sum(c, G_SUMS, i, x, rectangle);
    const double sff = product_sum(c, F_SQUARES, i, x, rectangle);
    const double sgg = product_sum(c, G_SQUARES, i, x, rectangle);
    const double f_variance = sff - sf * sf / n, g_variance = sgg - sg * sg / n;
    if (!(f_variance > LEAST_VARIANCE * c->f.squares) ||
        !(g_variance > LEAST_VARIANCE * c->other->squares))
        return NAN;
    return (float)((product_sum(c, VALUES, i, x, rectangle) - sf * sg / n) /
                   sqrt(f_variance * g_variance));
}

/* eq1 and overlap. */
static float product_at(const struct oct_correlator *c, size_t i, uint32_t x, double rectangle,
                        double divisor)
{
    const bool overlap = c->setup.norm == OCT_CORRELATION_OVERLAP;
    const double n = overlap ? count_at(c, i, x, rectangle) : 1;
    return n < 1 ? NAN : (float)(product_sum(c, VALUES, i, x, rectangle) / (n * divisor));
}

/* A shift at a time: where there are masks or levels. */
static void finish_shifts(struct oct_correlator *c,
                          float (*value_at)(const struct oct_correlator *c, size_t i, uint32_t x,
                                            double rectangle, double by),
                          double by, float *c2d)
{
    for (size_t i = 0; i < c->n_shifts; i += c->width) {
        const uint32_t n_rows = set_rows(c, (int64_t)(i / c->width) - c->setup.max_dy);
        for (uint32_t x = 0; x < c->width; x++) {
            const double n = (double)n_rows * (c->f_columns[x].end - c->f_columns[x].first);
            c2d[i + x] = value_at(c, i + x, x, n, by);
        }
    }
}

/* The largest N of the window. */
static double most_count(struct oct_correlator *c)
{
    double most = 0;
    if (!c->masked) /* at shift 0, which every window has */
        return fmin(c->f.height, c->other->height) * fmin(c->f.width, c->other->width);
    for (size_t i = 0; i < c->n_shifts; i += c->width) {
        const uint32_t n_rows = set_rows(c, (int64_t)(i / c->width) - c->setup.max_dy);
        for (uint32_t x = 0; x < c->width; x++) {
            const double n = (double)n_rows * (c->f_columns[x].end - c->f_columns[x].first);
            most = fmax(most, count_at(c, i + x, x, n));
        }
    }
    return most;
}

/* Without masks: the sums over the columns that meet at each dx. */
static void sum_columns(const double *strip, const struct oct_box_overlap *columns, uint32_t n,
                        double *restrict sums)
{
    for (uint32_t x = 0; x < n; x++)
        sums[x] = strip[columns[x].end] - strip[columns[x].first];
}

/* What a row of shifts has in common. */
struct zncc_row {
    const double *f, *g, *ff, *gg; /* sums; of the squares less their levels */
    const double *per_column;      /* 1 / columns that meet; NaN: none */
    double n_rows, least_n;
    double ff_level, gg_level, ff_least, gg_least;
};

OCT_WIDE static void finish_zncc_row(const struct zncc_row *row, uint32_t width,
                                     float *restrict c2d)
{
    const struct zncc_row r = *row;
    const double per_row = 1 / r.n_rows;
    for (uint32_t x = 0; x < width; x++) {
        const double per_n = per_row * r.per_column[x], n = 1 / per_n;
        const double ff = r.ff[x] + r.ff_level * n - r.f[x] * r.f[x] * per_n;
        const double gg = r.gg[x] + r.gg_level * n - r.g[x] * r.g[x] * per_n;
        const double score = ((double)c2d[x] - r.f[x] * r.g[x] * per_n) / sqrt(ff * gg);
        const bool is_defined = (n >= r.least_n) & (ff > r.ff_least) & (gg > r.gg_least);
        c2d[x] = is_defined ? (float)score : NAN;
    }
}

static void finish_zncc(struct oct_correlator *c, float *c2d)
{
    /* 1 / (1 / n) is n except for rounding. */
    const double least_n = fmax(1, c->setup.min_overlap * most_count(c)) - 1e-3;
    struct zncc_row row = {
        .f = c->row[0],
        .g = c->row[1],
        .ff = c->row[2],
        .gg = c->row[3],
        .per_column = c->per_column,
        .least_n = least_n,
        .ff_level = (double)c->f.field[OCT_FIELD_SQUARES].level,
        .gg_level = (double)c->other->field[OCT_FIELD_SQUARES].level,
        .ff_least = LEAST_VARIANCE * c->f.squares,
        .gg_least = LEAST_VARIANCE * c->other->squares,
    };
    /* Of a picture with itself C(-d) = C(d). */
    const size_t first = c->other == &c->f ? c->setup.max_dy * (size_t)c->width : 0;
    for (size_t i = first; i < c->n_shifts; i += c->width) {
        row.n_rows = set_rows(c, (int64_t)(i / c->width) - c->setup.max_dy);
        sum_columns(c->f.field[OCT_FIELD_VALUES].strip, c->f_columns, c->width, c->row[0]);
        sum_columns(c->g_strip[OCT_FIELD_VALUES], c->g_columns, c->width, c->row[1]);
        sum_columns(c->f.field[OCT_FIELD_SQUARES].strip, c->f_columns, c->width, c->row[2]);
        sum_columns(c->g_strip[OCT_FIELD_SQUARES], c->g_columns, c->width, c->row[3]);
        finish_zncc_row(&row, c->width, c2d + i);
    }
    for (size_t i = 0; i < first; i++)
        c2d[i] = c2d[c->n_shifts - 1 - i];
}

/* eq1 and overlap where no level is put back and N is a product of two triangles. */
static void scale_products(struct oct_correlator *c, double divisor, float *c2d)
{
    const bool overlap = c->setup.norm == OCT_CORRELATION_OVERLAP;
    for (size_t i = 0; i < c->n_shifts; i += c->width) {
        const int64_t dy = (int64_t)(i / c->width) - c->setup.max_dy;
        const struct oct_box_overlap rows = oct_box_overlap_at(c->f.height, c->other->height, dy);
        const double n_rows = overlap ? (double)(rows.end - rows.first) : 1;
        const double row = n_rows > 0 ? 1 / (n_rows * divisor) : (double)NAN;
        for (uint32_t x = 0; x < c->width; x++)
            c2d[i + x] = (float)((double)c2d[i + x] * row * (overlap ? c->per_column[x] : 1));
    }
}

static void finish_product(struct oct_correlator *c, float *c2d)
{
    double divisor = sqrt(c->f.squares) * sqrt(c->other->squares);
    if (c->setup.norm == OCT_CORRELATION_OVERLAP)
        divisor /= sqrt((double)c->f.n_valid) * sqrt((double)c->other->n_valid);
    if (c->masked || c->setup.keep_mean)
        finish_shifts(c, product_at, divisor, c2d);
    else
        scale_products(c, divisor, c2d);
}

static enum oct_err run_one(struct oct_correlator *c, const struct oct_picture *f, float *c2d,
                            struct oct_error *err)
{
    enum oct_err e = oct_side_look(&c->f, f, err);
    if (e)
        return e;
    c->other = c->has_reference ? &c->g : &c->f;
    c->masked =
        needs_field(&c->setup, OCT_FIELD_MASK) && (f->valid || (c->has_reference && c->g_masked));
    c->window[VALUES] = c2d;
    if (c->masked)
        correlate_masked(c);
    else
        correlate_plain(c);
    if (c->setup.norm == OCT_CORRELATION_ZNCC && c->masked)
        finish_shifts(c, zncc_at, c->setup.min_overlap * most_count(c), c2d);
    else if (c->setup.norm == OCT_CORRELATION_ZNCC)
        finish_zncc(c, c2d);
    else
        finish_product(c, c2d);
    c->window[VALUES] = NULL;
    return OCT_OK;
}

static enum oct_err cpu_run(struct oct_correlator *c, const struct oct_picture *f, unsigned n,
                            float *c2d, unsigned *which, struct oct_error *err)
{
    for (unsigned i = 0; i < n; i++) {
        enum oct_err e = run_one(c, &f[i], c2d + i * c->n_shifts, err);
        if (e) {
            *which = i;
            return e;
        }
    }
    return OCT_OK;
}

const struct oct_correlator_ops oct_correlator_cpu = {
    .name = "cpu",
    .create = cpu_create,
    .set_reference = cpu_set_reference,
    .run = cpu_run,
    .destroy = cpu_destroy,
};
