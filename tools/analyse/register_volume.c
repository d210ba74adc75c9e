/* register --as volume: each B-scan of a volume onto those before it. */
#include "analysis/align/volume.h"
#include "formats/csv.h"
#include "formats/results.h"
#include "numeric/order.h"
#include "plot/plot.h"
#include "tools/analyse/register.h"
#include "tools/analyse/register_files.h"
#include "tools/commands.h"
#include "tools/outputs.h"
#include "tools/progress.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
    const struct oct_register *r;
    struct oct_pictures *pictures;
    uint32_t n, height, width; /* B-scans, A-lines, depth pixels */
    uint64_t *time_ns;         /* [n] */
    double um[2];
    bool is_db;
    uint8_t *skip;
    struct oct_volume_shift *shifts; /* [n] */
    struct oct_volume_choice choice;
    struct oct_results *results;
    struct oct_render render;
    float *moved;    /* [render.height][render.width] */
    float *section;  /* [n][render.width]: the middle A-line of each; NULL: no --png */
    double *dy, *dx; /* [height] */
    struct oct_progress progress;
};

static bool is_used(const struct oct_volume_shift *s)
{
    return s->fate == OCT_VOLUME_USED || s->fate == OCT_VOLUME_NEW;
}

static enum oct_err read_bscan(void *context, uint32_t b, struct oct_picture *picture,
                               struct oct_error *err)
{
    struct job *job = context;

    return oct_register_read(job->r, job->pictures, b, picture, NULL, err);
}

static void show(void *context, uint64_t done, uint64_t all)
{
    struct job *job = context;

    oct_progress_show(&job->progress, done, all);
}

/* ---- what is given ---- */

static enum oct_err open_volume(struct job *job, struct oct_error *err)
{
    const struct oct_register *r = job->r;
    struct oct_pictures_info info;
    struct oct_picture first = {0};
    enum oct_err e = oct_pictures_open(&job->pictures, r->inputs, r->n_inputs, &r->pictures, err);
    uint64_t n = e ? 0 : oct_pictures_count(job->pictures);

    if (!e && (n < 2 || n > UINT32_MAX / 2))
        e = oct_fail(err, OCT_E_FORMAT, "%s: %llu B-scans: a volume has two at least", r->inputs[0],
                     (unsigned long long)n);
    e = e ? e : oct_pictures_read(job->pictures, 0, &first, &info, err);
    if (e)
        return e;
    job->n = (uint32_t)n;
    job->height = first.height;
    job->width = first.width;
    job->um[0] = info.um[0];
    job->um[1] = info.um[1];
    job->is_db = info.is_db;
    oct_picture_finish(&first);
    job->time_ns = calloc(n, sizeof(*job->time_ns));
    job->shifts = calloc(n, sizeof(*job->shifts));
    job->dy = calloc(job->height, sizeof(double));
    job->dx = calloc(job->height, sizeof(double));
    if (!job->time_ns || !job->shifts || !job->dy || !job->dx)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u B-scans", job->n);
    return oct_register_read_skip(r->options.skip, n, &job->skip, err);
}

/* The shifts of --shifts: that of a B-scan's first A-line is that of the B-scan. */
static enum oct_err take_given(struct job *job, struct oct_error *err)
{
    struct oct_strip *given;
    enum oct_err e =
        oct_register_read_shifts(job->r->options.shifts, job->n, job->height, &given, err);

    for (uint32_t b = 0; !e && b < job->n; b++) {
        const struct oct_strip *s = &given[(size_t)b * job->height];
        bool skipped = !s->ok || (job->skip && job->skip[b]);
        job->shifts[b] =
            skipped ? (struct oct_volume_shift){NAN, NAN, NAN, OCT_VOLUME_SKIPPED}
                    : (struct oct_volume_shift){(double)s->dy, (double)s->dx, NAN, OCT_VOLUME_USED};
    }
    free(given);
    job->choice.running = "given";
    return e;
}

static enum oct_err find_shifts(struct job *job, struct oct_error *err)
{
    const struct oct_register *r = job->r;
    const struct oct_volume_source source = {
        .context = job, .n_bscans = job->n, .read = read_bscan, .progress = show};
    const struct oct_volume_setup setup = {
        .height = job->height,
        .width = job->width,
        .lateral = r->options.lateral,
        .max_dy = (uint32_t)r->options.search,
        .max_dx = (uint32_t)r->options.search,
        .min_score = r->setup.min_score,
        .skip = job->skip,
        .backend = r->setup.backend,
        .gpus = r->setup.gpus,
    };

    if (r->options.shifts)
        return take_given(job, err);
    return oct_volume_register(&setup, &source, job->shifts, &job->choice, err);
}

/* ---- the moved volume ---- */

static void fill_shift(struct job *job, uint32_t b)
{
    for (uint32_t y = 0; y < job->height; y++) {
        job->dy[y] = job->shifts[b].dy;
        job->dx[y] = job->shifts[b].dx;
    }
}

static enum oct_err open_canvas(struct job *job, struct oct_error *err)
{
    const struct oct_register *r = job->r;
    struct oct_render_box box = {0};

    for (uint32_t b = 0; b < job->n; b++) {
        if (!is_used(&job->shifts[b]))
            continue;
        fill_shift(job, b);
        oct_render_grow(&box, job->height, job->width, job->dy, job->dx);
    }
    if (r->setup.common && (box.common_y0 > box.common_y1 || box.common_x0 > box.common_x1))
        return oct_fail(err, OCT_E_ARG, "--crop common: the B-scans have no pixel in common");
    bool common = r->setup.common;
    enum oct_err e = oct_render_init(
        &job->render, common ? box.common_y0 : box.y0, common ? box.common_y1 : box.y1,
        common ? box.common_x0 : box.x0, common ? box.common_x1 : box.x1, r->setup.interpolation,
        job->is_db && r->is_linear, err);
    if (e)
        return e;
    job->moved = calloc((size_t)job->render.height * job->render.width, sizeof(float));
    if (r->options.png)
        job->section = calloc((size_t)job->n * job->render.width, sizeof(float));
    if (!job->moved || (r->options.png && !job->section))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the moved volume");
    return OCT_OK;
}

/* Moves B-scan b into job->moved, NaN where it does not reach, or where it is left out. */
static enum oct_err move_bscan(struct job *job, uint32_t b, struct oct_error *err)
{
    size_t n = (size_t)job->render.height * job->render.width;
    struct oct_pictures_info info;
    struct oct_picture picture;
    enum oct_err e = oct_register_read(job->r, job->pictures, b, &picture, &info, err);

    if (e)
        return e;
    job->time_ns[b] = info.time_ns;
    for (size_t i = 0; i < n; i++)
        job->moved[i] = NAN;
    if (is_used(&job->shifts[b])) {
        fill_shift(job, b);
        oct_render_clear(&job->render);
        oct_render_add(&job->render, &picture, job->dy, job->dx);
        oct_render_average(&job->render, job->moved, NULL);
    }
    if (job->section)
        memcpy(job->section + (size_t)b * job->render.width,
               job->moved + (size_t)(job->render.height / 2) * job->render.width,
               job->render.width * sizeof(float));
    oct_picture_finish(&picture);
    return OCT_OK;
}

static enum oct_err write_volume(struct job *job, struct oct_error *err)
{
    enum oct_err e = open_canvas(job, err);
    const uint64_t dims[3] = {job->n, job->render.height, job->render.width};
    const double origin[2] = {job->render.origin_y, job->render.origin_x};
    static const char *const axes[3] = {"bscan", "line", "depth"};
    const double um[3] = {NAN, job->um[0], job->um[1]};
    unsigned bscans = 0;

    if (e)
        return e;
    if (job->results && !job->r->options.shifts_only) {
        bscans = oct_results_dataset(job->results, "/bscans", OCT_RESULTS_F32, 3, dims,
                                     job->is_db ? "dB" : NULL);
        oct_results_numbers(job->results, "/bscans", "origin_px", origin, 2);
        oct_results_axes(job->results, bscans, axes, um);
    }
    for (uint32_t b = 0; !e && b < job->n; b++) {
        e = move_bscan(job, b, err);
        if (!e && job->results && !job->r->options.shifts_only) {
            oct_results_write_rows(job->results, bscans, b, 1, job->moved);
            e = oct_results_error(job->results, err);
        }
    }
    return e;
}

/* ---- the other files ---- */

static void write_rows(struct job *job)
{
    const uint64_t n = job->n, pairs[2] = {n, 2};
    struct oct_results *f = job->results;
    unsigned shift = oct_results_dataset(f, "/frames/shift_px", OCT_RESULTS_F64, 2, pairs, "px");
    unsigned score = oct_results_dataset(f, "/frames/score", OCT_RESULTS_F64, 1, &n, NULL);
    unsigned used = oct_results_dataset(f, "/frames/used", OCT_RESULTS_U8, 1, &n, NULL);
    unsigned reason = oct_results_dataset(f, "/frames/reason", OCT_RESULTS_U8, 1, &n, NULL);
    unsigned time = oct_results_dataset(f, "/frames/time_ns", OCT_RESULTS_U64, 1, &n, "ns");

    oct_results_text(f, "/frames/shift_px", "axes", "A-lines, depth");
    oct_results_text(f, "/frames/reason", "meaning",
                     "0 used, 1 blank, 2 no fit, 3 new place, 4 skipped");
    for (uint64_t b = 0; b < n; b++) {
        const struct oct_volume_shift *s = &job->shifts[b];
        const double pair[2] = {s->dy, s->dx};
        const uint8_t fate = (uint8_t)s->fate, is = is_used(s);
        oct_results_write_rows(f, shift, b, 1, pair);
        oct_results_write_rows(f, score, b, 1, &s->score);
        oct_results_write_rows(f, used, b, 1, &is);
        oct_results_write_rows(f, reason, b, 1, &fate);
    }
    oct_results_write(f, time, job->time_ns);
    oct_register_write_settings(f, job->r);
    oct_register_write_paths(f, "/frames/files", n, job->pictures);
    oct_results_text(f, NULL, "model", job->r->options.lateral ? "axial and lateral" : "axial");
    oct_results_text(f, NULL, "backend", job->choice.running);
    oct_results_number(f, NULL, "smooth_px", job->choice.smooth_px);
    oct_results_numbers(f, NULL, "um_px", job->um, 2);
    oct_results_text(f, NULL, "sign",
                     "shift (dy, dx) moves pixel p of a B-scan to p + shift of the moved volume");
}

static enum oct_err write_csv(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct job *job = context;
    struct oct_csv *csv;
    enum oct_err e = oct_csv_create(&csv, path, force,
                                    "frame,line,time_s,dy_px,dx_px,dy_um,dx_um,score,file", err);

    if (e)
        return e;
    for (uint32_t b = 0; b < job->n; b++) {
        const struct oct_volume_shift *s = &job->shifts[b];
        oct_csv_count(csv, b);
        oct_csv_count(csv, 0);
        oct_csv_number(csv, oct_register_seconds(job->time_ns, NULL, job->n, b));
        oct_csv_number(csv, s->dy);
        oct_csv_number(csv, s->dx);
        oct_csv_number(csv, s->dy * job->um[0]);
        oct_csv_number(csv, s->dx * job->um[1]);
        oct_csv_number(csv, s->score);
        oct_csv_text(csv, oct_pictures_path(job->pictures, b));
        oct_csv_end_row(csv);
    }
    return oct_csv_publish(csv, err);
}

static enum oct_err plot_section(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct job *job = context;
    const struct oct_plot_picture section = {.footer = "the middle A-line of each B-scan",
                                             .pixels = job->section,
                                             .height = job->n,
                                             .width = job->render.width};

    return oct_plot_write_picture(path, force, &section, err);
}

static enum oct_err plot_motion(void *context, const char *path, bool force, struct oct_error *err)
{
    const struct job *job = context;
    size_t n = job->n;
    double *x = calloc(3 * n, sizeof(double)), *dy = x ? x + n : NULL, *dx = x ? x + 2 * n : NULL;

    if (!x)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a plot");
    for (size_t b = 0; b < n; b++) {
        x[b] = (double)b;
        dy[b] = job->shifts[b].dy;
        dx[b] = job->shifts[b].dx;
    }
    const struct oct_plot_series series[2] = {{.x = x, .y = dx, .n = n, .label = "depth"},
                                              {.x = x, .y = dy, .n = n, .label = "A-lines"}};
    const struct oct_plot_lines plot = {.title = "Motion",
                                        .x_label = "B-scan",
                                        .y_label = "shift (px)",
                                        .series = series,
                                        .n_series = job->r->options.lateral ? 2 : 1};
    enum oct_err e = oct_plot_write_lines(path, force, &plot, err);
    free(x);
    return e;
}

/* ---- the summary ---- */

struct summary {
    uint32_t n_used;
    double score, least[2], most[2]; /* score: median */
};

static struct summary sum_up(const struct job *job)
{
    struct summary s = {
        .score = NAN, .least = {HUGE_VAL, HUGE_VAL}, .most = {-HUGE_VAL, -HUGE_VAL}};
    double *scores = calloc(job->n, sizeof(double));
    size_t n = 0;

    for (uint32_t b = 0; b < job->n; b++) {
        const struct oct_volume_shift *shift = &job->shifts[b];
        if (!is_used(shift))
            continue;
        s.n_used++;
        s.least[0] = fmin(s.least[0], shift->dy);
        s.most[0] = fmax(s.most[0], shift->dy);
        s.least[1] = fmin(s.least[1], shift->dx);
        s.most[1] = fmax(s.most[1], shift->dx);
        if (scores && !isnan(shift->score))
            scores[n++] = shift->score;
    }
    if (scores && n) {
        oct_doubles_sort(scores, n);
        s.score = scores[n / 2];
    }
    free(scores);
    return s;
}

static enum oct_err print_json(void *context, struct oct_error *err)
{
    const struct job *job = context;
    const struct summary s = sum_up(job);
    cJSON *o = cJSON_CreateObject();

    cJSON_AddNumberToObject(o, "bscans", job->n);
    cJSON_AddNumberToObject(o, "used", s.n_used);
    if (!isnan(s.score))
        cJSON_AddNumberToObject(o, "score", s.score);
    for (int i = 0; i < 2; i++) {
        const double range[2] = {s.least[i], s.most[i]};
        cJSON_AddItemToObject(o, i ? "dx_px" : "dy_px", cJSON_CreateDoubleArray(range, 2));
    }
    cJSON_AddNumberToObject(o, "smooth_px", job->choice.smooth_px);
    cJSON *left = cJSON_AddArrayToObject(o, "left_out");
    for (uint32_t b = 0; b < job->n; b++) {
        if (job->shifts[b].fate == OCT_VOLUME_USED)
            continue;
        cJSON *one = cJSON_CreateObject();
        cJSON_AddNumberToObject(one, "frame", b);
        cJSON_AddStringToObject(one, "reason", oct_volume_fate_text(job->shifts[b].fate));
        cJSON_AddItemToArray(left, one);
    }
    cJSON_AddStringToObject(o, "backend", job->choice.running);
    if (job->r->out)
        cJSON_AddStringToObject(o, "out", job->r->out);
    bool printed = oct_command_print_json(o);
    cJSON_Delete(o);
    return printed ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

static void print_summary(void *context)
{
    const struct job *job = context;
    const struct summary s = sum_up(job);
    const char *before = "; ";

    printf("%s%s%u of %u B-scans used", job->r->out ? job->r->out : "", job->r->out ? ": " : "",
           s.n_used, job->n);
    if (!isnan(s.score))
        printf(", median score %.3f", oct_command_shown(s.score, 3));
    printf(", depth %.2f to %.2f px", oct_command_shown(s.least[1], 2),
           oct_command_shown(s.most[1], 2));
    if (job->r->options.lateral)
        printf(", A-lines %.2f to %.2f", oct_command_shown(s.least[0], 2),
               oct_command_shown(s.most[0], 2));
    for (uint32_t b = 0; b < job->n; b++) {
        uint32_t last = b;
        if (job->shifts[b].fate == OCT_VOLUME_USED)
            continue;
        while (last + 1 < job->n && job->shifts[last + 1].fate == job->shifts[b].fate)
            last++;
        printf("%s%u", before, b);
        if (last > b)
            printf("-%u", last);
        printf(" (%s)", oct_volume_fate_text(job->shifts[b].fate));
        before = ", ";
        b = last;
    }
    printf("\n");
}

/* ---- all of it ---- */

static enum oct_err write_all(struct job *job, struct oct_error *err)
{
    enum oct_err e = OCT_OK;

    if (job->r->out)
        e = oct_results_create(&job->results, job->r->out, "volume", job->r->options.force, err);
    e = e ? e : write_volume(job, err);
    if (!e && job->results)
        write_rows(job);
    const struct oct_register_writers writers = {write_csv,  plot_section,  plot_motion,
                                                 print_json, print_summary, job};
    return e ? e : oct_register_publish(job->r, &job->results, &writers, err);
}

static enum oct_err run(const struct oct_register *r, struct oct_error *err)
{
    struct job job = {.r = r, .progress = {.what = "B-scans", .quiet = r->config->quiet}};
    enum oct_err e = oct_register_check_files(r, true, err);

    e = e ? e : open_volume(&job, err);
    e = e ? e : find_shifts(&job, err);
    e = e ? e : write_all(&job, err);
    oct_results_discard(job.results);
    oct_pictures_close(job.pictures);
    oct_render_finish(&job.render);
    free(job.time_ns);
    free(job.skip);
    free(job.shifts);
    free(job.moved);
    free(job.section);
    free(job.dy);
    free(job.dx);
    return e;
}

const struct oct_register_mode oct_register_volume = {
    .name = "volume", .use = OCT_REGISTER_VOLUME, .run = run};
