#include "analysis/enface/gridded.h"

#include "analysis/enface/enface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define N_TAPS 12u /* A-lines of a pixel */
#define WIDTH 0.6  /* of the Gaussian, of the farthest one's distance */
#define MOST_WEIGHT 2.0
#define REACH 2.0 /* pitches, of a file's A-lines */
#define NO_ROW UINT32_MAX

struct tap {
    uint32_t line; /* of all rows */
    float weight;
};

struct oct_grid {
    uint32_t n_rows, n_lines, height, width;
    double pitch_um, first_um[2]; /* of the middle of pixel (0, 0): x, y */
    struct tap *taps;             /* [H * W][N_TAPS]; weight 0: none */
};

/* Of a star: the row of each spoke, and how many spokes may be missing between two rows. */
struct spokes {
    uint32_t n, most_between;
    uint32_t *row; /* [n], NO_ROW: none */
};

/* The A-lines, and in which cell of one pitch each lies. */
struct cells {
    double (*um)[2]; /* [n] */
    uint32_t *next;  /* [n] the next in the same cell, + 1; 0: none */
    uint32_t *first; /* [H * W] + 1; 0: none */
};

bool oct_gridded_is_wanted(const struct oct_scan *scan, const struct oct_image_form *form)
{
    return !oct_scan_has_rows(scan) && form->of_volume && form->type == OCT_SAMPLE_F32 &&
           form->rank == 2 && strcmp(form->axes[1], "line") == 0 &&
           (strcmp(form->axes[0], "bscan") == 0 || strcmp(form->axes[0], "place") == 0);
}

/* ---- where the A-lines lie ---- */

static uint32_t at_least_1(uint32_t n)
{
    return n ? n : 1;
}

/* Repeats of what a row stands for: a place or a B-scan. */
static uint32_t repeats_of_row(const struct oct_scan *scan, const struct oct_image_form *form)
{
    return strcmp(form->axes[0], "place") == 0 ? at_least_1(scan->protocol.repeats) : 1;
}

/* The B-scan that stands in a row: of several the newest, of a place the first. */
static uint32_t bscan_of_row(const struct oct_scan *scan, uint32_t n_bscans,
                             const struct oct_image_form *form, uint32_t row)
{
    const uint32_t repeats = repeats_of_row(scan, form), n = n_bscans / repeats;
    const uint32_t end = (row + 1) * oct_enface_row_step(n, scan->n_lines);
    const uint32_t at = (end < n ? end : n) - 1;
    return repeats > 1 ? oct_scan_bscan(scan, at) : at;
}

static void lay_out(struct oct_grid *g, const struct oct_scan_box *box)
{
    const double *low = box->low, *high = box->high;
    const double w = high[0] - low[0], h = high[1] - low[1];
    const double n = (double)g->n_rows * g->n_lines;
    const double least =
        fmax(w, h) / (n > OCT_ENFACE_MOST_VALUES / 4 ? OCT_ENFACE_MOST_VALUES / 4 : n);
    g->pitch_um = fmax(sqrt(w * h / n), least);
    g->width = (uint32_t)ceil(w / g->pitch_um) + 1;
    g->height = (uint32_t)ceil(h / g->pitch_um) + 1;
    g->first_um[0] = (low[0] + high[0] - (g->width - 1) * g->pitch_um) / 2;
    g->first_um[1] = (low[1] + high[1] - (g->height - 1) * g->pitch_um) / 2;
}

void oct_grid_position(const struct oct_grid *g, double y, double x, double um[2])
{
    um[0] = g->first_um[0] + x * g->pitch_um;
    um[1] = g->first_um[1] + y * g->pitch_um;
}

/* ---- the A-lines of a pixel ---- */

static long cell_of(const struct oct_grid *g, const double um[2], int axis)
{
    return lround((um[axis] - g->first_um[axis]) / g->pitch_um);
}

static bool fill_cells(struct cells *c, const struct oct_grid *g, size_t n)
{
    c->next = calloc(n, sizeof(*c->next));
    c->first = calloc((size_t)g->height * g->width, sizeof(*c->first));
    if (!c->next || !c->first)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(c->um[i][0] + c->um[i][1]))
            continue;
        const size_t cell =
            (size_t)cell_of(g, c->um[i], 1) * g->width + (size_t)cell_of(g, c->um[i], 0);
        c->next[i] = c->first[cell];
        c->first[cell] = (uint32_t)i + 1;
    }
    return true;
}

struct near {
    unsigned n;
    uint32_t line[N_TAPS];
    double d2[N_TAPS]; /* rising */
};

static void note_near(struct near *near, uint32_t line, double d2)
{
    unsigned i = near->n < N_TAPS ? near->n++ : N_TAPS;
    if (i == N_TAPS && d2 >= near->d2[N_TAPS - 1])
        return;
    i = i == N_TAPS ? N_TAPS - 1 : i;
    for (; i > 0 && near->d2[i - 1] > d2; i--) {
        near->d2[i] = near->d2[i - 1];
        near->line[i] = near->line[i - 1];
    }
    near->d2[i] = d2;
    near->line[i] = line;
}

static void look_in_cell(struct near *near, const struct cells *c, const struct oct_grid *g, long y,
                         long x, const double um[2])
{
    if (y < 0 || x < 0 || y >= g->height || x >= g->width)
        return;
    for (uint32_t i = c->first[(size_t)y * g->width + (size_t)x]; i; i = c->next[i - 1]) {
        const double dx = c->um[i - 1][0] - um[0], dy = c->um[i - 1][1] - um[1];
        note_near(near, i - 1, dx * dx + dy * dy);
    }
}

/* Rings of cells around the pixel, until no farther one can have a nearer line, or none was within
 * reach. */
static void find_near(struct near *near, const struct cells *c, const struct oct_grid *g, long y,
                      long x, const double um[2], double reach)
{
    const long most = g->height > g->width ? g->height : g->width;
    *near = (struct near){0};
    for (long ring = 0; ring <= most; ring++) {
        const double least = ((double)ring - 0.5) * g->pitch_um;
        if (near->n == N_TAPS && ring > 0 && least * least > near->d2[N_TAPS - 1])
            return;
        if (near->n == 0 && least > reach)
            return;
        for (long i = -ring; i <= ring; i++) {
            look_in_cell(near, c, g, y - ring, x + i, um);
            if (ring > 0)
                look_in_cell(near, c, g, y + ring, x + i, um);
        }
        for (long i = 1 - ring; i < ring; i++) {
            look_in_cell(near, c, g, y + i, x - ring, um);
            look_in_cell(near, c, g, y + i, x + ring, um);
        }
    }
}

/* The multipliers a of g (a0 + a1 dx + a2 dy), so that the weights add up to 1 and their moments to
 * 0; false: the A-lines lie on a line. m: 1, x, y, xx, xy, yy weighted by g. */
static bool solve_plane(const double m[6], double a[3])
{
    const double c0 = m[3] * m[5] - m[4] * m[4], c1 = m[2] * m[4] - m[1] * m[5];
    const double c2 = m[1] * m[4] - m[2] * m[3];
    const double det = m[0] * c0 + m[1] * c1 + m[2] * c2;
    if (!(c0 > 1e-3 * m[3] * m[5]) || !(det > 1e-3 * m[0] * c0))
        return false;
    a[0] = c0 / det;
    a[1] = c1 / det;
    a[2] = c2 / det;
    return true;
}

static void weigh(struct tap *taps, const struct near *near, const struct cells *c,
                  const double um[2])
{
    double m[6] = {0}, g[N_TAPS] = {0}, a[3], most = 0;
    const double width2 = fmax(WIDTH * WIDTH * near->d2[near->n - 1], 1e-30);
    for (unsigned i = 0; i < near->n; i++) {
        const double dx = c->um[near->line[i]][0] - um[0], dy = c->um[near->line[i]][1] - um[1];
        const double moments[6] = {1, dx, dy, dx * dx, dx * dy, dy * dy};
        g[i] = exp(-near->d2[i] / width2);
        for (int k = 0; k < 6; k++)
            m[k] += g[i] * moments[k];
    }
    const bool is_plane = solve_plane(m, a);
    for (unsigned i = 0; i < near->n; i++) {
        const double dx = c->um[near->line[i]][0] - um[0], dy = c->um[near->line[i]][1] - um[1];
        const double w = is_plane ? g[i] * (a[0] + a[1] * dx + a[2] * dy) : g[i] / m[0];
        taps[i] = (struct tap){near->line[i], (float)w};
        most = fabs(w) <= most ? most : fabs(w);
    }
    for (unsigned i = 0; !(most < MOST_WEIGHT) && i < near->n;
         i++) /* beyond the edge a plane runs away */
        taps[i].weight = (float)(g[i] / m[0]);
}

static bool find_spokes(struct spokes *spokes, const struct oct_scan *scan, uint32_t n_bscans,
                        const struct oct_image_form *form)
{
    const uint32_t n = n_bscans / repeats_of_row(scan, form);
    spokes->n = oct_scan_n_places(scan);
    spokes->most_between = oct_enface_row_step(n, scan->n_lines);
    spokes->row = malloc(spokes->n * sizeof(*spokes->row));
    for (uint32_t i = 0; spokes->row && i < spokes->n; i++)
        spokes->row[i] = NO_ROW;
    for (uint32_t row = 0; spokes->row && row < form->dims[0]; row++)
        spokes->row[oct_scan_place(scan, bscan_of_row(scan, n_bscans, form, row))] = row;
    return spokes->row;
}

/* The nearest spoke with a row, from this one on, up or down; NO_ROW: it is too far. */
static uint32_t find_spoke(const struct spokes *spokes, uint32_t from, bool up)
{
    const uint32_t n = 2 * spokes->n;
    for (uint32_t i = 0; i < spokes->most_between && i < n; i++) {
        const uint32_t spoke = up ? (from + i) % n : (from + n - i) % n;
        if (spokes->row[spoke % spokes->n] != NO_ROW)
            return spoke;
    }
    return NO_ROW;
}

/* Two A-lines of a spoke. */
static void weigh_spoke(const struct oct_grid *g, const struct spokes *spokes, struct tap *taps,
                        uint32_t spoke, double radius, double weight)
{
    const double along = spoke >= spokes->n ? -radius : radius;
    const double column = fmin(fmax((g->n_lines - 1) / 2.0 + along, 0), g->n_lines - 1);
    const double low = fmin(floor(column), g->n_lines > 1 ? g->n_lines - 2 : 0);
    const uint32_t line = spokes->row[spoke % spokes->n] * g->n_lines + (uint32_t)low;
    taps[0] = (struct tap){line, (float)((1 - (column - low)) * weight)};
    taps[1] = (struct tap){line + (g->n_lines > 1), (float)((column - low) * weight)};
}

/* Between neighbouring spokes and A-lines. Spoke and spoke + n are one, the other way round. */
static void weigh_star(const struct oct_grid *g, const struct oct_scan *scan,
                       const struct spokes *spokes, struct tap *taps, const double um[2])
{
    const double x = um[0] - scan->centre_um[0], y = um[1] - scan->centre_um[1];
    const double turned = atan2(y, x) - scan->angle_deg * PI / 180, n = 2.0 * spokes->n;
    const double spoke = fmax(turned / (2 * PI) * n - floor(turned / (2 * PI)) * n, 0);
    const uint32_t at = (uint32_t)spoke % (2 * spokes->n);
    const uint32_t low = find_spoke(spokes, at, false);
    const uint32_t high = find_spoke(spokes, (at + 1) % (2 * spokes->n), true);
    if (low == NO_ROW && high == NO_ROW)
        return;
    const double radius = hypot(x, y) * g->n_lines / scan->width_um;
    const double above = fmod(spoke - low + n, n), gap = fmod(high - (double)low + n, n);
    const double of_high = low == NO_ROW ? 1 : high == NO_ROW ? 0 : gap > 0 ? above / gap : 0;
    if (low != NO_ROW)
        weigh_spoke(g, spokes, taps, low, radius, 1 - of_high);
    if (high != NO_ROW)
        weigh_spoke(g, spokes, taps + 2, high, radius, of_high);
}

static bool is_outside(const struct oct_grid *g, const struct oct_scan *scan, const double um[2])
{
    const double r = hypot(um[0] - scan->centre_um[0], um[1] - scan->centre_um[1]);
    return (scan->pattern == OCT_SCAN_RADIAL || scan->pattern == OCT_SCAN_SPIRAL) &&
           r > (scan->width_um + g->pitch_um) / 2;
}

static void fill_taps(struct oct_grid *g, const struct oct_scan *scan, const struct spokes *spokes,
                      const struct cells *c)
{
    const double reach = scan->pattern == OCT_SCAN_FILE ? REACH * g->pitch_um : INFINITY;
    for (uint32_t y = 0; y < g->height; y++)
        for (uint32_t x = 0; x < g->width; x++) {
            double um[2];
            struct near near;
            struct tap *taps = g->taps + ((size_t)y * g->width + x) * N_TAPS;
            oct_grid_position(g, y, x, um);
            if (is_outside(g, scan, um))
                continue;
            if (scan->pattern == OCT_SCAN_RADIAL) {
                weigh_star(g, scan, spokes, taps, um);
                continue;
            }
            find_near(&near, c, g, y, x, um, reach);
            if (near.n > 0 && near.d2[0] <= reach * reach)
                weigh(taps, &near, c, um);
        }
}

/* ---- the grid ---- */

enum oct_err oct_grid_create(struct oct_grid **out, const struct oct_scan *scan, uint32_t n_bscans,
                             const struct oct_image_form *form, struct oct_error *err)
{
    struct oct_grid *g = calloc(1, sizeof(*g));
    const size_t n = (size_t)form->dims[0] * form->dims[1];
    struct cells c = {.um = malloc(n * sizeof(*c.um))};
    struct spokes spokes = {0};
    struct oct_scan_box box = OCT_SCAN_NO_BOX;
    enum oct_err e = OCT_E_NO_MEMORY;
    *out = NULL;
    if (!g || !c.um)
        goto end;
    g->n_rows = form->dims[0];
    g->n_lines = form->dims[1];
    for (size_t i = 0; i < n; i++) {
        oct_scan_position(scan, bscan_of_row(scan, n_bscans, form, (uint32_t)(i / g->n_lines)),
                          (uint32_t)(i % g->n_lines), c.um[i]);
        oct_scan_box_grow(&box, c.um[i]);
    }
    e = box.high[0] > box.low[0] || box.high[1] > box.low[1] ? OCT_OK : OCT_E_CONFIG;
    if (e)
        goto end;
    lay_out(g, &box);
    g->taps = calloc((size_t)g->height * g->width * N_TAPS, sizeof(*g->taps));
    e = g->taps && fill_cells(&c, g, n) && find_spokes(&spokes, scan, n_bscans, form)
            ? OCT_OK
            : OCT_E_NO_MEMORY;
    if (!e)
        fill_taps(g, scan, &spokes, &c);
end:
    free(spokes.row);
    free(c.um);
    free(c.next);
    free(c.first);
    *out = e ? NULL : g;
    if (e)
        oct_grid_destroy(g);
    return e == OCT_E_CONFIG ? oct_fail_key(err, e, "scan.positions",
                                            "scan.positions: no A-line has a place of its own")
           : e               ? oct_fail(err, e, "out of memory for the grid of a scan")
                             : e;
}

void oct_grid_destroy(struct oct_grid *g)
{
    if (g)
        free(g->taps);
    free(g);
}

void oct_grid_size(const struct oct_grid *g, uint32_t *height, uint32_t *width, double *pitch_um)
{
    *height = g->height;
    *width = g->width;
    *pitch_um = g->pitch_um;
}

void oct_grid_apply(const struct oct_grid *g, const float *values, float *out)
{
    const size_t n = (size_t)g->height * g->width;
    for (size_t i = 0; i < n; i++) {
        float sum = 0, weight = 0;
        for (unsigned k = 0; k < N_TAPS; k++) {
            const struct tap *tap = &g->taps[i * N_TAPS + k];
            const float value = values[tap->line];
            if (tap->weight != 0 && isfinite(value)) {
                sum += tap->weight * value;
                weight += tap->weight;
            }
        }
        out[i] = weight > 0.5F ? sum / weight : NAN;
    }
}

/* ---- an analysis in it ---- */

/* One stands around another, and has its state and what it fills. */
struct oct_analysis {
    struct oct_analysis *inner;
    const struct oct_stage_ops *ops;
    struct oct_image_form form; /* the inner one's */
    struct oct_grid *grid;
    float *values; /* [rows][M] */
};

static enum oct_err gridded_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                                 struct oct_error *err)
{
    return a->ops->push(a->inner, bscan, err);
}

static enum oct_err gridded_take(struct oct_analysis *a, struct oct_image_frame *result,
                                 struct oct_error *err)
{
    struct oct_image_frame inner = *result;
    inner.form = &a->form;
    inner.pixels = a->values;
    memcpy(inner.dims, a->form.dims, sizeof(inner.dims));
    const enum oct_err e = a->ops->take(a->inner, &inner, err);
    if (e)
        return e;
    const size_t n = (size_t)a->form.dims[0] * a->form.dims[1];
    for (size_t i = (size_t)inner.dims[0] * inner.dims[1]; i < n; i++)
        a->values[i] = NAN;
    oct_grid_apply(a->grid, a->values, result->pixels);
    result->info = inner.info;
    result->whole = inner.whole;
    result->lo = inner.lo;
    result->hi = inner.hi;
    memcpy(result->numbers, inner.numbers, sizeof(result->numbers));
    return OCT_OK;
}

static void gridded_end(struct oct_analysis *a)
{
    if (a->ops->end)
        a->ops->end(a->inner);
}

static void gridded_reset(struct oct_analysis *a)
{
    a->ops->reset(a->inner);
}

static enum oct_err gridded_configure(struct oct_analysis *a, const void *settings,
                                      struct oct_error *err)
{
    return a->ops->configure ? a->ops->configure(a->inner, settings, err) : OCT_OK;
}

static bool gridded_is_at_rest(const struct oct_analysis *a)
{
    return a->ops->is_at_rest && a->ops->is_at_rest(a->inner);
}

static const char *gridded_running(const struct oct_analysis *a)
{
    return a->ops->running ? a->ops->running(a->inner) : "cpu";
}

static void gridded_destroy(struct oct_analysis *a)
{
    if (!a)
        return;
    a->ops->destroy(a->inner);
    oct_grid_destroy(a->grid);
    free(a->values);
    free(a);
}

static const struct oct_stage_ops gridded_ops = {
    .push = gridded_push,
    .take = gridded_take,
    .end = gridded_end,
    .reset = gridded_reset,
    .configure = gridded_configure,
    .is_at_rest = gridded_is_at_rest,
    .running = gridded_running,
    .destroy = gridded_destroy,
};

enum oct_err oct_gridded_create(struct oct_analysis **analysis, const struct oct_stage_ops **ops,
                                const struct oct_scan *scan, uint32_t n_bscans,
                                struct oct_image_form *form, struct oct_error *err)
{
    struct oct_analysis *a = calloc(1, sizeof(*a));
    float *values = malloc((size_t)form->dims[0] * form->dims[1] * sizeof(*values));
    struct oct_grid *grid = NULL;
    enum oct_err e = a && values ? oct_grid_create(&grid, scan, n_bscans, form, err)
                                 : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the grid");
    if (e) {
        (*ops)->destroy(*analysis);
        *analysis = NULL;
        free(a);
        free(values);
        return e;
    }
    *a = (struct oct_analysis){
        .inner = *analysis, .ops = *ops, .form = *form, .grid = grid, .values = values};
    *analysis = a;
    *ops = &gridded_ops;
    oct_grid_size(grid, &form->dims[0], &form->dims[1], &form->spacing_um[0]);
    form->spacing_um[1] = form->spacing_um[0];
    form->axes[0] = "y";
    form->axes[1] = "x";
    return OCT_OK;
}
