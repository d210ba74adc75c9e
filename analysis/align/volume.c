#include "analysis/align/volume.h"

#include "analysis/align/matcher.h"
#include "analysis/align/prepare.h"
#include "numeric/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIN_OVERLAP 0.3

/* Blocks this wide average noise away, so that a blink has little contrast. */
#define BLOCK 8u
#define BLANK_PART 0.1

/* A new place: so many B-scans in a row fit each other and nothing before. */
#define NEW_RUN 4u

/* A B-scan as it is registered, with its shift. */
struct neighbour {
    struct oct_picture picture; /* with a mask */
    bool is_whole;              /* of which every pixel is valid */
    double dy, dx;
};

struct follower {
    const struct oct_volume_setup *setup;
    const struct oct_volume_source *source;
    struct oct_volume_shift *shifts;
    struct oct_rigid *rigid;
    double min_score, least_contrast;
    struct neighbour ring[OCT_VOLUME_NEIGHBOURS]; /* 0: the newest */
    unsigned n_ring;
    double last_dy, last_dx;
    struct oct_picture mean;    /* the reference, with a mask */
    double *sum, *weight;       /* [height][width] of it */
    struct oct_picture strange; /* the newest that did not fit; empty: none */
    uint32_t strange_first;     /* of the run that ends with it */
    unsigned n_strange;
};

const char *oct_volume_fate_text(enum oct_volume_fate fate)
{
    static const char *const texts[] = {
        [OCT_VOLUME_USED] = "used",       [OCT_VOLUME_BLANK] = "blank",
        [OCT_VOLUME_NO_FIT] = "no fit",   [OCT_VOLUME_NEW] = "new place",
        [OCT_VOLUME_SKIPPED] = "skipped",
    };
    return texts[fate];
}

/* ---- what a B-scan is registered by ---- */

/* Reads a B-scan with a mask, whatever it came with. */
static enum oct_err read_masked(struct follower *f, uint32_t b, struct oct_picture *picture,
                                struct oct_error *err)
{
    const size_t n = (size_t)f->setup->height * f->setup->width;
    *picture = (struct oct_picture){0};
    enum oct_err e = f->source->read(f->source->context, b, picture, err);
    if (!e && (picture->height != f->setup->height || picture->width != f->setup->width))
        e = oct_fail(err, OCT_E_ARG, "B-scan %u: %u x %u pixels, not %u x %u", b, picture->height,
                     picture->width, f->setup->height, f->setup->width);
    if (!e && !picture->valid) {
        picture->valid = malloc(n);
        if (picture->valid)
            memset(picture->valid, 1, n);
        else
            e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a mask");
    }
    for (size_t i = 0; i < n && !e; i++)
        if (!picture->valid[i])
            picture->pixels[i] = 0;
    if (e)
        oct_picture_finish(picture);
    return e;
}

/* ---- blinks ---- */

/* The variance along the depth of the means of blocks of A-lines y0 .. y0 + n - 1, valid ones. */
static double strip_contrast(const struct oct_picture *p, uint32_t y0, uint32_t n_lines)
{
    double n = 0, sum = 0, squares = 0;

    for (uint32_t x = 0; x + BLOCK <= p->width; x += BLOCK) {
        double of_block = 0, m = 0;
        for (size_t i = 0; i < (size_t)BLOCK * n_lines; i++) {
            size_t at = (y0 + i / BLOCK) * (size_t)p->width + x + i % BLOCK;
            of_block += p->valid[at] ? (double)p->pixels[at] : 0;
            m += p->valid[at];
        }
        if (m < BLOCK * n_lines / 2.0)
            continue;
        n++;
        sum += of_block / m;
        squares += of_block / m * of_block / m;
    }
    return n > 1 ? squares / n - sum / n * sum / n : 0;
}

static uint32_t strip_lines(const struct oct_picture *p, uint32_t y)
{
    return p->height - y < 2 * BLOCK ? p->height - y : BLOCK; /* the last one takes the rest */
}

/* The mean contrast of strips. */
static double contrast_of(const struct oct_picture *p)
{
    double sum = 0, n = 0;

    for (uint32_t y = 0; y < p->height; y += strip_lines(p, y), n++)
        sum += strip_contrast(p, y, strip_lines(p, y));
    return sum / n;
}

/* Masks the A-lines of a lid that closed or opened meanwhile; returns how many are left. */
static uint32_t mask_blank_lines(struct oct_picture *p, double least_contrast)
{
    uint32_t left = 0;

    for (uint32_t y = 0, n; y < p->height; y += n) {
        n = strip_lines(p, y);
        if (strip_contrast(p, y, n) > least_contrast)
            left += n;
        else
            memset(p->valid + (size_t)y * p->width, 0, (size_t)n * p->width);
    }
    return left;
}

/* Marks what is skipped and what is blank; the others are NO_FIT for the time being. */
static enum oct_err mark_blanks(struct follower *f, struct oct_error *err)
{
    uint32_t n = f->source->n_bscans, n_seen = 0;
    double *contrast = calloc((size_t)2 * n + 2, sizeof(double)), *sorted;
    enum oct_err e = OCT_OK;

    if (!contrast)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u B-scans", n);
    sorted = contrast + n + 1;
    for (uint32_t b = 0; !e && b < n; b++) {
        struct oct_picture picture;
        f->shifts[b] = (struct oct_volume_shift){NAN, NAN, NAN, NAN, NAN, OCT_VOLUME_NO_FIT};
        if (f->setup->skip && f->setup->skip[b]) {
            f->shifts[b].fate = OCT_VOLUME_SKIPPED;
            continue;
        }
        e = read_masked(f, b, &picture, err);
        if (!e && oct_picture_has_contrast(&picture))
            sorted[n_seen++] = contrast[b] = contrast_of(&picture);
        oct_picture_finish(&picture);
    }
    /* The median would be that of a blink in a volume that is half blink. */
    oct_doubles_sort(sorted, n_seen);
    double usual = n_seen ? sorted[(size_t)n_seen * 3 / 4] : 0;
    f->least_contrast = BLANK_PART * usual;
    for (uint32_t b = 0; !e && b < n; b++)
        if (f->shifts[b].fate != OCT_VOLUME_SKIPPED && !(contrast[b] > f->least_contrast))
            f->shifts[b].fate = OCT_VOLUME_BLANK;
    free(contrast);
    return e;
}

/* Reads what a B-scan is registered by; all masked when its lid was closed for half of it. */
static enum oct_err read_prepared(struct follower *f, uint32_t b, struct oct_picture *picture,
                                  struct oct_error *err)
{
    enum oct_err e = read_masked(f, b, picture, err);

    if (!e && mask_blank_lines(picture, f->least_contrast) < picture->height / 2)
        memset(picture->valid, 0, (size_t)picture->height * picture->width);
    return e ? e : oct_align_prepare(picture, err);
}

/* ---- the mean of the neighbours ---- */

/* Adds a picture moved by (dy, dx), a fraction shared between pixels. */
static void add_moved(struct follower *f, const struct oct_picture *p, double dy, double dx,
                      double weight)
{
    int64_t whole_y = (int64_t)floor(dy), whole_x = (int64_t)floor(dx);
    double v = dy - (double)whole_y, u = dx - (double)whole_x;
    const double part[2][2] = {{(1 - v) * (1 - u), (1 - v) * u}, {v * (1 - u), v * u}};
    int64_t height = p->height, width = p->width;

    for (int64_t y = 1; y < height; y++)
        for (int64_t x = 1; x < width; x++) {
            int64_t to_y = y + whole_y, to_x = x + whole_x;
            size_t at = (size_t)(y * width + x), w = (size_t)width;
            if (to_y < 0 || to_y >= height || to_x < 0 || to_x >= width)
                continue;
            if (!(p->valid[at] & p->valid[at - 1] & p->valid[at - w] & p->valid[at - w - 1]))
                continue;
            const float *q = p->pixels + at;
            double value = part[0][0] * (double)q[0] + part[0][1] * (double)q[-1] +
                           part[1][0] * (double)q[-(int64_t)w] +
                           part[1][1] * (double)q[-(int64_t)w - 1];
            size_t to = (size_t)(to_y * width + to_x);
            f->sum[to] += weight * value;
            f->weight[to] += weight;
        }
}

/* The newest neighbour, moved by half a pixel at most, leaves a border of one pixel. Without masked
 * pixels fractions of a pixel come from the cross-spectrum, which is better than the parabola. */
static void fill_border(struct oct_picture *p)
{
    for (uint32_t y = 0; y < p->height; y++)
        for (uint32_t x = 0; x < p->width; x++) {
            uint32_t v = y < 1 ? 1 : y > p->height - 2 ? p->height - 2 : y;
            uint32_t u = x < 1 ? 1 : x > p->width - 2 ? p->width - 2 : x;
            size_t at = (size_t)y * p->width + x;
            if (!p->valid[at])
                p->pixels[at] = p->pixels[(size_t)v * p->width + u];
            p->valid[at] = 1;
        }
}

/* The mean of the ring, moved so that the newest lies within half a pixel of where it was read. */
static enum oct_err set_mean(struct follower *f, double whole_dy, double whole_dx,
                             struct oct_error *err)
{
    size_t n = (size_t)f->setup->height * f->setup->width;
    double weight = 1;

    memset(f->sum, 0, n * sizeof(double));
    memset(f->weight, 0, n * sizeof(double));
    for (unsigned i = 0; i < f->n_ring; i++, weight /= 2)
        add_moved(f, &f->ring[i].picture, f->ring[i].dy - whole_dy, f->ring[i].dx - whole_dx,
                  weight);
    for (size_t i = 0; i < n; i++) {
        f->mean.valid[i] = f->weight[i] > 0;
        f->mean.pixels[i] = f->weight[i] > 0 ? (float)(f->sum[i] / f->weight[i]) : 0.0F;
    }
    if (f->ring[0].is_whole)
        fill_border(&f->mean);
    return oct_rigid_set_reference(f->rigid, &f->mean, err);
}

static bool is_whole(const struct oct_picture *p)
{
    return !memchr(p->valid, 0, (size_t)p->height * p->width);
}

/* Takes the picture over. */
static void push(struct follower *f, struct oct_picture *picture, double dy, double dx)
{
    if (f->n_ring == OCT_VOLUME_NEIGHBOURS)
        oct_picture_finish(&f->ring[--f->n_ring].picture);
    memmove(f->ring + 1, f->ring, f->n_ring * sizeof(f->ring[0]));
    f->ring[0] = (struct neighbour){*picture, is_whole(picture), dy, dx};
    f->n_ring++;
    f->last_dy = dy;
    f->last_dx = dx;
    *picture = (struct oct_picture){0};
}

static void forget_strange(struct follower *f)
{
    oct_picture_finish(&f->strange);
    f->n_strange = 0;
}

static void forget_ring(struct follower *f)
{
    while (f->n_ring)
        oct_picture_finish(&f->ring[--f->n_ring].picture);
}

/* ---- one B-scan after another ---- */

/* Takes the picture over. Counts how many in a row fit each other. */
static enum oct_err note_strange(struct follower *f, uint32_t b, struct oct_picture *picture,
                                 struct oct_error *err)
{
    struct oct_shift shift = {.score = NAN};
    enum oct_err e = OCT_OK;

    if (f->n_strange) {
        e = oct_rigid_set_reference(f->rigid, &f->strange, err);
        e = e ? e : oct_rigid_find(f->rigid, picture, &shift, err);
    }
    if (!shift.is_match || !(shift.score >= f->min_score)) {
        f->n_strange = 0;
        f->strange_first = b;
    }
    oct_picture_finish(&f->strange);
    f->strange = *picture;
    *picture = (struct oct_picture){0};
    f->n_strange++;
    return e;
}

static enum oct_err follow(struct follower *f, uint32_t b, struct oct_picture *picture,
                           struct oct_error *err)
{
    struct oct_volume_shift *s = &f->shifts[b];
    double whole_dy = round(f->last_dy), whole_dx = round(f->last_dx);
    struct oct_shift found;
    enum oct_err e = set_mean(f, whole_dy, whole_dx, err);

    e = e ? e : oct_rigid_find(f->rigid, picture, &found, err);
    if (e)
        return e;
    s->score = found.score;
    if (!found.is_match || !(found.score >= f->min_score))
        return note_strange(f, b, picture, err);
    s->fate = OCT_VOLUME_USED;
    s->dy = f->setup->lateral ? whole_dy + found.dy : 0;
    s->dx = whole_dx + found.dx;
    s->sd_dy = f->setup->lateral ? found.sd_dy : NAN;
    s->sd_dx = found.sd_dx;
    push(f, picture, s->dy, s->dx);
    forget_strange(f);
    return OCT_OK;
}

/* The first of all, or of a new place. */
static void begin(struct follower *f, uint32_t b, enum oct_volume_fate fate,
                  struct oct_picture *picture)
{
    forget_ring(f);
    forget_strange(f);
    f->shifts[b] = (struct oct_volume_shift){f->last_dy, f->last_dx, NAN, NAN, NAN, fate};
    push(f, picture, f->last_dy, f->last_dx);
}

static enum oct_err follow_all(struct follower *f, struct oct_error *err)
{
    uint32_t n = f->source->n_bscans, fresh = n; /* fresh: where a new place begins */
    enum oct_err e = OCT_OK;

    for (uint32_t b = 0; !e && b < n; b++) {
        struct oct_picture picture;
        if (f->source->progress)
            f->source->progress(f->source->context, b, n);
        if (f->shifts[b].fate == OCT_VOLUME_BLANK || f->shifts[b].fate == OCT_VOLUME_SKIPPED)
            continue;
        e = read_prepared(f, b, &picture, err);
        if (!e && !oct_picture_has_contrast(&picture))
            f->shifts[b].fate = OCT_VOLUME_BLANK;
        else if (!e && (f->n_ring == 0 || b == fresh))
            begin(f, b, f->n_ring ? OCT_VOLUME_NEW : OCT_VOLUME_USED, &picture);
        else if (!e)
            e = follow(f, b, &picture, err);
        oct_picture_finish(&picture);
        if (f->n_strange == NEW_RUN) { /* go back to where the run began */
            fresh = f->strange_first;
            b = fresh - 1; /* 0 is always USED, so fresh > 0 */
            forget_strange(f);
        }
    }
    return e;
}

/* ---- all of it ---- */

static void follower_finish(struct follower *f)
{
    forget_ring(f);
    forget_strange(f);
    oct_rigid_destroy(f->rigid);
    oct_picture_finish(&f->mean);
    free(f->sum);
    free(f->weight);
}

static enum oct_err follower_init(struct follower *f, struct oct_error *err)
{
    const struct oct_volume_setup *s = f->setup;
    size_t n = (size_t)s->height * s->width;
    uint32_t max_dy = s->max_dy ? s->max_dy : s->height / 3;
    uint32_t max_dx = s->max_dx ? s->max_dx : s->width / 3;
    struct oct_rigid_setup rigid = {
        .height = s->height,
        .width = s->width,
        .max_dy = s->lateral ? (max_dy < s->height ? max_dy : s->height - 1) : 0,
        .max_dx = max_dx < s->width ? max_dx : s->width - 1,
        .min_overlap = MIN_OVERLAP,
        .masked = true,
        .backend = s->backend,
        .gpus = s->gpus,
        .deadline_ms = s->deadline_ms,
    };
    enum oct_err e = oct_rigid_create(&f->rigid, &rigid, err);

    e = e ? e : oct_picture_init(&f->mean, s->height, s->width, true, err);
    if (e)
        return e;
    f->sum = calloc(n, sizeof(double));
    f->weight = calloc(n, sizeof(double));
    if (!f->sum || !f->weight)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for B-scans of %u x %u", s->height,
                        s->width);
    f->min_score = s->min_score;
    return OCT_OK;
}

enum oct_err oct_volume_register(const struct oct_volume_setup *setup,
                                 const struct oct_volume_source *source,
                                 struct oct_volume_shift *shifts, const char **running,
                                 struct oct_error *err)
{
    struct follower f = {.setup = setup, .source = source, .shifts = shifts};
    enum oct_err e = follower_init(&f, err);
    unsigned n_used = 0;

    e = e ? e : mark_blanks(&f, err);
    e = e ? e : follow_all(&f, err);
    for (uint32_t b = 0; !e && b < source->n_bscans; b++)
        n_used += shifts[b].fate == OCT_VOLUME_USED || shifts[b].fate == OCT_VOLUME_NEW;
    if (!e && n_used < 2)
        e = oct_fail(err, OCT_E_ARG, "fewer than two B-scans fit each other");
    if (!e && running)
        *running = oct_rigid_running(f.rigid);
    follower_finish(&f);
    return e;
}
