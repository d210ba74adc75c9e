/* ZNCC of B-scans with B-scans over a window of shifts, by transforms: one of each B-scan, and one
 * back for each pair. */
#include "analysis/correlate/side.h"
#include "analysis/warp/bscans.h"
#include "kernels/device/workers.h"
#include "numeric/order.h"

#include <math.h>
#include <stdlib.h>

/* Sides from which on B-scans are binned by two: less noise, and a quarter of the work. */
#define LEAST_BINNED_SIDE 64u

/* Of a B-scan less its mean, and a shift of the window: over what overlaps when it is the fixed
 * one. The moving one's are those of the opposite shift. */
struct sums {
    double sum, square, n;
};

/* A worker's own. */
struct slot {
    struct oct_fft2 *fft;
    struct oct_side side;
    struct oct_picture bscan; /* binned */
    float *row;               /* [width] */
    float *spectrum;          /* of a fixed B-scan */
    struct sums *sums;        /* [n_window] of it */
    float *window;            /* [n_window] */
};

struct scoring {
    struct oct_warp_scores *scores;
    const uint32_t *dims;
    const float *fixed, *moving;
    uint32_t height, width; /* of a binned B-scan */
    uint32_t max_dy, max_dx;
    size_t n_window;
    float **spectra;    /* [V] of the moving ones; NULL: blank */
    struct sums *sums;  /* [V][n_window] of the moving ones */
    struct slot *slots; /* [n_slots] */
    unsigned n_slots;
    float *largest; /* [V][n[0]] scores of pairs; NaN: none */
};

/* ---- one B-scan ---- */

static void bin_bscan(const struct scoring *s, const float *bscan, float *binned)
{
    const uint32_t bin = s->scores->bin, depth = s->dims[2];
    for (uint32_t y = 0; y < s->height; y++)
        for (uint32_t x = 0; x < s->width; x++) {
            const float *at = bscan + (size_t)y * bin * depth + (size_t)x * bin;
            float sum = at[0];
            if (bin == 2)
                sum += at[1] + at[depth] + at[depth + 1];
            binned[(size_t)y * s->width + x] = sum;
        }
}

static void sum_windows(const struct scoring *s, const struct oct_field fields[OCT_N_FIELDS],
                        struct sums *sums)
{
    const struct oct_field *values = fields + OCT_FIELD_VALUES;
    const struct oct_field *squares = fields + OCT_FIELD_SQUARES;
    for (int64_t dy = -(int64_t)s->max_dy; dy <= (int64_t)s->max_dy; dy++) {
        const struct oct_box_overlap rows = oct_box_overlap_at(s->height, s->height, dy);
        oct_boxes_strip(&values->boxes, rows, values->strip);
        oct_boxes_strip(&squares->boxes, rows, squares->strip);
        for (int64_t dx = -(int64_t)s->max_dx; dx <= (int64_t)s->max_dx; dx++) {
            const struct oct_box_overlap x = oct_box_overlap_at(s->width, s->width, dx);
            const double n = (double)(rows.end - rows.first) * (x.end - x.first);
            *sums++ = (struct sums){.sum = values->strip[x.end] - values->strip[x.first],
                                    .square = squares->strip[x.end] - squares->strip[x.first] +
                                              n * (double)squares->level,
                                    .n = n};
        }
    }
}

/* Spectrum and sums of a B-scan; false: it is blank. */
static bool transform_bscan(const struct scoring *s, struct slot *slot, const float *bscan,
                            float *spectrum, struct sums *sums)
{
    struct oct_field_rows rows = {&slot->side, OCT_FIELD_VALUES, slot->row};
    bin_bscan(s, bscan, slot->bscan.pixels);
    if (oct_side_look(&slot->side, &slot->bscan, NULL))
        return false;
    const struct oct_fft2_rows in = oct_side_rows(&rows);
    oct_fft2_forward(slot->fft, &in, spectrum);
    sum_windows(s, slot->side.field, sums);
    return true;
}

/* ---- pairs ---- */

static void transform_moving(void *context, unsigned piece, unsigned worker)
{
    const struct scoring *s = context;
    const float *bscan = s->moving + piece * (size_t)s->dims[1] * s->dims[2];
    if (!transform_bscan(s, &s->slots[worker], bscan, s->spectra[piece],
                         s->sums + piece * s->n_window)) {
        free(s->spectra[piece]);
        s->spectra[piece] = NULL;
    }
}

/* Scores of a pair at the shifts around the centre; returns the largest. */
static float score_pair(const struct scoring *s, const struct slot *slot, const struct sums *moving,
                        float *score)
{
    const struct oct_warp_scores *to = s->scores;
    const size_t n_x = 2 * (size_t)s->max_dx + 1;
    const double least = OCT_WARP_LEAST_SHARED * (double)s->height * s->width;
    float largest = -1;

    for (size_t i = 0; i < to->n[1]; i++) {
        const size_t y = (size_t)((int64_t)s->max_dy + to->centre.at[1] - to->reach[1]) + i;
        for (size_t k = 0; k < to->n[2]; k++) {
            const size_t x = (size_t)((int64_t)s->max_dx + to->centre.at[2] - to->reach[2]) + k;
            const size_t at = y * n_x + x;
            const struct sums f = slot->sums[at], g = moving[s->n_window - 1 - at];
            const double ff = f.square - f.sum * f.sum / f.n, gg = g.square - g.sum * g.sum / f.n;
            double zncc = 0;
            if (ff > 1e-6 * f.n && gg > 1e-6 * f.n && f.n >= least)
                zncc = ((double)slot->window[at] - f.sum * g.sum / f.n) / sqrt(ff * gg);
            *score = (float)zncc;
            largest = fmaxf(largest, *score++);
        }
    }
    return largest;
}

static void score_bscan(void *context, unsigned piece, unsigned worker)
{
    const struct scoring *s = context;
    struct oct_warp_scores *to = s->scores;
    struct slot *slot = &s->slots[worker];
    const size_t n_shifts = to->n[1] * to->n[2];
    const float *bscan = s->fixed + piece * (size_t)s->dims[1] * s->dims[2];
    const bool is_blank = !transform_bscan(s, slot, bscan, slot->spectrum, slot->sums);

    for (size_t i = 0; i < to->n[0]; i++) {
        const int64_t m = (int64_t)piece + to->centre.at[0] + (int64_t)i - to->reach[0];
        float *score = to->score + (piece * to->n[0] + i) * n_shifts;
        float *largest = &s->largest[piece * to->n[0] + i];
        if (is_blank || m < 0 || m >= s->dims[0] || !s->spectra[m]) {
            for (size_t k = 0; k < n_shifts; k++)
                score[k] = NAN;
            *largest = NAN;
            continue;
        }
        oct_fft2_product(slot->fft, slot->spectrum, s->spectra[m], slot->window);
        *largest = score_pair(s, slot, s->sums + (size_t)m * s->n_window, score);
    }
}

/* The upper median of what is not NaN; 0: there is nothing. The values change places. */
static float median_of(float *values, size_t n)
{
    size_t n_left = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(values[i]))
            values[n_left++] = values[i];
    return n_left ? oct_floats_select(values, n_left, n_left / 2) : 0;
}

/* ---- life ---- */

static bool open_slot(const struct scoring *s, struct slot *slot)
{
    const struct oct_fft2_setup setup = {
        .height = s->height, .width = s->width, .max_dy = s->max_dy, .max_dx = s->max_dx};
    slot->side = (struct oct_side){.height = s->height, .width = s->width};
    if (oct_fft2_create(&slot->fft, &setup, NULL) ||
        oct_side_init(&slot->side, s->height, s->max_dy,
                      1U << OCT_FIELD_VALUES | 1U << OCT_FIELD_SQUARES, NULL) ||
        oct_picture_init(&slot->bscan, s->height, s->width, false, NULL))
        return false;
    slot->row = malloc(s->width * sizeof(float));
    slot->spectrum = oct_fft2_spectrum(slot->fft);
    slot->sums = malloc(s->n_window * sizeof(*slot->sums));
    slot->window = malloc(s->n_window * sizeof(float));
    return slot->row && slot->spectrum && slot->sums && slot->window;
}

static void close_scoring(struct scoring *s)
{
    for (unsigned i = 0; s->slots && i < s->n_slots; i++) {
        struct slot *slot = &s->slots[i];
        oct_fft2_destroy(slot->fft);
        oct_side_finish(&slot->side);
        oct_picture_finish(&slot->bscan);
        free(slot->row);
        free(slot->spectrum);
        free(slot->sums);
        free(slot->window);
    }
    for (uint32_t b = 0; s->spectra && b < s->dims[0]; b++)
        free(s->spectra[b]);
    free(s->slots);
    free(s->spectra);
    free(s->sums);
    free(s->largest);
}

static bool open_scoring(struct scoring *s)
{
    struct oct_warp_scores *to = s->scores;
    const size_t n = s->dims[0];

    to->score = malloc(n * to->n[0] * to->n[1] * to->n[2] * sizeof(float));
    s->slots = calloc(s->n_slots, sizeof(*s->slots));
    s->spectra = calloc(n, sizeof(*s->spectra));
    s->sums = malloc(n * s->n_window * sizeof(*s->sums));
    s->largest = malloc(n * to->n[0] * sizeof(float));
    bool fits = to->score && s->slots && s->spectra && s->sums && s->largest;
    for (unsigned i = 0; i < s->n_slots && fits; i++)
        fits = open_slot(s, &s->slots[i]);
    for (uint32_t b = 0; b < n && fits; b++)
        fits = (s->spectra[b] = oct_fft2_spectrum(s->slots[0].fft));
    return fits;
}

/* ---- all ---- */

/* The largest shift of a window. */
static uint32_t farthest(uint32_t side)
{
    return side * 3 / 4;
}

/* Shifts of binned pixels around the centre, and the window around 0 that holds them. */
static void lay_out(struct scoring *s, const uint32_t dims[3], const uint32_t reach[3],
                    const struct oct_warp_shift *place)
{
    struct oct_warp_scores *to = s->scores;
    const uint32_t bin = dims[1] >= LEAST_BINNED_SIDE && dims[2] >= LEAST_BINNED_SIDE ? 2 : 1;
    const uint32_t side[3] = {dims[0], dims[1] / bin, dims[2] / bin};

    *to = (struct oct_warp_scores){.n_bscans = dims[0], .bin = bin};
    s->dims = dims;
    s->height = side[1];
    s->width = side[2];
    to->reach[0] = reach[0] < side[0] ? reach[0] : side[0] - 1;
    to->centre.at[0] = place->at[0];
    for (unsigned i = 1; i < 3; i++) {
        const int32_t most = (int32_t)farthest(side[i]);
        int32_t far = (int32_t)((reach[i] + bin - 1) / bin);
        int32_t centre = place->at[i] / (int32_t)bin;
        far = far < most ? far : most;
        centre = centre > most - far ? most - far : centre;
        to->centre.at[i] = centre < far - most ? far - most : centre;
        to->reach[i] = (uint32_t)far;
    }
    for (unsigned i = 0; i < 3; i++)
        to->n[i] = 2 * (size_t)to->reach[i] + 1;
    s->max_dy = to->reach[1] + (uint32_t)abs(to->centre.at[1]);
    s->max_dx = to->reach[2] + (uint32_t)abs(to->centre.at[2]);
    s->n_window = (2 * (size_t)s->max_dy + 1) * (2 * (size_t)s->max_dx + 1);
}

enum oct_err oct_warp_scores_make(struct oct_warp_scores *scores, const uint32_t dims[3],
                                  const uint32_t reach[3], const struct oct_warp_shift *place,
                                  const float *fixed, const float *moving,
                                  struct oct_workers *workers, struct oct_error *err)
{
    struct scoring s = {.scores = scores,
                        .fixed = fixed,
                        .moving = moving,
                        .n_slots = workers ? oct_workers_n_threads(workers) + 1 : 1};

    lay_out(&s, dims, reach, place);
    const bool fits = open_scoring(&s);
    if (fits) {
        oct_workers_run(workers, dims[0], transform_moving, &s);
        oct_workers_run(workers, dims[0], score_bscan, &s);
        scores->unlike = median_of(s.largest, dims[0] * scores->n[0]);
    } else {
        free(scores->score);
        scores->score = NULL;
    }
    close_scoring(&s);
    return fits ? OCT_OK
                : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the correlation of B-scans");
}

uint64_t oct_warp_scores_bytes(const uint32_t dims[3], const uint32_t reach[3], unsigned n_threads)
{
    const struct oct_warp_shift place = {{0}}; /* of which the numbers of shifts do not depend */
    struct oct_warp_scores scores;
    struct scoring s = {.scores = &scores};

    lay_out(&s, dims, reach, &place);
    const uint64_t dy = farthest(s.height), dx = farthest(s.width);
    const uint64_t n_window = (2 * dy + 1) * (2 * dx + 1);
    const uint64_t height = oct_fft2_size(s.height + (uint32_t)dy),
                   width = oct_fft2_size(s.width + (uint32_t)dx),
                   spectrum = height * (width + 2 * (1 + OCT_FFT2_BLOCK)) * sizeof(float);
    const uint64_t of_moving = spectrum + n_window * sizeof(struct sums);
    const uint64_t n_corners = ((uint64_t)s.height + 1) * ((uint64_t)s.width + 1);
    /* Spectra: its own, and two of the transforms. */
    const uint64_t of_slot = 3 * spectrum + n_window * (sizeof(struct sums) + sizeof(float)) +
                             n_corners * (2 * sizeof(double) + sizeof(float));
    const uint64_t n_scores = (uint64_t)scores.n[0] * (scores.n[1] * scores.n[2] + 1);
    return dims[0] * (n_scores * sizeof(float) + of_moving) + n_threads * of_slot;
}
