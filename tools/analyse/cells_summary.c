#include "tools/analyse/cells_summary.h"

#include "formats/whole_file.h"
#include "numeric/order.h"
#include "pipeline/base/json_text.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define UM2_PER_MM2 1e6

static bool is_seen(const struct oct_cells_row *row)
{
    return row->how != OCT_CELLS_COASTED;
}

/* ---- speeds ---- */

/* Between the two nearest ranks, as numpy.percentile. */
static double rank(const double *sorted, size_t n, double part)
{
    if (n == 0)
        return NAN;
    const double at = part * (double)(n - 1);
    const size_t low = (size_t)at, high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

static void find_speeds(struct oct_cells_speeds *speeds, const struct oct_cells_rows *rows,
                        bool in_um, double *room)
{
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const struct oct_cells_row *r = &rows->rows[i];
        const double speed = in_um ? r->speed_um_s : r->speed_px;
        if (is_seen(r) && !isnan(speed))
            room[n++] = speed;
    }
    oct_doubles_sort(room, n);
    *speeds =
        (struct oct_cells_speeds){n, rank(room, n, 0.1), rank(room, n, 0.5), rank(room, n, 0.9)};
}

/* ---- neighbours ---- */

struct place {
    double x, y;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

struct moments {
    double sum, squares;
    uint64_t n;
};

/* In order of x: those farther away in x alone than the nearest so far are not asked. */
static double nearest(const struct place *places, size_t n, size_t i)
{
    double best = INFINITY;
    for (size_t k = i + 1; k < n && places[k].x - places[i].x < best; k++)
        best = fmin(best, hypot(places[k].x - places[i].x, places[k].y - places[i].y));
    for (size_t k = i; k-- > 0 && places[i].x - places[k].x < best;)
        best = fmin(best, hypot(places[k].x - places[i].x, places[k].y - places[i].y));
    return best;
}

static void add_frame(struct moments *m, struct place *places, size_t n)
{
    qsort(places, n, sizeof(*places), compare_places);
    for (size_t i = 0; i < n && n > 1; i++) {
        const double distance = nearest(places, n, i);
        m->sum += distance;
        m->squares += distance * distance;
        m->n++;
    }
}

static void end_moments(const struct moments *m, double *mean, double *sd)
{
    const double n = (double)m->n;
    *mean = m->n > 0 ? m->sum / n : NAN;
    *sd = m->n > 1 ? sqrt(fmax(0, m->squares - n * *mean * *mean) / (n - 1)) : NAN;
}

/* scale: dx, dy of a pixel. */
static void find_neighbours(const struct oct_cells_rows *rows, double dx, double dy,
                            struct place *places, double *mean, double *sd)
{
    struct moments m = {0};
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const struct oct_cells_row *r = &rows->rows[i];
        if (is_seen(r))
            places[n++] = (struct place){r->x_px * dx, r->y_px * dy};
        if (i + 1 == rows->n || rows->rows[i + 1].frame != r->frame) {
            add_frame(&m, places, n);
            n = 0;
        }
    }
    end_moments(&m, mean, sd);
}

/* ---- flux ---- */

/* On which side of the line through a and b; 0 on it. */
static double side(const struct oct_cells_line *l, double x, double y)
{
    return (l->x1 - l->x0) * (y - l->y0) - (l->y1 - l->y0) * (x - l->x0);
}

/* Whether the step from p to q crosses the line. A step that begins on it counts with the one
 * before. */
static bool crosses(const struct oct_cells_line *l, const struct oct_cells_row *p,
                    const struct oct_cells_row *q)
{
    const double before = side(l, p->x_px, p->y_px), after = side(l, q->x_px, q->y_px);
    if ((before > 0) == (after > 0))
        return false;
    const struct oct_cells_line step = {p->x_px, p->y_px, q->x_px, q->y_px};
    return (side(&step, l->x0, l->y0) > 0) != (side(&step, l->x1, l->y1) > 0);
}

/* Tracks that cross the line an odd number of times. */
static uint64_t count_crossings(const struct oct_cells_rows *rows, const size_t *order,
                                const struct oct_cells_line *line)
{
    uint64_t n = 0;
    bool is_over = false;
    for (size_t i = 1; i < rows->n; i++) {
        const struct oct_cells_row *p = &rows->rows[order[i - 1]], *q = &rows->rows[order[i]];
        const bool is_same = p->track == q->track && p->track > 0;
        if (!is_same)
            is_over = false;
        else if (crosses(line, p, q)) {
            is_over = !is_over;
            n = is_over ? n + 1 : n - 1;
        }
    }
    return n;
}

static enum oct_err find_flux(struct oct_cells_summary *s, const struct oct_cells_run *run,
                              struct oct_error *err)
{
    const struct oct_cells_line *l = &run->line;
    if (!run->has_line)
        return OCT_OK;
    size_t *order = oct_cells_rows_by_track(&run->rows);
    if (!order)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    const double length = hypot(l->x1 - l->x0, l->y1 - l->y0);
    const double reach = 2 * run->params.radius;
    const double nx = -(l->y1 - l->y0) / length * reach, ny = (l->x1 - l->x0) / length * reach;
    const double x = (l->x0 + l->x1) / 2, y = (l->y0 + l->y1) / 2;
    const struct oct_cells_line across = {x - nx, y - ny, x + nx, y + ny};
    const double seconds = run->last_s - run->first_s;
    s->has_line = true;
    s->n_over = count_crossings(&run->rows, order, l);
    s->n_past = count_crossings(&run->rows, order, &across);
    s->over_s = seconds > 0 ? (double)s->n_over / seconds : NAN;
    s->past_s = seconds > 0 ? (double)s->n_past / seconds : NAN;
    free(order);
    return OCT_OK;
}

/* ---- all ---- */

/* mm^2 of the pixels where a cell can be found. */
static double searched_mm2(const struct oct_cells_run *run)
{
    const double border = 2.0 * oct_cells_border(&run->params);
    return (run->grid.width - border) * (run->grid.height - border) * run->grid.um * run->grid.um /
           UM2_PER_MM2 * run->valid_share;
}

static uint64_t count_tracks(const struct oct_cells_rows *rows, const size_t *order)
{
    uint64_t n = 0, last = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const uint64_t track = rows->rows[order[i]].track;
        n += track != last;
        last = track;
    }
    return n;
}

static enum oct_err count(struct oct_cells_summary *s, const struct oct_cells_run *run,
                          struct oct_error *err)
{
    const struct oct_cells_rows *rows = &run->rows;
    size_t *order = oct_cells_rows_by_track(rows);
    if (!order)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    s->n_tracks = count_tracks(rows, order);
    free(order);
    s->n_cells = rows->n;
    for (size_t i = 0; i < rows->n; i++)
        s->n_seen += is_seen(&rows->rows[i]);
    const uint64_t n_searched = run->n - run->n_blank;
    s->cells_a_frame = n_searched > 0 ? (double)s->n_seen / (double)n_searched : NAN;
    s->density_mm2 = s->cells_a_frame / searched_mm2(run);
    return OCT_OK;
}

enum oct_err oct_cells_summarise(struct oct_cells_summary *summary, const struct oct_cells_run *run,
                                 struct oct_error *err)
{
    struct oct_cells_summary *s = summary;
    *s = (struct oct_cells_summary){.n_frames = run->n,
                                    .n_blank = run->n_blank,
                                    .highest = run->highest,
                                    .running = run->running};
    const size_t n = run->rows.n + 1;
    double *speeds = malloc(n * sizeof(*speeds));
    struct place *places = malloc(n * sizeof(*places));
    if (!speeds || !places) {
        free(speeds);
        free(places);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    }
    enum oct_err e = count(s, run, err);
    if (!e) {
        find_speeds(&s->um_s, &run->rows, true, speeds);
        find_speeds(&s->px_frame, &run->rows, false, speeds);
        find_neighbours(&run->rows, 1, 1, places, &s->nearest_px, &s->nearest_sd_px);
        find_neighbours(&run->rows, run->um[1], run->um[0], places, &s->nearest_um,
                        &s->nearest_sd_um);
        if (!oct_cells_run_has_um(run))
            s->nearest_um = s->nearest_sd_um = NAN;
        e = find_flux(s, run, err);
    }
    free(speeds);
    free(places);
    return e;
}

/* ---- lines ---- */

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_speeds(const char *name, const struct oct_cells_speeds *s, const char *unit)
{
    if (s->n > 0)
        printf("%-18s%.4g (p10 %.4g, p90 %.4g) %s\n", name, s->p50, s->p10, s->p90, unit);
}

static void print_flux(const struct oct_cells_summary *s)
{
    if (!s->has_line)
        return;
    printf("%-18s%" PRIu64 " over the line, %" PRIu64 " past its middle", "flux", s->n_over,
           s->n_past);
    if (!isnan(s->over_s))
        printf(" (%.4g and %.4g cells/s)", s->over_s, s->past_s);
    printf("\n");
}

void oct_cells_summary_print(const struct oct_cells_summary *s)
{
    printf("%-18s%" PRIu64 " in %" PRIu64 " frame%s", "cells", s->n_seen, s->n_frames,
           plural(s->n_frames));
    if (s->n_frames > 1 && s->n_seen > 0)
        printf(", %.4g a frame", s->cells_a_frame);
    printf("\n");
    if (s->n_tracks > 0)
        printf("%-18s%" PRIu64 "\n", "tracks", s->n_tracks);
    if (s->n_seen > 0 && !isnan(s->density_mm2))
        printf("%-18s%.4g cells/mm2\n", "density", s->density_mm2);
    if (!isnan(s->nearest_um))
        printf("%-18s%.4g um, sd %.4g um\n", "nearest neighbour", s->nearest_um, s->nearest_sd_um);
    else if (!isnan(s->nearest_px))
        printf("%-18s%.4g px, sd %.4g px\n", "nearest neighbour", s->nearest_px, s->nearest_sd_px);
    if (s->um_s.n > 0)
        print_speeds("speed", &s->um_s, "um/s");
    else
        print_speeds("speed", &s->px_frame, "px a frame");
    print_flux(s);
    printf("%-18s%.2f s, %.1f frames/s (%s)\n", "took", s->seconds,
           s->seconds > 0 ? (double)s->n_frames / s->seconds : 0, s->running);
}

/* ---- JSON ---- */

static void add_speeds(cJSON *o, const char *name, const struct oct_cells_speeds *s)
{
    cJSON *speeds = cJSON_AddObjectToObject(o, name);
    oct_command_add_number(speeds, "n", (double)s->n);
    oct_command_add_number(speeds, "p10", s->p10);
    oct_command_add_number(speeds, "p50", s->p50);
    oct_command_add_number(speeds, "p90", s->p90);
}

static cJSON *json_of(const struct oct_cells_summary *s)
{
    cJSON *o = cJSON_CreateObject();
    oct_command_add_number(o, "frames", (double)s->n_frames);
    oct_command_add_number(o, "frames_blank", (double)s->n_blank);
    oct_command_add_number(o, "cells", (double)s->n_seen);
    oct_command_add_number(o, "rows", (double)s->n_cells);
    oct_command_add_number(o, "tracks", (double)s->n_tracks);
    oct_command_add_number(o, "cells_a_frame", s->cells_a_frame);
    oct_command_add_number(o, "density_per_mm2", s->density_mm2);
    oct_command_add_number(o, "nearest_neighbour_px", s->nearest_px);
    oct_command_add_number(o, "nearest_neighbour_sd_px", s->nearest_sd_px);
    oct_command_add_number(o, "nearest_neighbour_um", s->nearest_um);
    oct_command_add_number(o, "nearest_neighbour_sd_um", s->nearest_sd_um);
    add_speeds(o, "speed_um_s", &s->um_s);
    add_speeds(o, "speed_px_frame", &s->px_frame);
    oct_command_add_number(o, "flux_over_line", s->has_line ? (double)s->n_over : NAN);
    oct_command_add_number(o, "flux_over_line_per_s", s->has_line ? s->over_s : NAN);
    oct_command_add_number(o, "flux_past_middle", s->has_line ? (double)s->n_past : NAN);
    oct_command_add_number(o, "flux_past_middle_per_s", s->has_line ? s->past_s : NAN);
    oct_command_add_number(o, "highest_score", s->highest);
    oct_command_add_number(o, "seconds", s->seconds);
    cJSON_AddStringToObject(o, "backend", s->running);
    return o;
}

enum oct_err oct_cells_summary_json(void *summary, const char *path, bool force,
                                    struct oct_error *err)
{
    struct oct_whole_file file;
    cJSON *tree = json_of(summary);
    char *text = cJSON_Print(tree);
    cJSON_Delete(tree);
    if (!text)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    enum oct_err e = oct_whole_file_init(&file, path, force, err);
    if (!e) {
        FILE *stream = fopen(file.work, "wxe");
        bool ok = stream && fprintf(stream, "%s\n", text) >= 0 && fflush(stream) == 0;
        int error = ok ? 0 : errno; /* fclose may set another */
        if (stream && fclose(stream) != 0 && ok) {
            error = errno;
            ok = false;
        }
        e = ok ? oct_whole_file_publish(&file, err)
               : oct_fail_errno(err, OCT_E_IO, error, "%s: cannot be written", path);
        if (!ok)
            oct_whole_file_discard(&file);
    }
    cJSON_free(text);
    return e;
}
