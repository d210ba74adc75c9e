#include "viewer/play/follow.h"

#include "analysis/align/prepare.h"
#include "analysis/align/rigid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SHIFT 3u /* 1 / n of each side */
#define MIN_OVERLAP 0.3

struct oct_play_follow {
    const struct oct_view_file *now;
    struct oct_play_recorded *recorded;
    struct oct_play_layers *layers;
    struct oct_view_enface enface, map[OCT_N_MAPS];
    uint32_t next;
    float *means;
    double shift_um[2]; /* of the open exam's middle from this one's, over the B-scans and across */
};

static bool knows_sizes(const struct oct_view_file *file)
{
    return file->slow_um > 0 && file->lateral_um > 0 && isfinite(file->axial_um);
}

enum oct_err oct_play_follow_open(struct oct_play_follow **out, const char *path,
                                  const struct oct_config *config, const struct oct_view_file *now,
                                  struct oct_error *err)
{
    struct oct_play_follow *f = calloc(1, sizeof(*f));
    *out = NULL;
    if (!f)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    f->now = now;
    enum oct_err e = oct_play_recorded_open(&f->recorded, path, config, 0, err);
    const struct oct_view_file *file = e ? NULL : oct_play_recorded_file(f->recorded);
    if (!e && (!knows_sizes(file) || !knows_sizes(now)))
        e = oct_fail(err, OCT_E_CONFIG, "%s: the size of %s is not known", file->name,
                     knows_sizes(file) ? "the open scan" : "its scan");
    e = e ? e : oct_play_layers_create(&f->layers, f->recorded, err);
    if (!e) {
        f->means = malloc(file->n_lines * sizeof(*f->means));
        bool fits = f->means && oct_view_enface_resize(&f->enface, file->n_bscans, file->n_lines);
        for (unsigned i = 0; i < OCT_N_MAPS; i++)
            fits = fits && oct_view_enface_resize(&f->map[i], file->n_bscans, file->n_lines);
        e = fits ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    }
    if (e)
        oct_play_follow_close(f);
    else
        *out = f;
    return e;
}

void oct_play_follow_close(struct oct_play_follow *f)
{
    if (!f)
        return;
    oct_play_layers_destroy(f->layers);
    oct_play_recorded_close(f->recorded);
    oct_view_enface_finish(&f->enface);
    for (unsigned i = 0; i < OCT_N_MAPS; i++)
        oct_view_enface_finish(&f->map[i]);
    free(f->means);
    free(f);
}

bool oct_play_follow_read(struct oct_play_follow *f, double *share)
{
    struct oct_view_enface *e = &f->enface;
    const struct oct_view_file *file = oct_play_recorded_file(f->recorded);
    *share = (double)f->next / e->n_rows;
    if (f->next == e->n_rows)
        return false;
    const uint32_t row = f->next++, v = (uint32_t)((uint64_t)row * file->n_bscans / e->n_rows);
    oct_play_recorded_means(f->recorded, v, f->means, NULL);
    for (uint32_t c = 0; c < e->n_columns; c++)
        e->value[(size_t)row * e->n_columns + c] =
            f->means[(uint64_t)c * e->n_lines / e->n_columns];
    oct_play_thickness(oct_play_layers_find(f->layers, v), file->axial_um, f->map, row);
    return true;
}

/* ---- one grid ---- */

/* um of a row and of a column. */
static void steps_of(const struct oct_view_enface *e, const struct oct_view_file *file,
                     double step[2])
{
    step[0] = file->slow_um * e->n_bscans / e->n_rows;
    step[1] = file->lateral_um * e->n_lines / e->n_columns;
}

/* Between the four values about a place; NaN beyond the picture, and where one of those that count
 * is not known. */
static float value_at(const struct oct_view_enface *e, double row, double column)
{
    const double r0 = floor(row), c0 = floor(column), part[2] = {row - r0, column - c0};
    double sum = 0;
    if (!(row >= -0.5 && column >= -0.5 && row <= e->n_rows - 0.5 && column <= e->n_columns - 0.5))
        return NAN;
    for (unsigned i = 0; i < 4; i++) {
        const double r = fmin(fmax(r0 + (i / 2), 0), e->n_rows - 1.0);
        const double c = fmin(fmax(c0 + (i % 2), 0), e->n_columns - 1.0);
        const double weight = (i / 2 ? part[0] : 1 - part[0]) * (i % 2 ? part[1] : 1 - part[1]);
        if (weight > 0)
            sum += weight * (double)e->value[(size_t)r * e->n_columns + (size_t)c];
    }
    return (float)sum;
}

/* Values of this exam at the places of the open one's grid, `shift` um off. */
static void sample(const struct oct_play_follow *f, const struct oct_view_enface *from,
                   const struct oct_view_enface *grid, const double shift_um[2], float *to)
{
    double now[2], then[2];
    steps_of(grid, f->now, now);
    steps_of(from, oct_play_recorded_file(f->recorded), then);
    for (uint32_t r = 0; r < grid->n_rows; r++)
        for (uint32_t c = 0; c < grid->n_columns; c++) {
            const double y = (r + 0.5 - grid->n_rows / 2.) * now[0] + shift_um[0];
            const double x = (c + 0.5 - grid->n_columns / 2.) * now[1] + shift_um[1];
            to[(size_t)r * grid->n_columns + c] =
                value_at(from, y / then[0] + from->n_rows / 2. - 0.5,
                         x / then[1] + from->n_columns / 2. - 0.5);
        }
}

static enum oct_err find_shift(const struct oct_picture *now, const struct oct_picture *then,
                               struct oct_shift *shift, struct oct_error *err)
{
    const struct oct_rigid_setup setup = {.height = now->height,
                                          .width = now->width,
                                          .max_dy = now->height / MOST_SHIFT,
                                          .max_dx = now->width / MOST_SHIFT,
                                          .min_overlap = MIN_OVERLAP,
                                          .masked = true,
                                          .backend = "cpu",
                                          .gpus = ""};
    struct oct_rigid *rigid = NULL;
    enum oct_err e = oct_rigid_create(&rigid, &setup, err);
    e = e ? e : oct_rigid_set_reference(rigid, now, err);
    e = e ? e : oct_rigid_find(rigid, then, shift, err);
    oct_rigid_destroy(rigid);
    return e;
}

/* The open exam's picture from above, or (by a shift) this one's, ready to be matched. */
static enum oct_err picture_of(const struct oct_play_follow *f, const struct oct_view_enface *grid,
                               const struct oct_view_enface *from, struct oct_picture *picture,
                               struct oct_error *err)
{
    const double none[2] = {0, 0};
    enum oct_err e = oct_picture_init(picture, grid->n_rows, grid->n_columns, false, err);
    if (e)
        return e;
    if (from == grid)
        memcpy(picture->pixels, grid->value,
               (size_t)grid->n_rows * grid->n_columns * sizeof(*picture->pixels));
    else
        sample(f, from, grid, none, picture->pixels);
    e = oct_picture_mask_not_finite(picture, err);
    return e ? e : oct_align_prepare(picture, err);
}

static enum oct_err subtract(const struct oct_play_follow *f, const struct oct_view_enface *now,
                             const struct oct_view_enface *then, struct oct_view_enface *change,
                             double *mean, struct oct_error *err)
{
    double sum = 0, n = 0;
    if (!oct_view_enface_resize(change, now->n_bscans, now->n_lines))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    sample(f, then, now, f->shift_um, change->value);
    for (size_t i = 0; i < (size_t)now->n_rows * now->n_columns; i++) {
        change->value[i] = now->value[i] - change->value[i];
        if (isfinite(change->value[i])) {
            sum += (double)change->value[i];
            n++;
        }
    }
    *mean = n > 0 ? sum / n : NAN;
    memcpy(change->unit, now->unit, sizeof(change->unit));
    return OCT_OK;
}

enum oct_err oct_play_follow_register(struct oct_play_follow *f,
                                      const struct oct_view_enface *enface,
                                      const struct oct_view_enface map[OCT_N_MAPS],
                                      struct oct_view_follow *result, struct oct_error *err)
{
    struct oct_picture now = {.height = 0}, then = {.height = 0};
    struct oct_shift shift = {.dy = 0};
    double step[2];
    enum oct_err e = picture_of(f, enface, enface, &now, err);
    e = e ? e : picture_of(f, enface, &f->enface, &then, err);
    e = e ? e : find_shift(&now, &then, &shift, err);
    oct_picture_finish(&now);
    oct_picture_finish(&then);
    if (!e && !shift.is_match)
        e = oct_fail(err, OCT_E_STATE, "both exams show no common place from above (likeness %.2f)",
                     isfinite(shift.score) ? shift.score : 0);
    if (e)
        return e;
    steps_of(enface, f->now, step);
    f->shift_um[0] = -shift.dy * step[0];
    f->shift_um[1] = -shift.dx * step[1];
    memcpy(result->shift_um, f->shift_um, sizeof(f->shift_um));
    result->score = shift.score;
    for (unsigned i = 0; i < OCT_N_MAPS && !e; i++)
        e = subtract(f, &map[i], &f->map[i], &result->change[i], &result->mean_change[i], err);
    return e;
}

bool oct_play_follow_bscan(struct oct_play_follow *f, uint32_t v, uint32_t *bscan,
                           struct oct_view_picture *picture)
{
    const struct oct_view_file *then = oct_play_recorded_file(f->recorded);
    const double y = (v + 0.5 - f->now->n_bscans / 2.) * f->now->slow_um + f->shift_um[0];
    const double at = floor(y / then->slow_um + then->n_bscans / 2.);
    bool valid = false;
    if (!(at >= 0 && at < then->n_bscans))
        return false;
    *bscan = (uint32_t)at;
    return oct_play_recorded_read(f->recorded, *bscan, picture, &valid, NULL) == OCT_OK && valid;
}
