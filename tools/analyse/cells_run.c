#include "tools/analyse/cells_run.h"

#include "numeric/order.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define MOST_KYMOGRAPH_ROWS 2048u
#define N_SAMPLED_FRAMES 16u /* whose brightness decides what is black and white */
#define N_SAMPLES_A_FRAME 8192u
#define SAME_SCALE 1e-3

bool oct_cells_run_has_um(const struct oct_cells_run *run)
{
    return isfinite(run->um[0]) && isfinite(run->um[1]);
}

/* ---- pictures ---- */

static enum oct_err apply_mask(const struct oct_picture *mask, struct oct_picture *picture,
                               struct oct_error *err)
{
    const size_t n = (size_t)picture->height * picture->width;
    for (size_t i = 0; i < n; i++)
        if (mask->pixels[i] == 0 || (mask->valid && !mask->valid[i]))
            picture->pixels[i] = NAN;
    return oct_picture_mask_not_finite(picture, err);
}

enum oct_err oct_cells_run_read(struct oct_cells_run *run, uint64_t frame,
                                struct oct_picture *picture, struct oct_pictures_info *info,
                                struct oct_error *err)
{
    struct oct_pictures_info about;
    enum oct_err e = oct_pictures_read(run->pictures, frame, picture, &about, err);
    if (e)
        return e;
    if (run->is_turned) {
        const double um_y = about.um[0];
        about.um[0] = about.um[1];
        about.um[1] = um_y;
        e = oct_picture_transpose(picture, err);
    }
    if (!e && run->mask.pixels)
        e = apply_mask(&run->mask, picture, err);
    if (e)
        oct_picture_finish(picture);
    else if (info)
        *info = about;
    return e;
}

/* Lies as the pictures are shown. */
static enum oct_err load_mask(struct oct_cells_run *run, struct oct_error *err)
{
    const struct oct_pictures_options plain = {.raw = true, .any_side = true};
    struct oct_pictures *pictures;
    if (!run->mask_path)
        return OCT_OK;
    enum oct_err e = oct_pictures_open(&pictures, &run->mask_path, 1, &plain, err);
    if (!e)
        e = oct_pictures_read(pictures, 0, &run->mask, NULL, err);
    oct_pictures_close(pictures);
    if (e)
        return e;
    if (run->mask.height == run->height && run->mask.width == run->width)
        return OCT_OK;
    return oct_fail(err, OCT_E_ARG, "%s: a mask of %u x %u px, but the pictures have %u x %u",
                    run->mask_path, run->mask.width, run->mask.height, run->width, run->height);
}

/* ---- the beginning ---- */

static enum oct_err check_line(const struct oct_cells_run *run, struct oct_error *err)
{
    const struct oct_cells_line *l = &run->line;
    const double x_most = run->width - 1.0, y_most = run->height - 1.0;
    if (!run->has_line ||
        (fmin(l->x0, l->x1) >= 0 && fmax(l->x0, l->x1) <= x_most && fmin(l->y0, l->y1) >= 0 &&
         fmax(l->y0, l->y1) <= y_most && hypot(l->x1 - l->x0, l->y1 - l->y0) >= 1))
        return OCT_OK;
    return oct_fail(err, OCT_E_ARG,
                    "--along %g,%g,%g,%g: must be a px long and lie within 0,0,%g,%g", l->x0, l->y0,
                    l->x1, l->y1, x_most, y_most);
}

static enum oct_err make_kymograph(struct oct_cells_run *run, struct oct_error *err)
{
    struct oct_cells_kymograph *k = &run->kymograph;
    if (!run->has_line)
        return OCT_OK;
    k->n_x =
        (uint32_t)ceil(hypot(run->line.x1 - run->line.x0, run->line.y1 - run->line.y0) - 1e-9) + 1;
    k->frames_a_row = (run->n_all - 1) / MOST_KYMOGRAPH_ROWS + 1;
    k->n_t = (uint32_t)((run->n_all - 1) / k->frames_a_row + 1);
    k->values = calloc((size_t)k->n_t * k->n_x, sizeof(*k->values));
    k->n_added = calloc((size_t)k->n_t * k->n_x, sizeof(*k->n_added));
    return k->values && k->n_added ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
}

static enum oct_err make_film(struct oct_cells_run *run, struct oct_error *err)
{
    struct oct_cells_film_setup *s = &run->film_setup;
    s->height = run->height;
    s->width = run->width;
    s->um[0] = run->um[0];
    s->um[1] = run->um[1];
    s->keeps_fields = run->maps_path != NULL && !s->detect_only;
    enum oct_err e = oct_cells_film_create(&run->film, s, err);
    if (e)
        return e;
    oct_cells_film_grid(run->film, &run->grid);
    run->params = *oct_cells_film_params(run->film);
    if (run->maps_path)
        e = oct_cells_maps_create(&run->maps, run->maps_path, run->force, run->film, run->n_all,
                                  err);
    return e;
}

/* Of what size the pictures are, and their pixels. */
static enum oct_err look_at_first(struct oct_cells_run *run, struct oct_error *err)
{
    struct oct_picture first = {0};
    struct oct_pictures_info info;
    enum oct_err e = oct_cells_run_read(run, 0, &first, &info, err);
    if (e)
        return e;
    run->height = first.height;
    run->width = first.width;
    run->is_u8 = info.bits == 8 && info.is_integer && !info.is_db;
    for (int axis = 0; axis < 2 && !run->um_is_given; axis++)
        run->um[axis] = info.um[axis] > 0 && info.um[1 - axis] > 0 ? info.um[axis] : NAN;
    oct_picture_finish(&first);
    e = oct_pictures_times(run->pictures, 0, &run->times, err);
    run->first_s = run->last_s = run->times.start_s;
    if (!e && run->film_setup.max_speed_um_s > 0 && isnan(run->first_s))
        e = oct_fail(err, OCT_E_ARG, "--max-speed needs times: give --fps, the pictures a second");
    return e;
}

enum oct_err oct_cells_run_begin(struct oct_cells_run *run, struct oct_error *err)
{
    struct oct_cells_params *params = &run->film_setup.params;
    run->n_all = oct_pictures_count(run->pictures);
    if (!run->has_min_frames && params->min_frames > run->n_all)
        params->min_frames = (unsigned)run->n_all; /* a pair of pictures has tracks, too */
    run->samples = malloc((size_t)N_SAMPLED_FRAMES * N_SAMPLES_A_FRAME * sizeof(float));
    if (!run->samples)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    enum oct_err e = look_at_first(run, err);
    if (!e)
        e = load_mask(run, err);
    if (!e)
        e = check_line(run, err);
    if (!e)
        e = make_kymograph(run, err);
    if (!e)
        e = make_film(run, err);
    oct_cells_rows_init(&run->rows, run->params.min_frames);
    return e;
}

void oct_cells_run_finish(struct oct_cells_run *run)
{
    oct_cells_maps_discard(run->maps);
    oct_cells_film_destroy(run->film);
    oct_cells_rows_finish(&run->rows);
    oct_picture_finish(&run->mask);
    oct_pictures_times_finish(&run->times);
    free(run->kymograph.values);
    free(run->kymograph.n_added);
    free(run->samples);
    run->maps = NULL;
    run->film = NULL;
    run->samples = NULL;
    run->kymograph = (struct oct_cells_kymograph){.n_t = 0};
}

/* ---- what is seen of each picture ---- */

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
            sum += picture->valid && !picture->valid[at[i]]
                       ? NAN
                       : weight[i] * (double)picture->pixels[at[i]];
    return sum;
}

static void add_to_kymograph(struct oct_cells_run *run, uint64_t frame,
                             const struct oct_picture *picture)
{
    struct oct_cells_kymograph *k = &run->kymograph;
    const struct oct_cells_line *l = &run->line;
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

static void end_kymograph(struct oct_cells_run *run)
{
    struct oct_cells_kymograph *k = &run->kymograph;
    k->n_t = run->n > 0 && k->n_x > 0 ? (uint32_t)((run->n - 1) / k->frames_a_row + 1) : 0;
    for (size_t i = 0; i < (size_t)k->n_t * k->n_x; i++)
        k->values[i] = k->n_added[i] > 0 ? k->values[i] / (float)k->n_added[i] : NAN;
}

/* Some pixels of some frames, for the limits of what is shown. */
static void sample(struct oct_cells_run *run, uint64_t frame, const struct oct_picture *picture)
{
    const size_t n = (size_t)picture->height * picture->width;
    const size_t step = n / N_SAMPLES_A_FRAME + 1;
    const uint64_t every = (run->n_all - 1) / N_SAMPLED_FRAMES + 1;
    if (frame % every != 0)
        return;
    for (size_t i = 0; i < n; i += step)
        if (!picture->valid || picture->valid[i])
            run->samples[run->n_samples++] = picture->pixels[i];
}

/* Pictures of 8 bits are shown as they are, others between their darkest and brightest 0.2 %. */
static void find_limits(struct oct_cells_run *run)
{
    const size_t n = run->n_samples;
    run->lo = 0;
    run->hi = 255;
    if (run->is_u8 || n == 0)
        return;
    oct_floats_sort(run->samples, n);
    run->lo = (double)run->samples[n / 500];
    run->hi = (double)run->samples[n - 1 - n / 500];
    if (!(run->hi > run->lo))
        run->hi = run->lo + 1;
}

/* ---- the loop ---- */

static enum oct_err check_scale(const struct oct_cells_run *run,
                                const struct oct_pictures_info *info, struct oct_error *err)
{
    for (int axis = 0; axis < 2; axis++)
        if (!run->um_is_given && run->um[axis] > 0 &&
            !(fabs(info->um[axis] / run->um[axis] - 1) < SAME_SCALE))
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: pixels of %g x %g um, those before of %g x %g um: --pixel-um "
                            "says which are right",
                            info->path, info->um[1], info->um[0], run->um[1], run->um[0]);
    return OCT_OK;
}

static enum oct_err search(struct oct_cells_run *run, uint64_t frame,
                           const struct oct_picture *picture, struct oct_error *err)
{
    const struct oct_cells_times times = {
        .time_s = run->times.time_s, .of_columns = run->is_turned, .start_s = run->times.start_s};
    const struct oct_cells_found *found;
    unsigned n;
    enum oct_err e = oct_cells_film_push(run->film, picture, &times, 0, &found, &n, err);
    if (!e)
        e = oct_cells_rows_add(&run->rows, frame, found, n, err);
    if (!e && run->maps)
        e = oct_cells_maps_take(run->maps, run->film, frame, err);
    return e;
}

static void look(struct oct_cells_run *run, uint64_t frame, const struct oct_picture *picture)
{
    struct oct_picture_statistics s;
    oct_picture_look(picture, &s);
    run->n_blank += s.n_valid == 0 || !(s.most > s.least);
    run->valid_share += (double)s.n_valid / ((double)picture->height * picture->width);
    if (!run->is_u8)
        sample(run, frame, picture);
    if (run->has_line)
        add_to_kymograph(run, frame, picture);
}

static enum oct_err take_frame(struct oct_cells_run *run, uint64_t frame, struct oct_error *err)
{
    struct oct_picture picture = {0};
    struct oct_pictures_info info;
    enum oct_err e = oct_cells_run_read(run, frame, &picture, &info, err);
    if (!e)
        e = check_scale(run, &info, err);
    if (!e)
        e = oct_pictures_times(run->pictures, frame, &run->times, err);
    if (!e)
        e = search(run, frame, &picture, err);
    if (!e) {
        look(run, frame, &picture);
        run->last_s = run->times.start_s;
        run->n = frame + 1;
    }
    oct_picture_finish(&picture);
    return e;
}

enum oct_err oct_cells_run_all(struct oct_cells_run *run, const volatile sig_atomic_t *cancel,
                               void (*show)(void *context, uint64_t done, uint64_t all),
                               void *context, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (uint64_t i = 0; i < run->n_all && !e; i++) {
        e = *cancel ? oct_fail(err, OCT_E_STATE, "interrupted; nothing was written")
                    : take_frame(run, i, err);
        show(context, run->n, run->n_all);
    }
    oct_cells_rows_end(&run->rows);
    run->highest = oct_cells_film_highest(run->film);
    run->running = oct_cells_film_running(run->film);
    run->valid_share = run->n > 0 ? run->valid_share / (double)run->n : 0;
    find_limits(run);
    end_kymograph(run);
    return e;
}
