#include "analysis/quality/quality.h"

#include "pipeline/base/histogram.h"
#include "pipeline/base/wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_BINS 512u
#define MOST_LINES 128u /* looked at of a B-scan */
#define MOST_PROFILE 256u
#define MOST_MOVE (MOST_PROFILE / 8) /* values of the profile that are looked at as motion */
#define LEVEL_BSCANS 100.0
#define SMOOTH 0.2
#define MOST_DB 400.0

static const char *const labels[OCT_QUALITY_N_COLUMNS] = {
    [OCT_QUALITY_SNR_DB] = "snr_db",
    [OCT_QUALITY_SHARPNESS] = "sharpness",
    [OCT_QUALITY_SNR_SMOOTH_DB] = "snr_smooth_db",
    [OCT_QUALITY_SHARPNESS_SMOOTH] = "sharpness_smooth",
    [OCT_QUALITY_LEVEL_DB] = "level_db",
    [OCT_QUALITY_BLINK] = "blink",
    [OCT_QUALITY_MOTION] = "motion",
    [OCT_QUALITY_MISSING] = "missing",
    [OCT_QUALITY_BLINKS] = "blinks",
    [OCT_QUALITY_MOTIONS] = "motions",
};

struct oct_analysis {
    struct oct_image_form input;
    uint32_t n_lines, depth, line_step;
    bool known; /* a B-scan has come */
    struct oct_bscan_info newest;
    double snr_db, sharpness;               /* of the newest B-scan */
    double snr_smooth, sharp_smooth, level; /* dB, 1, dB */
    bool blink, motion, missing;            /* of the newest B-scan */
    uint64_t n_blinks, n_motions;
    unsigned n_profile;
    float profile[MOST_PROFILE]; /* of the newest B-scan over depth, its mean taken away */
    uint32_t *columns;           /* [D] sums of u8 pixels over the A-lines */
    bool has_result;
};

struct look {
    uint32_t bin[N_BINS];         /* how many pixels */
    double lo, step;              /* a bin's value: lo + i * step */
    double profile[MOST_PROFILE]; /* sums, scaled as they are */
};

static void find_range(const struct oct_analysis *a, const struct oct_image_frame *bscan,
                       struct look *look)
{
    double least = bscan->lo, most = bscan->hi;
    if (a->input.type == OCT_SAMPLE_F32) {
        const float *pixel = bscan->pixels;
        least = INFINITY;
        most = -INFINITY;
        for (uint32_t j = 0; j < a->n_lines; j += a->line_step)
            for (uint32_t d = 0; d < a->depth; d++) {
                double v = (double)pixel[(size_t)j * a->depth + d];
                least = isfinite(v) && v < least ? v : least;
                most = isfinite(v) && v > most ? v : most;
            }
    }
    if (!isfinite(least) || !isfinite(most) || !(most > least)) {
        least = isfinite(least) ? least : 0;
        most = least + 1;
    }
    look->lo = least;
    look->step = (most - least) / (N_BINS - 1);
}

static void count_f32(const struct oct_analysis *a, const float *pixels, struct look *look)
{
    for (uint32_t j = 0; j < a->n_lines; j += a->line_step)
        for (uint32_t d = 0; d < a->depth; d++) {
            double v = ((double)pixels[(size_t)j * a->depth + d] - look->lo) / look->step;
            if (!(v >= 0 && v < N_BINS))
                continue;
            look->bin[(unsigned)v]++;
            look->profile[(uint64_t)d * a->n_profile / a->depth] += v;
        }
}

OCT_WIDE static void add_pixels(uint32_t *restrict sums, const uint8_t *restrict pixel, uint32_t n)
{
    for (uint32_t d = 0; d < n; d++)
        sums[d] += pixel[d];
}

/* Neighbours are often alike: in counts of their own, one need not wait for the other. */
static void count_pixels(uint32_t counts[4][256], const uint8_t *pixel, uint32_t n)
{
    uint32_t d = 0;
    for (; d + 4 <= n; d += 4) {
        counts[0][pixel[d]]++;
        counts[1][pixel[d + 1]]++;
        counts[2][pixel[d + 2]]++;
        counts[3][pixel[d + 3]]++;
    }
    for (; d < n; d++)
        counts[0][pixel[d]]++;
}

/* A pixel is its own bin: 256 of them, spread over the 512. */
static void count_u8(const struct oct_analysis *a, const uint8_t *pixels, struct look *look)
{
    uint32_t counts[4][256] = {{0}};
    memset(a->columns, 0, a->depth * sizeof(*a->columns));
    for (uint32_t j = 0; j < a->n_lines; j += a->line_step) {
        count_pixels(counts, pixels + (size_t)j * a->depth, a->depth);
        add_pixels(a->columns, pixels + (size_t)j * a->depth, a->depth);
    }
    for (uint32_t b = 0; b < a->n_profile; b++) {
        const uint32_t from = (uint32_t)((uint64_t)b * a->depth / a->n_profile);
        const uint32_t to = (uint32_t)((uint64_t)(b + 1) * a->depth / a->n_profile);
        for (uint32_t d = from; d < to; d++)
            look->profile[b] += a->columns[d];
    }
    for (unsigned i = 0; i < 256; i++)
        look->bin[i * (N_BINS - 1) / 255] +=
            counts[0][i] + counts[1][i] + counts[2][i] + counts[3][i];
}

static double percentile(const struct look *look, double share)
{
    return look->lo + oct_histogram_percentile(look->bin, N_BINS, share) * look->step;
}

static double clamp_db(double db)
{
    return db < -MOST_DB ? -MOST_DB : db > MOST_DB ? MOST_DB : db;
}

static void measure(struct oct_analysis *a, const struct look *look)
{
    const bool log = a->input.quantity == OCT_QUANTITY_INTENSITY_DB;
    double total = 0, sum = 0, sum2 = 0;
    for (unsigned i = 0; i < N_BINS; i++) {
        if (look->bin[i] == 0)
            continue;
        double v = look->lo + i * look->step;
        double intensity = log ? pow(10, clamp_db(v) / 10) : fmax(v, 0);
        total += look->bin[i];
        sum += look->bin[i] * intensity;
        sum2 += look->bin[i] * intensity * intensity;
    }
    double signal = percentile(look, 0.995), noise = percentile(look, 0.25);
    double ratio_db = log ? signal - noise : 10 * log10(fmax(signal, 1e-12) / fmax(noise, 1e-12));
    /* A hostile range may be anything; what is kept is finite, and so are differences of it. */
    double sharp = sum > 0 ? total * (sum2 / sum) / sum : 0;
    a->snr_db = isfinite(ratio_db) ? clamp_db(ratio_db) : 0;
    a->sharpness = isfinite(sharp) ? sharp : 0;
}

/* ---- motion ---- */

/* dots[most + shift] = sum over i of a[i] b[i + shift], of n values each, for all shifts of up to
 * `most` to both sides. */
OCT_WIDE static void dots_of(const float *restrict a, const float *restrict b, int n, int most,
                             double *restrict dots)
{
    float wide[MOST_PROFILE + 2 * MOST_MOVE] = {0};
    memcpy(wide + most, b, (size_t)n * sizeof(*b));
    memset(dots, 0, (size_t)(2 * most + 1) * sizeof(*dots));
    for (int i = 0; i < n; i++)
        for (int shift = 0; shift <= 2 * most; shift++)
            dots[shift] += (double)a[i] * (double)wide[i + shift];
}

/* squares[i]: the sum of the squares of the first i of n values */
static void add_squares(const float *values, int n, double *squares)
{
    squares[0] = 0;
    for (int i = 0; i < n; i++)
        squares[i + 1] = squares[i] + (double)values[i] * (double)values[i];
}

static bool has_moved(const float *before, const float *now, unsigned n_profile)
{
    const int n = (int)n_profile, most = n / 8;
    double dots[2 * MOST_MOVE + 1], a[MOST_PROFILE + 1], b[MOST_PROFILE + 1], best_match = 0;
    int best = 0;
    dots_of(before, now, n, most, dots);
    add_squares(before, n, a);
    add_squares(now, n, b);
    if (a[n] > 0 && b[n] > 0)
        best_match = dots[most] / sqrt(a[n] * b[n]);
    for (int shift = -most; shift <= most; shift++) {
        const int up = shift < 0 ? -shift : 0, down = shift > 0 ? shift : 0;
        const double aa = a[n - down] - a[up], bb = b[n - up] - b[down];
        const double m = aa > 0 && bb > 0 ? dots[most + shift] / sqrt(aa * bb) : 0;
        if (m > best_match + 1e-6) {
            best_match = m;
            best = shift;
        }
    }
    return best_match > 0.5 && (best < 0 ? -best : best) > (int)n / 50;
}

static void take_profile(struct oct_analysis *a, const struct look *look)
{
    double mean = 0;
    for (unsigned i = 0; i < a->n_profile; i++)
        mean += look->profile[i] / a->n_profile;
    for (unsigned i = 0; i < a->n_profile; i++)
        a->profile[i] = (float)(look->profile[i] - mean);
}

/* ---- the contract's functions ---- */

static void mark_events(struct oct_analysis *a, const struct oct_bscan_info *info,
                        const float *before)
{
    bool follows =
        a->known && info->volume == a->newest.volume && info->number == a->newest.number + 1;
    bool was_blink = a->blink;
    a->missing = info->missing_lines > 0;
    a->blink = a->known && a->snr_db < a->level / 2;
    a->motion = !a->blink && follows && !was_blink && has_moved(before, a->profile, a->n_profile);
    a->n_blinks += !was_blink && a->blink;
    a->n_motions += a->motion;
}

static void smooth(struct oct_analysis *a)
{
    if (!a->known) {
        a->level = a->snr_smooth = a->snr_db;
        a->sharp_smooth = a->sharpness;
    }
    a->snr_smooth += SMOOTH * (a->snr_db - a->snr_smooth);
    a->sharp_smooth += SMOOTH * (a->sharpness - a->sharp_smooth);
    /* Slowly also during a blink: what lasts is the new level. */
    double pace = a->blink ? 5 * LEVEL_BSCANS : LEVEL_BSCANS;
    a->level += (a->snr_db - a->level) / pace;
}

static enum oct_err quality_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                                 struct oct_error *err)
{
    struct look look = {.lo = 0};
    float before[MOST_PROFILE];
    (void)err;
    find_range(a, bscan, &look);
    if (a->input.type == OCT_SAMPLE_F32)
        count_f32(a, bscan->pixels, &look);
    else
        count_u8(a, bscan->pixels, &look);
    measure(a, &look);
    memcpy(before, a->profile, sizeof(before));
    take_profile(a, &look);
    mark_events(a, &bscan->info, before);
    smooth(a);
    a->newest = bscan->info;
    a->known = a->has_result = true;
    return OCT_OK;
}

static enum oct_err quality_take(struct oct_analysis *a, struct oct_image_frame *result,
                                 struct oct_error *err)
{
    float *row = result->pixels;
    (void)err;
    if (!a->has_result)
        return OCT_E_AGAIN;
    a->has_result = false;
    row[OCT_QUALITY_SNR_DB] = (float)a->snr_db;
    row[OCT_QUALITY_SHARPNESS] = (float)a->sharpness;
    row[OCT_QUALITY_SNR_SMOOTH_DB] = (float)a->snr_smooth;
    row[OCT_QUALITY_SHARPNESS_SMOOTH] = (float)a->sharp_smooth;
    row[OCT_QUALITY_LEVEL_DB] = (float)a->level;
    row[OCT_QUALITY_BLINK] = a->blink;
    row[OCT_QUALITY_MOTION] = a->motion;
    row[OCT_QUALITY_MISSING] = a->missing;
    row[OCT_QUALITY_BLINKS] = (float)a->n_blinks;
    row[OCT_QUALITY_MOTIONS] = (float)a->n_motions;
    return OCT_OK;
}

static void quality_reset(struct oct_analysis *a)
{
    a->known = a->has_result = false;
    a->blink = a->motion = a->missing = false;
    a->n_blinks = a->n_motions = 0;
}

static void quality_destroy(struct oct_analysis *a)
{
    if (a)
        free(a->columns);
    free(a);
}

static enum oct_err quality_create(struct oct_analysis **out,
                                   const struct oct_analysis_setup *setup,
                                   struct oct_image_form *form, struct oct_error *err)
{
    struct oct_analysis *a = calloc(1, sizeof(*a));
    *out = a;
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "quality: out of memory");
    a->input = *setup->input;
    a->n_lines = setup->input->dims[0];
    a->depth = setup->input->dims[1];
    a->line_step = (a->n_lines + MOST_LINES - 1) / MOST_LINES;
    a->n_profile = a->depth < MOST_PROFILE ? a->depth : MOST_PROFILE;
    a->columns = malloc(a->depth * sizeof(*a->columns));
    if (!a->columns) {
        quality_destroy(a);
        *out = NULL;
        return oct_fail(err, OCT_E_NO_MEMORY, "quality: out of memory");
    }
    *form = (struct oct_image_form){
        .name = "quality",
        .quantity = OCT_QUANTITY_NUMBERS,
        .type = OCT_SAMPLE_F32,
        .rank = 1,
        .dims = {OCT_QUALITY_N_COLUMNS},
        .spacing_um = {NAN},
        .axes = {"column"},
        .labels = labels,
    };
    return OCT_OK;
}

const struct oct_analysis_ops oct_quality_cpu = {
    .name = "quality",
    .backend = "cpu",
    .meaning = "Signal to noise, sharpness, blinks and motion, B-scan by B-scan.",
    .input = OCT_STAGE_PICTURES,
    .create = quality_create,
    .run =
        {
            .push = quality_push,
            .take = quality_take,
            .reset = quality_reset,
            .destroy = quality_destroy,
        },
};
