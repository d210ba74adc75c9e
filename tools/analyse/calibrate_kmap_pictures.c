/* The pictures of octctl calibrate kmap. */
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/analyse/calibrate_kmap.h"

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
    uint32_t mirror; /* of a picture of one */
    size_t n;
    double *x;
    double *rows[2 * MOST_SHOWN];
    char labels[2 * MOST_SHOWN][48];
    struct oct_plot_series series[2 * MOST_SHOWN];
    unsigned n_series;
};

static void sheet_init(struct sheet *s, size_t n, uint32_t mirror)
{
    *s = (struct sheet){.n = n, .mirror = mirror};
    s->x = oct_alloc((2 * MOST_SHOWN + 1) * n, sizeof(double));
    for (unsigned i = 0; i < 2 * MOST_SHOWN; i++)
        s->rows[i] = s->x + (i + 1) * n;
    for (size_t i = 0; i < n; i++)
        s->x[i] = (double)i;
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

static uint32_t n_shown(const struct oct_kmap_job *run)
{
    return run->n < MOST_SHOWN ? run->n : MOST_SHOWN;
}

/* The mean line of a mirror, the source, the fringe's envelope. */
static void fill_spectrum(struct sheet *s, const struct oct_kmap_job *run)
{
    const struct oct_fringe *f = &run->fringes[s->mirror];
    double *first = add(s, OCT_PLOT_LINE, "one A-line"), *source = add(s, OCT_PLOT_LINE, "source");
    double *above = add(s, OCT_PLOT_DASHES, "source + envelope");
    double *below = add(s, OCT_PLOT_DASHES, "source - envelope");
    for (size_t i = 0; i < s->n; i++) {
        first[i] = run->files[s->mirror].lines[i] - (f->background[i] - f->source[i]);
        source[i] = f->source[i];
        above[i] = f->source[i] + f->envelope[i];
        below[i] = f->source[i] - f->envelope[i];
    }
}

/* y less its weighted straight line over x; NaN without weight. */
static void straighten(const double *x, const double *y, const double *weight, size_t n,
                       double *out)
{
    const struct oct_kmap_line line = oct_kmap_fit_line(x, y, weight, n);
    for (size_t i = 0; i < n; i++)
        out[i] = weight[i] > 0 ? oct_kmap_off_line(&line, x[i], y[i]) : NAN;
}

static void fill_phases(struct sheet *s, const struct oct_kmap_job *run)
{
    for (uint32_t m = 0; m < n_shown(run); m++)
        straighten(s->x, run->fringes[m].phase, run->fringes[m].weight, s->n,
                   add(s, OCT_PLOT_LINE, "mirror %u, %.0f px", m + 1, run->files[m].peak.depth_px));
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

static void fill_residuals(struct sheet *s, const struct oct_kmap_job *run)
{
    for (uint32_t m = 0; m < n_shown(run); m++) {
        double *row =
            add(s, OCT_PLOT_LINE, "mirror %u, %.4f rad rms", m + 1, run->kmap.mirrors[m].rms_rad);
        oct_kmap_model(&run->kmap, m, row);
        fill_residual(&run->fringes[m], row);
    }
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

static void fill_peaks(struct sheet *s, const struct oct_kmap_job *run)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] -= PEAK_REACH_PX;
    const uint32_t n = run->n < 4 ? run->n : 4;
    for (uint32_t k = 0; k < n; k++) { /* four of many, from the first to the last */
        const uint32_t m = n > 1 ? (uint32_t)((uint64_t)k * (run->n - 1) / (n - 1)) : 0;
        const struct oct_kmap_file *f = &run->files[m];
        fill_peak(add(s, OCT_PLOT_LINE, "%u after", m + 1), f->after, run->geometry.depth,
                  f->peak.depth_px, f->peak.top);
        fill_peak(add(s, OCT_PLOT_DASHES, "%u before", m + 1), f->before, run->geometry.depth,
                  isnan(f->before_px) ? f->peak.depth_px : f->before_px, f->peak.top);
    }
}

static void fill_map(struct sheet *s, const struct oct_kmap_job *run)
{
    const struct oct_kmap *kmap = &run->kmap;
    const bool is_dark = kmap->first > 0 || kmap->last + 1 < kmap->n_samples;
    double *map = add(s, OCT_PLOT_LINE, "where there is light");
    double *beyond = is_dark ? add(s, OCT_PLOT_DASHES, "beyond") : s->rows[1], *ones = s->rows[2];
    for (size_t i = 0; i < s->n; i++)
        ones[i] = 1;
    straighten(kmap->k, s->x, ones, s->n, beyond);
    for (size_t i = 0; i < s->n; i++) {
        map[i] = i >= kmap->first && i <= kmap->last ? beyond[i] : NAN;
        beyond[i] = i <= kmap->first || i >= kmap->last ? beyond[i] : NAN;
    }
}

static void fill_dispersion(struct sheet *s, const struct oct_kmap_job *run)
{
    const struct oct_kmap *kmap = &run->kmap;
    double *phase = add(s, OCT_PLOT_LINE, "phase");
    double *curve = add(s, OCT_PLOT_DASHES, "a2 to a5"), *polynomial = s->rows[2];
    for (size_t i = 0; i < s->n; i++) {
        const double t = 2 * kmap->k[i] - 1;
        polynomial[i] = 0;
        for (unsigned m = OCT_MAX_DISPERSION_ORDER; m >= 2; m--)
            polynomial[i] = polynomial[i] * t + run->coefficient[m];
        polynomial[i] *= t * t;
        phase[i] = kmap->theta[i];
    }
    straighten(kmap->k, polynomial, kmap->weight, s->n, curve);
}

/* ---- which ---- */

struct oct_kmap_figure {
    const char *name, *title, *x_label, *y_label;
    void (*fill)(struct sheet *sheet, const struct oct_kmap_job *job);
    size_t n;       /* values of a series; 0: the samples */
    bool needs_two; /* mirrors: without them there is no dispersion */
};

static const struct oct_kmap_figure spectrum = {
    .x_label = "camera sample", .y_label = "counts", .fill = fill_spectrum};
static const struct oct_kmap_figure figures[] = {
    {"phases.png", "phase of each fringe, less a straight line", "camera sample", "rad",
     .fill = fill_phases},
    {"residuals.png", "what the k map and the dispersion leave of each phase", "camera sample",
     "rad", .fill = fill_residuals},
    {"kmap.png", "k map: camera coordinate less a straight line in k", "camera sample", "px",
     .fill = fill_map},
    {"dispersion.png", "dispersion, less its part linear in k", "camera sample", "rad",
     .fill = fill_dispersion, .needs_two = true},
    {"peaks.png", "peaks before and after, below the tops after", "depth pixels from the peak",
     "dB", .fill = fill_peaks, .n = PEAK_STEPS},
};
#define N_FIGURES (sizeof(figures) / sizeof(figures[0]))

void oct_kmap_list_pictures(struct oct_kmap_job *job, const char *folder)
{
    job->pictures = oct_alloc(job->n + N_FIGURES, sizeof(*job->pictures));
    for (uint32_t m = 0; m < job->n; m++)
        job->pictures[job->n_pictures++] = (struct oct_kmap_picture){
            job, &spectrum, m, oct_alloc_text("%s/spectrum-%u.png", folder, m + 1)};
    for (unsigned i = 0; i < N_FIGURES; i++)
        if (job->n > 1 || !figures[i].needs_two)
            job->pictures[job->n_pictures++] = (struct oct_kmap_picture){
                job, &figures[i], 0, oct_alloc_text("%s/%s", folder, figures[i].name)};
}

enum oct_err oct_kmap_draw(void *picture, const char *path, bool force, struct oct_error *err)
{
    const struct oct_kmap_picture *p = picture;
    const struct oct_kmap_figure *figure = p->figure;
    struct sheet s;
    char title[160];
    sheet_init(&s, figure->n ? figure->n : p->job->geometry.n_samples, p->mirror);
    figure->fill(&s, p->job);
    snprintf(title, sizeof(title), "mirror %u: %.80s", p->mirror + 1,
             oct_job_base(p->job->job.inputs[p->mirror]));
    const struct oct_plot_lines plot = {.title = figure->title ? figure->title : title,
                                        .x_label = figure->x_label,
                                        .y_label = figure->y_label,
                                        .series = s.series,
                                        .n_series = s.n_series};
    const enum oct_err e = oct_plot_write_lines(path, force, &plot, err);
    free(s.x);
    return e;
}
