/* Pictures of octctl cells: rings on the pictures, brightness along a line over time, and the
 * speeds. */
#include "formats/film_write.h"
#include "numeric/order.h"
#include "plot/plot.h"
#include "tools/alloc.h"
#include "tools/analyse/cells.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_KYMOGRAPH_ROWS 2048u
#define N_SAMPLED_FRAMES 16u /* whose brightness decides what is black and white */
#define N_SAMPLES_A_FRAME 8192u
#define N_TAIL 20u
#define FPS_UNKNOWN 10.0 /* of films that do not say it */
#define MOST_FPS 1e6
#define LEAST_FPS 1e-6
#define ABOUT_BINS 32.0
#define MOST_BINS 4096.0

/* Of a track: bright enough to stand on grey. */
static unsigned colour_of(uint64_t track)
{
    static const unsigned colours[] = {0xffd400, 0x00d5ff, 0xff6f3c, 0x7cfc4a, 0xff7ad9, 0x8fa2ff,
                                       0xffb000, 0x2ee6b0, 0xff5b6e, 0xc9f24e, 0xd38cff, 0x58c4ff};
    return colours[track % (sizeof(colours) / sizeof(colours[0]))];
}

/* Without the darkest and the brightest 1 / part of the values, which are sorted then. */
static void find_limits(float *values, size_t n, size_t part, double *lo, double *hi)
{
    oct_floats_sort(values, n);
    *lo = n > 0 ? (double)values[n / part] : 0;
    *hi = n > 0 ? (double)values[n - 1 - n / part] : 1;
    if (!(*hi > *lo))
        *hi = *lo + 1;
}

/* ---- what is kept of every picture ---- */

enum oct_err oct_cells_shown_begin(struct oct_cells_job *c, struct oct_error *err)
{
    const struct oct_cells_line *l = &c->line;
    const double x_most = c->width - 1.0, y_most = c->height - 1.0;
    const double length = hypot(l->x1 - l->x0, l->y1 - l->y0);
    struct oct_cells_kymograph *k = &c->kymograph;
    c->samples = oct_alloc((size_t)N_SAMPLED_FRAMES * N_SAMPLES_A_FRAME, sizeof(float));
    if (!c->has_line)
        return OCT_OK;
    if (!(fmin(l->x0, l->x1) >= 0 && fmax(l->x0, l->x1) <= x_most && fmin(l->y0, l->y1) >= 0 &&
          fmax(l->y0, l->y1) <= y_most && length >= 1))
        return oct_fail(err, OCT_E_ARG,
                        "--along %g,%g,%g,%g: must be a px long and lie within 0,0,%g,%g", l->x0,
                        l->y0, l->x1, l->y1, x_most, y_most);
    k->n_x = (uint32_t)ceil(length - 1e-9) + 1;
    k->frames_a_row = (c->n_all - 1) / MOST_KYMOGRAPH_ROWS + 1;
    k->n_t = (uint32_t)((c->n_all - 1) / k->frames_a_row + 1);
    k->values = oct_alloc((size_t)k->n_t * k->n_x, sizeof(*k->values));
    k->n_added = oct_alloc((size_t)k->n_t * k->n_x, sizeof(*k->n_added));
    return OCT_OK;
}

/* Bilinear; NaN beside what is not valid. (x, y) lies within the picture. */
static double value_at(const struct oct_picture *picture, double x, double y)
{
    const uint32_t x0 = (uint32_t)x, y0 = (uint32_t)y;
    const uint32_t x1 = x0 + 1 < picture->width ? x0 + 1 : x0;
    const uint32_t y1 = y0 + 1 < picture->height ? y0 + 1 : y0;
    const size_t at[4] = {(size_t)y0 * picture->width + x0, (size_t)y0 * picture->width + x1,
                          (size_t)y1 * picture->width + x0, (size_t)y1 * picture->width + x1};
    const double fx = x - x0, fy = y - y0;
    const double weight[4] = {(1 - fx) * (1 - fy), fx * (1 - fy), (1 - fx) * fy, fx * fy};
    double sum = 0;
    for (int i = 0; i < 4; i++)
        if (weight[i] > 0)
            sum += oct_picture_is_valid(picture, at[i]) ? weight[i] * (double)picture->pixels[at[i]]
                                                        : NAN;
    return sum;
}

static void add_to_kymograph(struct oct_cells_job *c, uint64_t frame,
                             const struct oct_picture *picture)
{
    struct oct_cells_kymograph *k = &c->kymograph;
    const struct oct_cells_line *l = &c->line;
    const size_t row = (size_t)(frame / k->frames_a_row) * k->n_x;
    for (uint32_t i = 0; i < k->n_x; i++) {
        const double part = (double)i / (k->n_x - 1);
        const double value =
            value_at(picture, l->x0 + part * (l->x1 - l->x0), l->y0 + part * (l->y1 - l->y0));
        if (isnan(value))
            continue;
        k->values[row + i] += (float)value;
        k->n_added[row + i]++;
    }
}

void oct_cells_shown_add(struct oct_cells_job *c, uint64_t frame, const struct oct_picture *picture)
{
    const size_t n = (size_t)picture->height * picture->width;
    const size_t step = n / N_SAMPLES_A_FRAME + 1;
    const uint64_t every = (c->n_all - 1) / N_SAMPLED_FRAMES + 1;
    for (size_t i = 0; i < n && !c->is_u8 && frame % every == 0; i += step)
        if (oct_picture_is_valid(picture, i))
            c->samples[c->n_samples++] = picture->pixels[i];
    if (c->has_line)
        add_to_kymograph(c, frame, picture);
}

/* Pictures of 8 bits are shown as they are, others between their darkest and brightest 0.2 %. */
void oct_cells_shown_end(struct oct_cells_job *c)
{
    struct oct_cells_kymograph *k = &c->kymograph;
    c->hi = 255;
    if (c->n_samples > 0)
        find_limits(c->samples, c->n_samples, 500, &c->lo, &c->hi);
    k->n_t = c->n > 0 && k->n_x > 0 ? (uint32_t)((c->n - 1) / k->frames_a_row + 1) : 0;
    for (size_t i = 0; i < (size_t)k->n_t * k->n_x; i++)
        k->values[i] = k->n_added[i] > 0 ? k->values[i] / (float)k->n_added[i] : NAN;
}

/* ---- kymograph ---- */

/* How the line and the frames become coordinates of the plot. */
struct scale {
    double ux, uy, length;   /* the line's direction, and its length in px */
    double per_px;           /* um, or 1 */
    double first, per_frame; /* s, or frames */
    bool has_um, has_time;
};

static struct scale scale_of(const struct oct_cells_job *c)
{
    const struct oct_cells_line *l = &c->line;
    const double dx = l->x1 - l->x0, dy = l->y1 - l->y0;
    struct scale s = {.length = hypot(dx, dy),
                      .per_px = 1,
                      .per_frame = 1,
                      .has_um = oct_cells_has_um(c),
                      .has_time = c->n > 1 && c->last_s > c->first_s};
    s.ux = dx / s.length;
    s.uy = dy / s.length;
    if (s.has_um)
        s.per_px = hypot(s.ux * c->um[1], s.uy * c->um[0]);
    if (s.has_time) {
        s.first = c->first_s;
        s.per_frame = (c->last_s - c->first_s) / (double)(c->n - 1);
    }
    return s;
}

/* Where along the line; false: the cell is a radius away from it, or beyond its ends. */
static bool place_on_line(const struct scale *s, const struct oct_cells_line *line,
                          const struct oct_cells_row *r, double *x, double *y)
{
    const double dx = r->found.x_px - line->x0, dy = r->found.y_px - line->y0;
    const double along = dx * s->ux + dy * s->uy, aside = dy * s->ux - dx * s->uy;
    *x = along * s->per_px;
    *y = s->first + (double)r->frame * s->per_frame;
    return along >= 0 && along <= s->length && fabs(aside) <= r->found.radius_px;
}

/* Each stretch of a track that is near the line: paths, x and y have room for all rows. Returns how
 * many there are. */
static size_t find_paths(const struct oct_cells_job *c, const struct scale *s,
                         struct oct_plot_path *paths, double *x, double *y)
{
    const struct oct_cells_rows *rows = &c->rows;
    size_t n = 0, n_paths = 0;
    uint64_t open = 0; /* the track of the last path, while it goes on */
    for (size_t i = 0; i < rows->n; i++) {
        const struct oct_cells_row *r = rows->by_track[i];
        const uint64_t track = r->found.track;
        if (track == 0 || !place_on_line(s, &c->line, r, &x[n], &y[n])) {
            open = 0;
            continue;
        }
        if (open != track)
            paths[n_paths++] =
                (struct oct_plot_path){.x = &x[n], .y = &y[n], .rgb = colour_of(track)};
        paths[n_paths - 1].n++;
        open = track;
        n++;
    }
    return n_paths;
}

/* Between the darkest and the brightest 0.5 %. */
static void find_kymograph_limits(const struct oct_cells_kymograph *k, double *lo, double *hi)
{
    const size_t n = (size_t)k->n_t * k->n_x;
    size_t n_kept = 0;
    float *kept = oct_alloc(n, sizeof(*kept));
    for (size_t i = 0; i < n; i++)
        if (isfinite(k->values[i]))
            kept[n_kept++] = k->values[i];
    find_limits(kept, n_kept, 200, lo, hi);
    free(kept);
}

enum oct_err oct_cells_draw_kymograph(void *job, const char *path, bool force,
                                      struct oct_error *err)
{
    const struct oct_cells_job *c = job;
    const struct oct_cells_kymograph *k = &c->kymograph;
    const struct scale s = scale_of(c);
    const double half_px = s.length / (k->n_x - 1) / 2;
    struct oct_plot_path *paths = oct_alloc(c->rows.n + 1, sizeof(*paths));
    double *x = oct_alloc(c->rows.n + 1, sizeof(*x)), *y = oct_alloc(c->rows.n + 1, sizeof(*y));
    struct oct_plot_field plot = {
        .title = oct_job_base(c->job.inputs[0]),
        .x_label = s.has_um ? "along the line (\302\265m)" : "along the line (px)",
        .y_label = s.has_time ? "time (s)" : "frame",
        .values = k->values,
        .n_y = k->n_t,
        .n_x = k->n_x,
        .x_least = -half_px * s.per_px,
        .x_most = (s.length + half_px) * s.per_px,
        .y_least = s.first - s.per_frame / 2,
        .y_most = s.first + ((double)k->n_t * (double)k->frames_a_row - 0.5) * s.per_frame,
        .paths = paths,
        .n_paths = find_paths(c, &s, paths, x, y)};
    find_kymograph_limits(k, &plot.lo, &plot.hi);
    const enum oct_err e = oct_plot_write_field(path, force, &plot, err);
    free(paths);
    free(x);
    free(y);
    return e;
}

/* ---- histogram ---- */

struct bins {
    size_t n;
    double *x, *y; /* [n]: middles, counts */
};

static double speed_of(const struct oct_cells_row *r, bool in_um)
{
    return !oct_cells_is_seen(r) ? NAN : in_um ? r->found.speed_um_s : r->speed_px;
}

/* 1, 2 or 5 times a power of ten. */
static double round_width(double raw)
{
    const double power = pow(10, floor(log10(raw))), digit = raw / power;
    return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

static void make_bins(const struct oct_cells_rows *rows, bool in_um, struct bins *b)
{
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < rows->n; i++) {
        const double speed = speed_of(&rows->rows[i], in_um);
        least = fmin(least, speed);
        most = fmax(most, speed);
    }
    if (!(most >= least))
        return;
    const double range = most - least > 1e-9 * most ? most - least : fmax(most, 1e-9);
    const double width = round_width(range / ABOUT_BINS), first = floor(least / width) * width;
    b->n = (size_t)fmin(MOST_BINS, floor((most - first) / width) + 1);
    b->n = b->n < 2 ? 2 : b->n; /* the second says how wide the first is */
    b->x = oct_alloc(b->n, sizeof(*b->x));
    b->y = oct_alloc(b->n, sizeof(*b->y));
    for (size_t i = 0; i < b->n; i++)
        b->x[i] = first + ((double)i + 0.5) * width;
    for (size_t i = 0; i < rows->n; i++) {
        const double speed = speed_of(&rows->rows[i], in_um);
        const size_t at = isnan(speed) ? b->n : (size_t)((speed - first) / width);
        if (!isnan(speed))
            b->y[at < b->n ? at : b->n - 1]++;
    }
}

enum oct_err oct_cells_draw_histogram(void *job, const char *path, bool force,
                                      struct oct_error *err)
{
    const struct oct_cells_job *c = job;
    const bool in_um = c->summary.um_s.n > 0;
    const struct oct_cells_speeds *speeds = in_um ? &c->summary.um_s : &c->summary.px_frame;
    struct bins bins = {0};
    char text[64];
    double highest = 0;
    make_bins(&c->rows, in_um, &bins);
    for (size_t i = 0; i < bins.n; i++)
        highest = fmax(highest, bins.y[i]);
    snprintf(text, sizeof(text), "median %.4g %s", speeds->p50,
             in_um ? "\302\265m/s" : "px a frame");
    const struct oct_plot_series series = {
        .x = bins.x, .y = bins.y, .n = bins.n, .style = OCT_PLOT_BARS};
    const struct oct_plot_mark mark = {speeds->p50, 1.04 * highest, text};
    const struct oct_plot_lines plot = {.title = oct_job_base(c->job.inputs[0]),
                                        .x_label =
                                            in_um ? "speed (\302\265m/s)" : "speed (px a frame)",
                                        .y_label = "cells, each frame counted",
                                        .series = &series,
                                        .n_series = 1,
                                        .marks = &mark,
                                        .n_marks = speeds->n > 0,
                                        .has_y = true,
                                        .y_most = fmax(1, 1.12 * highest)};
    const enum oct_err e = oct_plot_write_lines(path, force, &plot, err);
    free(bins.x);
    free(bins.y);
    return e;
}

/* ---- rings ---- */

/* Where the track of this row was in the pictures before and is, the oldest first. Returns in how
 * many. */
static unsigned find_tail(const struct oct_cells_rows *rows, const struct oct_cells_row *row,
                          double places[N_TAIL][2])
{
    const struct oct_cells_row *const *newest = &rows->by_track[row->order];
    unsigned n = 1;
    while (row->found.track > 0 && n < N_TAIL && n <= row->order &&
           newest[-(int)n]->found.track == row->found.track &&
           newest[-(int)n]->frame + n == row->frame)
        n++;
    for (unsigned i = 0; i < n; i++) {
        places[i][0] = newest[(int)(i + 1 - n)]->found.x_px;
        places[i][1] = newest[(int)(i + 1 - n)]->found.y_px;
    }
    return n;
}

/* The picture with those of its n rows. The pictures are read a second time, when it is known which
 * tracks are any. Into the film (rgb: room for a picture), or as a PNG file. */
static enum oct_err draw_rows(struct oct_cells_job *c, uint64_t frame,
                              const struct oct_cells_row *rows, size_t n,
                              struct oct_film_file *film, uint8_t *rgb, struct oct_error *err)
{
    struct oct_picture picture = {0};
    enum oct_err e = oct_cells_read(c, frame, &picture, NULL, err);
    if (e)
        return e;
    struct oct_plot_ring *rings = oct_alloc(n, sizeof(*rings));
    double(*tails)[N_TAIL][2] = oct_alloc(n, sizeof(*tails));
    for (size_t i = 0; i < n; i++) {
        const struct oct_cells_found *f = &rows[i].found;
        rings[i] = (struct oct_plot_ring){.x = f->x_px,
                                          .y = f->y_px,
                                          .radius_x = f->radius_px * c->grid.dx,
                                          .radius_y = f->radius_px * c->grid.dy,
                                          .rgb = colour_of(f->track),
                                          .dashed = f->how == OCT_CELLS_COASTED,
                                          .tail = tails[i][0],
                                          .n_tail = find_tail(&c->rows, &rows[i], tails[i])};
        if (f->track > 0)
            snprintf(rings[i].text, sizeof(rings[i].text), "%" PRIu64, f->track);
    }
    const struct oct_plot_overlay overlay = {.pixels = picture.pixels,
                                             .valid = picture.valid,
                                             .height = picture.height,
                                             .width = picture.width,
                                             .lo = c->lo,
                                             .hi = c->hi,
                                             .rings = rings,
                                             .n_rings = n};
    if (film) {
        e = oct_plot_draw_overlay(rgb, &overlay, err);
        e = e ? e : oct_film_file_add(film, rgb, err);
    } else {
        char *name = oct_alloc_text("%s/frame_%06" PRIu64 ".png", c->overlay_folder, frame);
        e = oct_plot_write_overlay(name, c->given.job.force, &overlay, err);
        free(name);
    }
    free(rings);
    free(tails);
    oct_picture_finish(&picture);
    return e;
}

static enum oct_err draw_frames(struct oct_cells_job *c, struct oct_film_file *film, uint8_t *rgb,
                                struct oct_error *err)
{
    const struct oct_cells_row *rows = c->rows.rows, *end = rows + c->rows.n;
    enum oct_err e = OCT_OK;
    for (uint64_t frame = 0; frame < c->n && !e; frame++) {
        size_t n = 0;
        while (rows + n < end && rows[n].frame == frame)
            n++;
        e = draw_rows(c, frame, rows, n, film, rgb, err);
        rows += n;
    }
    return e;
}

enum oct_err oct_cells_draw_film(void *job, const char *path, bool force, struct oct_error *err)
{
    struct oct_cells_job *c = job;
    struct oct_film_file *film;
    double fps = oct_pictures_fps(c->pictures);
    if (!(fps > 0))
        fps = c->n > 1 ? (double)(c->n - 1) / (c->last_s - c->first_s) : NAN;
    const struct oct_film_setup setup = {.format = OCT_FILM_AVI,
                                         .pixel = OCT_FILM_RGB,
                                         .height = c->height,
                                         .width = c->width,
                                         .fps = fps >= LEAST_FPS && fps <= MOST_FPS ? fps
                                                                                    : FPS_UNKNOWN,
                                         .n_pictures = c->n,
                                         .force = force};
    enum oct_err e = oct_film_file_create(&film, path, &setup, err);
    if (e)
        return e;
    uint8_t *rgb = oct_alloc((size_t)c->height * c->width, 3);
    e = draw_frames(c, film, rgb, err);
    free(rgb);
    if (!e)
        return oct_film_file_publish(film, err);
    oct_film_file_discard(film);
    return e;
}

/* ---- a folder of PNG files ---- */

/* Just the names that draw_frame gives, and the picture's number. */
static bool is_frame(const char *name, uint64_t *number)
{
    static const char before[] = "frame_";
    if (strncmp(name, before, sizeof(before) - 1) != 0)
        return false;
    name += sizeof(before) - 1;
    const size_t n_digits = strspn(name, "0123456789");
    *number = strtoull(name, NULL, 10);
    return n_digits >= 6 && strcmp(name + n_digits, ".png") == 0;
}

/* Pictures of an earlier run; those from number `kept` on are removed (UINT64_MAX: none). */
static bool has_frames(const char *path, uint64_t kept)
{
    DIR *folder = opendir(path);
    bool has = false;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        uint64_t number;
        if (!is_frame(entry->d_name, &number))
            continue;
        has = true;
        if (kept != UINT64_MAX && number >= kept)
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder)
        closedir(folder);
    return has;
}

enum oct_err oct_cells_check_folder(const char *path, bool force, struct oct_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return OCT_OK;
    if (!S_ISDIR(st.st_mode))
        return oct_fail(err, OCT_E_ARG,
                        "%s: is no folder; --overlay needs one, or a name that ends in .avi", path);
    if (!force && has_frames(path, UINT64_MAX))
        return oct_fail(err, OCT_E_IO, "%s: has pictures already; choose another name, or --force",
                        path);
    return OCT_OK;
}

enum oct_err oct_cells_draw_folder(struct oct_cells_job *c, struct oct_error *err)
{
    if (mkdir(c->overlay_folder, 0777) != 0 && errno != EEXIST)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", c->overlay_folder);
    const enum oct_err e = draw_frames(c, NULL, NULL, err);
    if (!e && c->given.job.force)
        has_frames(c->overlay_folder, c->n); /* of a longer film before */
    return e;
}
