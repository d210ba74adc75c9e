/* The translation of two volumes: ZNCC over all shifts at once, by transforms of small copies. A
 * copy is a picture whose rows are the A-lines of all B-scans, with as many rows of its mean behind
 * each B-scan as A-lines may be shifted: so a shift of rows is one of B-scans and A-lines. */
#include "analysis/correlate/correlate.h"
#include "analysis/warp/bscans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SIDE 64u

/* Shifts beyond this part of a side leave too little to be sure of. */
#define MOST_SHIFT 0.75

struct small {
    const uint32_t *dims;
    uint32_t bin[3], n[3]; /* voxels of a bin; bins a side */
    int32_t most[3];       /* bins of shift */
    uint32_t pitch;        /* rows from a B-scan to the next */
    struct oct_picture picture[2];
    float *c2d; /* [2 max_dy + 1][2 most[2] + 1] */
};

static struct small shape_of(const uint32_t dims[3])
{
    struct small s = {.dims = dims};
    for (unsigned i = 0; i < 3; i++) {
        s.bin[i] = (dims[i] + MOST_SIDE - 1) / MOST_SIDE;
        s.n[i] = dims[i] / s.bin[i];
        s.most[i] = (int32_t)(MOST_SHIFT * s.n[i]);
    }
    s.pitch = s.n[1] + (uint32_t)s.most[1];
    return s;
}

static double bin_mean(const struct small *s, const float *volume, const uint32_t x[3])
{
    double sum = 0;
    for (uint32_t b = x[0] * s->bin[0]; b < (x[0] + 1) * s->bin[0]; b++)
        for (uint32_t j = x[1] * s->bin[1]; j < (x[1] + 1) * s->bin[1]; j++) {
            const float *row =
                volume + ((size_t)b * s->dims[1] + j) * s->dims[2] + x[2] * s->bin[2];
            for (uint32_t d = 0; d < s->bin[2]; d++)
                sum += (double)row[d];
        }
    return sum / ((double)s->bin[0] * s->bin[1] * s->bin[2]);
}

static enum oct_err make_picture(const struct small *s, const float *volume,
                                 struct oct_picture *picture, struct oct_error *err)
{
    const uint32_t height = (s->n[0] - 1) * s->pitch + s->n[1], width = s->n[2];
    const enum oct_err e = oct_picture_init(picture, height, width, false, err);
    double sum = 0;
    if (e)
        return e;
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t d = 0; d < width && y % s->pitch < s->n[1]; d++) {
            const double mean = bin_mean(s, volume, (uint32_t[3]){y / s->pitch, y % s->pitch, d});
            picture->pixels[(size_t)y * width + d] = (float)mean;
            sum += mean;
        }
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t d = 0; d < width && y % s->pitch >= s->n[1]; d++)
            picture->pixels[(size_t)y * width + d] =
                (float)(sum / ((double)s->n[0] * s->n[1] * s->n[2]));
    return OCT_OK;
}

static enum oct_err correlate(struct small *s, struct oct_correlator_setup *setup,
                              struct oct_error *err)
{
    struct oct_correlator *correlator = NULL;
    unsigned which;
    setup->height = setup->g_height = s->picture[0].height;
    setup->width = setup->g_width = s->picture[0].width;
    setup->max_dy = (uint32_t)s->most[0] * s->pitch + (uint32_t)s->most[1];
    setup->max_dx = (uint32_t)s->most[2];
    s->c2d =
        malloc((2 * (size_t)setup->max_dy + 1) * (2 * (size_t)setup->max_dx + 1) * sizeof(*s->c2d));
    enum oct_err e = oct_correlator_cpu.create(&correlator, setup, err);
    if (!e && !s->c2d)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the translation of two volumes");
    e = e ? e : oct_correlator_cpu.set_reference(correlator, &s->picture[1], err);
    e = e ? e : oct_correlator_cpu.run(correlator, &s->picture[0], 1, s->c2d, &which, err);
    oct_correlator_cpu.destroy(correlator);
    return e;
}

static void find_best(const struct small *s, const struct oct_correlator_setup *setup,
                      struct oct_warp_shift *place)
{
    const int32_t *most = s->most;
    double best = -2;
    for (int32_t b = -most[0]; b <= most[0]; b++)
        for (int32_t j = -most[1]; j <= most[1]; j++)
            for (int32_t d = -most[2]; d <= most[2]; d++) {
                const int32_t dy = b * (int32_t)s->pitch + j + (int32_t)setup->max_dy;
                const float score =
                    s->c2d[(size_t)dy * (2 * (size_t)most[2] + 1) + (size_t)(d + most[2])];
                /* The rows of the mean count as if they overlapped: of ZNCC the score has the part
                 * of the A-lines that do. */
                const double part = (1 - fabs((double)b) / s->n[0]) /
                                    (1 - fabs((double)j) / s->n[1]) *
                                    (1 - fabs((double)d) / s->n[2]);
                const double value = (double)score * sqrt(part);
                if (value > best) { /* NaN is not */
                    best = value;
                    *place = (struct oct_warp_shift){
                        {b * (int32_t)s->bin[0], j * (int32_t)s->bin[1], d * (int32_t)s->bin[2]}};
                }
            }
}

enum oct_err oct_warp_bscans_place(const uint32_t dims[3], const float *fixed, const float *moving,
                                   struct oct_warp_shift *place, struct oct_error *err)
{
    struct oct_correlator_setup setup = {.norm = OCT_CORRELATION_ZNCC, .n_batch = 1};
    struct small s = shape_of(dims);
    *place = (struct oct_warp_shift){{0}};
    enum oct_err e = make_picture(&s, fixed, &s.picture[0], err);
    e = e ? e : make_picture(&s, moving, &s.picture[1], err);
    e = e ? e : correlate(&s, &setup, err);
    if (!e)
        find_best(&s, &setup, place);
    oct_picture_finish(&s.picture[0]);
    oct_picture_finish(&s.picture[1]);
    free(s.c2d);
    return e == OCT_E_ARG ? OCT_OK : e; /* nothing is left of the contrast: no translation */
}
