/* The numbers that sum up cells of a film, printed and as JSON. */
#include "formats/result_files.h"
#include "numeric/order.h"
#include "tools/alloc.h"
#include "tools/analyse/cells.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

#define UM2_PER_MM2 1e6

#define S struct oct_cells_summary
static const struct oct_result_field summary_rows[] = {
    {OCT_RESULT("frames", S, frames)},
    {OCT_RESULT("frames_blank", S, frames_blank)},
    {OCT_RESULT("cells", S, cells)},
    {OCT_RESULT("rows", S, rows)},
    {OCT_RESULT("tracks", S, tracks)},
    {OCT_RESULT("cells_a_frame", S, cells_a_frame)},
    {OCT_RESULT("density_per_mm2", S, density_mm2)},
    {OCT_RESULT("nearest_neighbour_px", S, nearest_px)},
    {OCT_RESULT("nearest_neighbour_sd_px", S, sd_px)},
    {OCT_RESULT("nearest_neighbour_um", S, nearest_um)},
    {OCT_RESULT("nearest_neighbour_sd_um", S, sd_um)},
    {OCT_RESULT("speed_um_s.n", S, um_s.n)},
    {OCT_RESULT("speed_um_s.p10", S, um_s.p10)},
    {OCT_RESULT("speed_um_s.p50", S, um_s.p50)},
    {OCT_RESULT("speed_um_s.p90", S, um_s.p90)},
    {OCT_RESULT("speed_px_frame.n", S, px_frame.n)},
    {OCT_RESULT("speed_px_frame.p10", S, px_frame.p10)},
    {OCT_RESULT("speed_px_frame.p50", S, px_frame.p50)},
    {OCT_RESULT("speed_px_frame.p90", S, px_frame.p90)},
    {OCT_RESULT("flux_over_line", S, over_line)},
    {OCT_RESULT("flux_over_line_per_s", S, over_line_s)},
    {OCT_RESULT("flux_past_middle", S, past_middle)},
    {OCT_RESULT("flux_past_middle_per_s", S, past_middle_s)},
    {OCT_RESULT("highest_score", S, highest)},
    {OCT_RESULT("seconds", S, seconds)},
    {OCT_RESULT("rate", S, rate), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("backend", S, backend)},
};
#undef S
static const struct oct_result_fields summary_fields = OCT_RESULT_FIELDS(summary_rows);

/* ---- speeds ---- */

/* Between the two nearest ranks, as numpy.percentile. */
static double find_rank(const double *sorted, size_t n, double part)
{
    if (n == 0)
        return NAN;
    const double at = part * (double)(n - 1);
    const size_t low = (size_t)at, high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

static struct oct_cells_speeds find_speeds(const struct oct_cells_rows *rows, bool in_um)
{
    size_t n = 0;
    double *speeds = oct_alloc(rows->n, sizeof(*speeds));
    for (size_t i = 0; i < rows->n; i++) {
        const struct oct_cells_row *r = &rows->rows[i];
        const double speed = in_um ? r->found.speed_um_s : r->speed_px;
        if (oct_cells_is_seen(r) && !isnan(speed))
            speeds[n++] = speed;
    }
    oct_doubles_sort(speeds, n);
    const struct oct_cells_speeds found = {n, find_rank(speeds, n, 0.1), find_rank(speeds, n, 0.5),
                                           find_rank(speeds, n, 0.9)};
    free(speeds);
    return found;
}

/* ---- neighbours ---- */

struct point {
    double x, y;
};

static int compare_points(const void *a, const void *b)
{
    const struct point *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

struct moments {
    double sum, squares, n;
};

/* In order of x: those farther away in x alone than the nearest so far are not asked. */
static double find_nearest(const struct point *points, size_t n, size_t i)
{
    double best = INFINITY;
    for (size_t k = i + 1; k < n && points[k].x - points[i].x < best; k++)
        best = fmin(best, hypot(points[k].x - points[i].x, points[k].y - points[i].y));
    for (size_t k = i; k-- > 0 && points[i].x - points[k].x < best;)
        best = fmin(best, hypot(points[k].x - points[i].x, points[k].y - points[i].y));
    return best;
}

static void add_frame(struct moments *m, struct point *points, size_t n)
{
    qsort(points, n, sizeof(*points), compare_points);
    for (size_t i = 0; i < n && n > 1; i++) {
        const double distance = find_nearest(points, n, i);
        m->sum += distance;
        m->squares += distance * distance;
        m->n++;
    }
}

/* dx, dy: of a pixel. */
static void find_neighbours(const struct oct_cells_rows *rows, double dx, double dy, double *mean,
                            double *sd)
{
    struct moments m = {0};
    struct point *points = oct_alloc(rows->n, sizeof(*points));
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const struct oct_cells_row *r = &rows->rows[i];
        if (oct_cells_is_seen(r))
            points[n++] = (struct point){r->found.x_px * dx, r->found.y_px * dy};
        if (i + 1 == rows->n || rows->rows[i + 1].frame != r->frame) {
            add_frame(&m, points, n);
            n = 0;
        }
    }
    free(points);
    *mean = m.n > 0 ? m.sum / m.n : NAN;
    *sd = m.n > 1 ? sqrt(fmax(0, m.squares - m.n * *mean * *mean) / (m.n - 1)) : NAN;
}

/* ---- flux ---- */

/* On which side of the line; 0 on it. */
static double find_side(const struct oct_cells_line *l, double x, double y)
{
    return (l->x1 - l->x0) * (y - l->y0) - (l->y1 - l->y0) * (x - l->x0);
}

/* Whether the step from p to q crosses the line. A step that begins on it counts with the one
 * before. */
static bool crosses(const struct oct_cells_line *l, const struct oct_cells_found *p,
                    const struct oct_cells_found *q)
{
    const double before = find_side(l, p->x_px, p->y_px), after = find_side(l, q->x_px, q->y_px);
    if ((before > 0) == (after > 0))
        return false;
    const struct oct_cells_line step = {p->x_px, p->y_px, q->x_px, q->y_px};
    return (find_side(&step, l->x0, l->y0) > 0) != (find_side(&step, l->x1, l->y1) > 0);
}

/* Tracks that cross the line an odd number of times. */
static double count_crossings(const struct oct_cells_rows *rows, const struct oct_cells_line *line)
{
    double n = 0;
    bool is_over = false;
    for (size_t i = 1; i < rows->n; i++) {
        const struct oct_cells_found *p = &rows->by_track[i - 1]->found;
        const struct oct_cells_found *q = &rows->by_track[i]->found;
        if (p->track != q->track || p->track == 0) {
            is_over = false;
        } else if (crosses(line, p, q)) {
            is_over = !is_over;
            n += is_over ? 1 : -1;
        }
    }
    return n;
}

static void find_flux(struct oct_cells_job *c)
{
    struct oct_cells_summary *s = &c->summary;
    const struct oct_cells_line *l = &c->line;
    s->over_line = s->past_middle = s->over_line_s = s->past_middle_s = NAN;
    if (!c->has_line)
        return;
    const double length = hypot(l->x1 - l->x0, l->y1 - l->y0);
    const double reach = 2 * c->params->radius;
    const double nx = -(l->y1 - l->y0) / length * reach, ny = (l->x1 - l->x0) / length * reach;
    const double x = (l->x0 + l->x1) / 2, y = (l->y0 + l->y1) / 2;
    const struct oct_cells_line across = {x - nx, y - ny, x + nx, y + ny};
    const double seconds = c->last_s - c->first_s;
    s->over_line = count_crossings(&c->rows, l);
    s->past_middle = count_crossings(&c->rows, &across);
    s->over_line_s = seconds > 0 ? s->over_line / seconds : NAN;
    s->past_middle_s = seconds > 0 ? s->past_middle / seconds : NAN;
}

/* ---- all ---- */

/* mm^2 of the pixels where a cell can be found. */
static double searched_mm2(const struct oct_cells_job *c)
{
    const double border = 2.0 * oct_cells_border(c->params);
    return (c->grid.width - border) * (c->grid.height - border) * c->grid.um * c->grid.um /
           UM2_PER_MM2 * c->valid_share;
}

static void count_cells(struct oct_cells_summary *s, const struct oct_cells_job *c)
{
    const struct oct_cells_rows *rows = &c->rows;
    uint64_t last = 0;
    s->rows = rows->n;
    for (size_t i = 0; i < rows->n; i++) {
        const struct oct_cells_row *r = rows->by_track[i];
        s->tracks += r->found.track != last;
        s->cells += oct_cells_is_seen(r);
        last = r->found.track;
    }
    const uint64_t n_searched = c->n - c->n_blank;
    s->cells_a_frame = n_searched > 0 ? (double)s->cells / (double)n_searched : NAN;
    s->density_mm2 = s->cells_a_frame / searched_mm2(c);
}

void oct_cells_summarise(struct oct_cells_job *c)
{
    struct oct_cells_summary *s = &c->summary;
    *s = (struct oct_cells_summary){.frames = c->n,
                                    .frames_blank = c->n_blank,
                                    .highest = oct_cells_film_highest(c->film),
                                    .backend = oct_cells_film_running(c->film)};
    count_cells(s, c);
    s->um_s = find_speeds(&c->rows, true);
    s->px_frame = find_speeds(&c->rows, false);
    find_neighbours(&c->rows, 1, 1, &s->nearest_px, &s->sd_px);
    find_neighbours(&c->rows, c->um[1], c->um[0], &s->nearest_um, &s->sd_um);
    if (!oct_cells_has_um(c))
        s->nearest_um = s->sd_um = NAN;
    find_flux(c);
    s->seconds = oct_progress_seconds(&c->job.progress);
    s->rate = s->seconds > 0 ? (double)s->frames / s->seconds : 0;
}

/* ---- as lines and as JSON ---- */

static void print_line(const struct oct_cells_summary *s, const char *sentence)
{
    oct_result_print(stdout, sentence, &summary_fields, s);
}

void oct_cells_print(const void *job)
{
    const struct oct_cells_summary *s = &((const struct oct_cells_job *)job)->summary;
    print_line(s, "cells             {cells} in {frames} frame{frames:s}");
    if (s->frames > 1 && s->cells > 0)
        print_line(s, ", {cells_a_frame:.4g} a frame");
    if (s->tracks > 0)
        print_line(s, "\ntracks            {tracks}");
    if (s->cells > 0)
        print_line(s, "[\ndensity           {density_per_mm2:.4g} cells/mm2]");
    print_line(s, isnan(s->nearest_um) ? "[\nnearest neighbour {nearest_neighbour_px:.4g} px, sd "
                                         "{nearest_neighbour_sd_px:.4g} px]"
                                       : "\nnearest neighbour {nearest_neighbour_um:.4g} um, sd "
                                         "{nearest_neighbour_sd_um:.4g} um");
    print_line(s, s->um_s.n > 0 ? "\nspeed             {speed_um_s.p50:.4g} (p10 "
                                  "{speed_um_s.p10:.4g}, p90 {speed_um_s.p90:.4g}) um/s"
                                : "[\nspeed             {speed_px_frame.p50:.4g} (p10 "
                                  "{speed_px_frame.p10:.4g}, p90 {speed_px_frame.p90:.4g}) px a "
                                  "frame]");
    print_line(s,
               "[\nflux              {flux_over_line:.0f} over the line, {flux_past_middle:.0f} "
               "past its middle][ ({flux_over_line_per_s:.4g} and {flux_past_middle_per_s:.4g} "
               "cells/s)]\ntook              {seconds:.2f} s, {rate:.1f} frames/s ({backend})\n");
}

static void put_json(const void *job, FILE *file)
{
    cJSON *tree = cJSON_CreateObject();
    oct_result_json(tree, &summary_fields, &((const struct oct_cells_job *)job)->summary);
    char *text = cJSON_Print(tree);
    fprintf(file, "%s\n", text);
    cJSON_free(text);
    cJSON_Delete(tree);
}

enum oct_err oct_cells_write_summary(void *job, const char *path, bool force, struct oct_error *err)
{
    (void)force;
    return oct_outputs_print(path, put_json, job, err);
}
