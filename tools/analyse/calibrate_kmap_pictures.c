/* The pictures of octctl calibrate kmap. */
#include "plot/plot.h"
#include "tools/analyse/calibrate_kmap_report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_SHOWN 8u    /* mirrors in one picture */
#define SEEN_WEIGHT 0.03 /* of the mean weight */
#define PEAK_REACH_PX 25
#define PEAK_STEPS (2 * PEAK_REACH_PX + 1)
#define LEAST_DB (-60.0)

/* Lines over one axis: n values each, of x, and of up to MOST_SHOWN mirrors, twice. */
struct sheet {
    size_t n;
    double *x;
    double *rows[2 * MOST_SHOWN];
    char labels[2 * MOST_SHOWN][48];
    struct oct_plot_series series[2 * MOST_SHOWN];
    unsigned n_series;
};

static enum oct_err sheet_init(struct sheet *s, size_t n, struct oct_error *err)
{
    s->n = n;
    s->n_series = 0;
    s->x = calloc((2 * MOST_SHOWN + 1) * n, sizeof(double));
    if (!s->x)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a picture");
    for (unsigned i = 0; i < 2 * MOST_SHOWN; i++)
        s->rows[i] = s->x + (i + 1) * n;
    for (size_t i = 0; i < n; i++)
        s->x[i] = (double)i;
    return OCT_OK;
}

/* The next series, to be filled; its label is printf-like. */
static double *add(struct sheet *s, enum oct_plot_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static double *add(struct sheet *s, enum oct_plot_style style, const char *format, ...)
{
    const unsigned i = s->n_series++;
    va_list args;
    va_start(args, format);
    vsnprintf(s->labels[i], sizeof(s->labels[i]), format, args);
    va_end(args);
    s->series[i] = (struct oct_plot_series){s->x, s->rows[i], s->n, s->labels[i], style};
    return s->rows[i];
}

static enum oct_err draw(struct sheet *s, const char *path, bool force, const char *title,
                         const char *x_label, const char *y_label, struct oct_error *err)
{
    const struct oct_plot_lines plot = {.title = title,
                                        .x_label = x_label,
                                        .y_label = y_label,
                                        .series = s->series,
                                        .n_series = s->n_series};
    const enum oct_err e = oct_plot_write_lines(path, force, &plot, err);
    free(s->x);
    return e;
}

static uint32_t n_shown(const struct oct_kmap_run *run)
{
    return run->n < MOST_SHOWN ? run->n : MOST_SHOWN;
}

enum oct_err oct_kmap_draw_spectrum(void *context, const char *path, bool force,
                                    struct oct_error *err)
{
    const struct oct_kmap_report *report = context;
    const struct oct_kmap_run *run = report->run;
    const struct oct_fringe *f = &run->fringes[report->mirror];
    struct sheet s;
    char title[160];
    enum oct_err e = sheet_init(&s, f->n_samples, err);
    if (e)
        return e;
    double *first = add(&s, OCT_PLOT_LINE, "one A-line"),
           *source = add(&s, OCT_PLOT_LINE, "source");
    double *above = add(&s, OCT_PLOT_DASHES, "source + envelope");
    double *below = add(&s, OCT_PLOT_DASHES, "source - envelope");
    for (size_t i = 0; i < s.n; i++) {
        first[i] = run->files[report->mirror].lines[i] - (f->background[i] - f->source[i]);
        source[i] = f->source[i];
        above[i] = f->source[i] + f->envelope[i];
        below[i] = f->source[i] - f->envelope[i];
    }
    snprintf(title, sizeof(title), "mirror %u: %.80s", report->mirror + 1,
             oct_kmap_file_name(run->paths[report->mirror]));
    return draw(&s, path, force, title, "camera sample", "counts", err);
}

/* y less its weighted straight line over x; NaN without weight. */
static void straighten(const double *x, const double *y, const double *weight, size_t n,
                       double *out)
{
    double sums[5] = {0};
    for (size_t i = 0; i < n; i++) {
        sums[0] += weight[i];
        sums[1] += weight[i] * x[i];
        sums[2] += weight[i] * y[i];
        sums[3] += weight[i] * x[i] * x[i];
        sums[4] += weight[i] * x[i] * y[i];
    }
    const double slope =
        (sums[0] * sums[4] - sums[1] * sums[2]) / (sums[0] * sums[3] - sums[1] * sums[1]);
    for (size_t i = 0; i < n; i++)
        out[i] =
            weight[i] > 0 ? y[i] - sums[2] / sums[0] - slope * (x[i] - sums[1] / sums[0]) : NAN;
}

enum oct_err oct_kmap_draw_phases(void *context, const char *path, bool force,
                                  struct oct_error *err)
{
    const struct oct_kmap_run *run = ((const struct oct_kmap_report *)context)->run;
    struct sheet s;
    enum oct_err e = sheet_init(&s, run->geometry.n_samples, err);
    if (e)
        return e;
    for (uint32_t m = 0; m < n_shown(run); m++)
        straighten(
            s.x, run->fringes[m].phase, run->fringes[m].weight, s.n,
            add(&s, OCT_PLOT_LINE, "mirror %u, %.0f px", m + 1, run->files[m].peak.depth_px));
    return draw(&s, path, force, "phase of each fringe, less a straight line", "camera sample",
                "rad", err);
}

/* phase less model, from the first sample to the last where the source has a hundredth of its
 * power or so. */
static void fill_residual(const struct oct_fringe *f, double *row)
{
    uint32_t first = f->n_samples, last = 0;
    for (uint32_t i = 0; i < f->n_samples; i++)
        if (f->weight[i] * f->n_samples > SEEN_WEIGHT) {
            first = i < first ? i : first;
            last = i;
        }
    for (uint32_t i = 0; i < f->n_samples; i++)
        row[i] = i >= first && i <= last ? f->phase[i] - row[i] : NAN;
}

enum oct_err oct_kmap_draw_residuals(void *context, const char *path, bool force,
                                     struct oct_error *err)
{
    const struct oct_kmap_run *run = ((const struct oct_kmap_report *)context)->run;
    struct sheet s;
    enum oct_err e = sheet_init(&s, run->geometry.n_samples, err);
    if (e)
        return e;
    for (uint32_t m = 0; m < n_shown(run); m++) {
        double *row =
            add(&s, OCT_PLOT_LINE, "mirror %u, %.4f rad rms", m + 1, run->kmap.mirrors[m].rms_rad);
        oct_kmap_model(&run->kmap, m, row);
        fill_residual(&run->fringes[m], row);
    }
    return draw(&s, path, force, "what the k map and the dispersion leave of each phase",
                "camera sample", "rad", err);
}

/* |B|^2 in dB below the peak after, about the depth of each peak. */
static void fill_peak(double *row, const float *values, uint32_t depth, double at, double top)
{
    for (int i = 0; i < PEAK_STEPS; i++) {
        const double d = floor(at) + i - PEAK_REACH_PX;
        const double value = d >= 0 && d < depth ? (double)values[(uint32_t)d] : NAN;
        row[i] = fmax(LEAST_DB, 10 * log10(fmax(value, 1e-30) / top));
        row[i] = isnan(value) ? NAN : row[i];
    }
}

enum oct_err oct_kmap_draw_peaks(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct oct_kmap_run *run = ((const struct oct_kmap_report *)context)->run;
    struct sheet s;
    enum oct_err e = sheet_init(&s, PEAK_STEPS, err);
    if (e)
        return e;
    for (size_t i = 0; i < s.n; i++)
        s.x[i] -= PEAK_REACH_PX;
    const uint32_t n = run->n < 4 ? run->n : 4;
    for (uint32_t k = 0; k < n; k++) { /* four of many, from the first to the last */
        const uint32_t m = n > 1 ? (uint32_t)((uint64_t)k * (run->n - 1) / (n - 1)) : 0;
        const struct oct_kmap_file *f = &run->files[m];
        fill_peak(add(&s, OCT_PLOT_LINE, "%u after", m + 1), f->after, run->geometry.depth,
                  f->peak.depth_px, f->peak.top);
        fill_peak(add(&s, OCT_PLOT_DASHES, "%u before", m + 1), f->before, run->geometry.depth,
                  isnan(f->before_px) ? f->peak.depth_px : f->before_px, f->peak.top);
    }
    return draw(&s, path, force, "peaks before and after, below the tops after",
                "depth pixels from the peak", "dB", err);
}

enum oct_err oct_kmap_draw_map(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct oct_kmap_run *run = ((const struct oct_kmap_report *)context)->run;
    const struct oct_kmap *kmap = &run->kmap;
    struct sheet s;
    enum oct_err e = sheet_init(&s, run->geometry.n_samples, err);
    if (e)
        return e;
    const bool is_dark = kmap->first > 0 || kmap->last + 1 < kmap->n_samples;
    double *map = add(&s, OCT_PLOT_LINE, "where there is light");
    double *beyond = is_dark ? add(&s, OCT_PLOT_DASHES, "beyond") : s.rows[1], *ones = s.rows[2];
    for (size_t i = 0; i < s.n; i++)
        ones[i] = 1;
    straighten(kmap->k, s.x, ones, s.n, beyond);
    for (size_t i = 0; i < s.n; i++) {
        map[i] = i >= kmap->first && i <= kmap->last ? beyond[i] : NAN;
        beyond[i] = i <= kmap->first || i >= kmap->last ? beyond[i] : NAN;
    }
    return draw(&s, path, force, "k map: camera coordinate less a straight line in k",
                "camera sample", "px", err);
}

enum oct_err oct_kmap_draw_dispersion(void *context, const char *path, bool force,
                                      struct oct_error *err)
{
    const struct oct_kmap_run *run = ((const struct oct_kmap_report *)context)->run;
    const struct oct_kmap *kmap = &run->kmap;
    struct sheet s;
    enum oct_err e = sheet_init(&s, run->geometry.n_samples, err);
    if (e)
        return e;
    double *phase = add(&s, OCT_PLOT_LINE, "phase");
    double *curve = add(&s, OCT_PLOT_DASHES, "a2 to a5"), *polynomial = s.rows[2];
    for (size_t i = 0; i < s.n; i++) {
        const double t = 2 * kmap->k[i] - 1;
        polynomial[i] = 0;
        for (unsigned m = OCT_MAX_DISPERSION_ORDER; m >= 2; m--)
            polynomial[i] = polynomial[i] * t + run->coefficient[m];
        polynomial[i] *= t * t;
        phase[i] = kmap->theta[i];
    }
    straighten(kmap->k, polynomial, kmap->weight, s.n, curve);
    return draw(&s, path, force, "dispersion, less its part linear in k", "camera sample", "rad",
                err);
}
