#include "analysis/average/average.h"

#include "analysis/align/prepare.h"
#include "analysis/align/rigid.h"
#include "numeric/picture.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP_PX (1 / 64.0)
#define MISSING_SHARE 4u /* a B-scan that misses more than a quarter of its lines is left out */
#define LEAST_OVERLAP 0.5
/* After a flyback a B-scan at the same place scores about as the one before did; another place of
 * the same tissue has its layers, but less of them lies on top of each other. */
#define SAME_PLACE 0.7
#define CACHE_LINE 64u
#define SHARE_OF_MEMORY 0.25
#define N_ANEW 64u /* B-scans within which all sums are made anew */
#define MOST_BIN 4u
#define MOST_PIXELS 40000u /* more say little more of a shift, and take longer */

#define DB_PER_OCTAVE 3.010299956639812f
#define LEAST_DB (-120.0f)
#define MOST_DB 240.0f
/* Adding it rounds a float of less than 2^22 to an integer, which its low bits then hold. */
#define ROUNDER 12582912.0f
#define LEAST_INTENSITY 1e-12f /* counts^2: the floor of reconstruction */
#define MOST_INTENSITY 1e24f

static const struct oct_image_number numbers[] = {
    {"averaged", 1}, {"rejected", 1}, {"resets", 1}, {"score", 1}, {"shift_px", 2},
};

/* Where a B-scan lies: lines and depths that it is moved by, multiples of 1/64 px. */
struct shift {
    double lines, depth;
};

struct window {
    uint32_t n_lines, depth; /* M, D */
    uint32_t n_most, n;      /* B-scans that it holds at most; now */
    uint32_t next;           /* place of the next one */
    uint32_t next_sum;       /* A-line of which the sums are made anew next */
    float *frames;           /* [n_most][M][D]: value * weight; NULL: none is taken out again */
    float *line_weights;     /* [n_most][M]; the weight of a pixel is that of its line times ... */
    float *depth_weights;    /* [n_most][D]; ... that of its depth */
    double *sum;             /* [M][D] */
    float *weight;           /* [M][D] */
    float *scratch; /* [5][D]: the moved A-line, one with a margin of zeros on both sides, and
                                the new weights of depths */
};

/* From a B-scan to the picture that is registered. */
struct prepare {
    uint32_t n_lines, depth;       /* M, D */
    uint32_t bin_lines, bin_depth; /* pixels of a bin */
    struct oct_picture picture;    /* [M / bin_lines][D / bin_depth] */
    float *scratch;                /* of the same size, and a line */
    uint8_t *n_added;              /* [height] A-lines that came to each row */
};

/* An image that is made, and the B-scan it is of. */
struct made {
    void *pixels; /* as the form says */
    struct oct_bscan_info info;
    double lo, hi;
    double numbers[OCT_IMAGE_MAX_NUMBERS];
    bool is_due; /* to be taken */
};

static const char *const register_names[] = {"rigid", "none", NULL};
static const char *const domain_names[] = {"linear", "db", NULL};

#define S struct oct_average_settings
static const struct oct_param param_rows[] = {
    {OCT_PARAM("bscans", S, bscans), OCT_PARAM_LIVE, .least = 1, .most = OCT_AVERAGE_MOST_BSCANS,
     .standard = "1", .unit = "B-scans",
     .meaning = "The average is of the last so many; 1: off, unless scan.repeats is above 1."},
    {OCT_PARAM_CHOICE("register", S, registration, register_names), OCT_PARAM_LIVE,
     .first = OCT_AVERAGE_RIGID, .standard = "rigid",
     .meaning = "B-scans are shifted onto the average first (rigid), or taken as they come."},
    {OCT_PARAM("max_shift_px", S, max_shift_px), OCT_PARAM_LIVE, .least = 1, .most = 1024,
     .standard = "32", .unit = "pixels",
     .meaning = "Largest shift along A-lines and along depth that is looked for."},
    {OCT_PARAM("min_score", S, min_score), OCT_PARAM_LIVE, .least = -1, .most = 1, .standard = "0",
     .meaning = "A B-scan that correlates less with the average is left out, besides what matches "
                "by chance."},
    {OCT_PARAM_CHOICE("domain", S, domain, domain_names), OCT_PARAM_LIVE,
     .first = OCT_AVERAGE_LINEAR, .standard = "linear",
     .meaning = "What is averaged: intensity, or its decibels, which the noise floor biases."},
    {OCT_PARAM("record", S, record), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Recordings have the average too: /analysis/average, also named /average."},
};
#undef S
const struct oct_params oct_average_params = OCT_PARAMS(param_rows);

struct oct_analysis {
    struct oct_image_form input, form; /* of B-scans, of results */
    uint32_t n_bscans;                 /* V */
    struct oct_average_settings settings;

    /* Of settings that average; else empty. */
    bool is_on;
    struct window window;
    struct prepare prepare;
    struct oct_rigid *rigid; /* NULL: without registration */
    float *values;           /* [M][D] of the domain, bounded */
    uint8_t *line_valid;     /* [M] */
    float *line;             /* [2][D] */

    bool any, has_reference;
    bool is_given; /* the block's image */
    bool is_shown; /* `now` has the window's mean */
    struct oct_bscan_info newest;
    unsigned n_in_a_row; /* rejected */
    uint64_t n_rejected, n_resets;
    double score, score_before; /* of the newest, and of the one taken in before it */
    struct shift shift;         /* of the newest */
    struct made now, before;    /* `before`: of the block before, not taken yet */

    /* While a B-scan is pushed. */
    const struct oct_image_frame *bscan;
    struct oct_error *err;
};

/* ---- loops over pixels ----
 * Written so that gcc makes vector code of them. Decibels: 10 * log10(intensity), intensity in
 * counts^2 between LEAST_INTENSITY and MOST_INTENSITY; what is beyond is cut off, what is no number
 * counts as the least. To 0.001 dB. Pointers of one call do not overlap unless they are equal. */

union bits {
    float value;
    int32_t bits;
};

static inline int32_t bits_of(float x)
{
    return (union bits){.value = x}.bits;
}

static inline float float_of(int32_t bits)
{
    return (union bits){.bits = bits}.value;
}

/* NaN: least. */
static inline float bound(float x, float least, float most)
{
    x = x > least ? x : least;
    return x < most ? x : most;
}

/* 2^x for |x| < 126: 2^i times the Taylor series of 2^f, |f| <= 1/2, to 2e-6. */
static inline float exp2_of(float x)
{
    const float rounded = x + ROUNDER, f = (x - (rounded - ROUNDER)) * 0.6931471806f;
    const float power =
        1 + f * (1 + f * (0.5f + f * (1 / 6.0f + f * (1 / 24.0f + f * (1 / 120.0f)))));
    return float_of(bits_of(power) + (bits_of(rounded) - bits_of(ROUNDER)) * (1 << 23));
}

/* log2 of a normal number: its exponent and 2 atanh(s) / ln 2, s = (m - 1) / (m + 1), of its
 * mantissa m in [sqrt(1/2), sqrt(2)), to 1e-6. */
static inline float log2_of(float x)
{
    const int32_t bits = bits_of(x), exponent = (bits - bits_of(0.70710678f)) >> 23;
    const float m = float_of(bits - exponent * (1 << 23));
    const float s = (m - 1) / (m + 1), s2 = s * s;
    const float series = s * (1 + s2 * (1 / 3.0f + s2 * (1 / 5.0f + s2 * (1 / 7.0f))));
    return (float)exponent + series * 2.8853900818f;
}

OCT_WIDE static void from_db(float *restrict intensity, const float *restrict db, size_t n)
{
    for (size_t i = 0; i < n; i++)
        intensity[i] = exp2_of(bound(db[i], LEAST_DB, MOST_DB) * (1 / DB_PER_OCTAVE));
}

/* NaN stays NaN: a pixel without weight. */
OCT_WIDE static void to_db(float *restrict db, const float *restrict intensity, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float x = intensity[i];
        const float y = log2_of(bound(x, LEAST_INTENSITY, MOST_INTENSITY)) * DB_PER_OCTAVE;
        db[i] = x == x ? y : x;
    }
}

OCT_WIDE static void bound_all(float *restrict to, const float *restrict value, size_t n,
                               float least, float most)
{
    for (size_t i = 0; i < n; i++)
        to[i] = bound(value[i], least, most);
}

/* Whether any of them is above a limit. */
OCT_WIDE static bool any_above(const float *value, size_t n, float limit)
{
    int any = 0;
    for (size_t i = 0; i < n; i++)
        any |= value[i] > limit;
    return any;
}

/* to = a * x + b * y */
OCT_WIDE static void blend(float *restrict to, const float *x, float a, const float *y, float b,
                           size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = a * x[i] + b * y[i];
}

/* sum += value */
OCT_WIDE static void add_values(double *restrict sum, const float *restrict value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += (double)value[i];
}

/* sum += new - old; old = new */
OCT_WIDE static void replace_values(double *restrict sum, const float *restrict new_value,
                                    float *restrict old_value, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sum[i] += (double)new_value[i] - (double)old_value[i];
        old_value[i] = new_value[i];
    }
}

/* weight += new_part * new_weight - old_part * old_weight */
OCT_WIDE static void weigh_pixels(float *restrict weight, const float *new_weight, float new_part,
                                  const float *old_weight, float old_part, size_t n)
{
    for (size_t i = 0; i < n; i++)
        weight[i] += new_part * new_weight[i] - old_part * old_weight[i];
}

/* mean = sum / weight; NaN where there is no weight */
OCT_WIDE static void mean_of(float *restrict mean, const double *restrict sum,
                             const float *restrict weight, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mean[i] = weight[i] > 0 ? (float)sum[i] / weight[i] : NAN;
}

static void bin_by(float *restrict bins, const float *restrict value, size_t n_bins, unsigned bin)
{
    for (size_t i = 0; i < n_bins; i++)
        for (unsigned k = 0; k < bin; k++)
            bins[i] += value[i * bin + k];
}

/* bins[i] += the sum of `bin` neighbouring values. Known lengths are what gcc unrolls. */
static void add_bins(float *bins, const float *value, size_t n_bins, unsigned bin)
{
    if (bin == 4)
        bin_by(bins, value, n_bins, 4);
    else if (bin == 2)
        bin_by(bins, value, n_bins, 2);
    else
        bin_by(bins, value, n_bins, bin);
}

/* round((value - lo) / (hi - lo) * 255), 0..255; NaN: 0 */
OCT_WIDE static void to_u8(uint8_t *restrict pixel, const float *restrict value, size_t n, float lo,
                           float hi)
{
    const float scale = hi > lo || hi < lo ? 255 / (hi - lo) : 0;
    for (size_t i = 0; i < n; i++)
        pixel[i] = (uint8_t)(int32_t)(bound((value[i] - lo) * scale, 0, 255) + 0.5f);
}

/* From decibels or intensity to decibels or intensity, bounded. */
static void convert(float *to, bool to_is_db, const float *from, bool from_is_db, size_t n)
{
    if (from_is_db && to_is_db)
        bound_all(to, from, n, LEAST_DB, MOST_DB);
    else if (from_is_db)
        from_db(to, from, n);
    else if (to_is_db)
        to_db(to, from, n);
    else
        bound_all(to, from, n, LEAST_INTENSITY, MOST_INTENSITY);
}

/* ---- the window ----
 * The mean of its B-scans: each is kept as it was added, shifted and weighted, so that it can be
 * taken out again exactly. Of a block, which is left as a whole, none is kept.
 *
 * Sums are of doubles, weights are multiples of 1/4096 and thus exact in floats. What rounding
 * leaves behind when a bright pixel goes does not stay: the sums of a few A-lines are made anew
 * with each B-scan, of all of them within 64. */

static size_t pixels_of(const struct window *w)
{
    return (size_t)w->n_lines * w->depth;
}

/* Of an empty one too. */
static void finish_window(struct window *w)
{
    free(w->frames);
    free(w->line_weights);
    free(w->depth_weights);
    free(w->sum);
    free(w->weight);
    free(w->scratch);
}

static void clear_window(struct window *w)
{
    w->n = w->next = w->next_sum = 0;
    memset(w->sum, 0, pixels_of(w) * sizeof(*w->sum));
    memset(w->weight, 0, pixels_of(w) * sizeof(*w->weight));
}

static enum oct_err init_window(struct window *w, uint32_t n_lines, uint32_t depth, uint32_t n_most,
                                bool is_block, struct oct_error *err)
{
    *w = (struct window){.n_lines = n_lines, .depth = depth, .n_most = n_most};
    if (!is_block)
        w->frames = oct_aligned_alloc(CACHE_LINE, pixels_of(w) * n_most, sizeof(*w->frames));
    w->line_weights = calloc((size_t)n_most * n_lines, sizeof(*w->line_weights));
    w->depth_weights = calloc((size_t)n_most * depth, sizeof(*w->depth_weights));
    w->sum = oct_aligned_alloc(CACHE_LINE, pixels_of(w), sizeof(*w->sum));
    w->weight = oct_aligned_alloc(CACHE_LINE, pixels_of(w), sizeof(*w->weight));
    w->scratch = calloc(5 * (size_t)depth, sizeof(*w->scratch));
    if ((!w->frames && !is_block) || !w->line_weights || !w->depth_weights || !w->sum ||
        !w->weight || !w->scratch)
        return oct_fail(err, OCT_E_NO_MEMORY, "average: out of memory for %u B-scans of %u x %u",
                        n_most, n_lines, depth);
    clear_window(w);
    return OCT_OK;
}

/* Pixel i of what is moved lies at i - shift in the source, between its pixels i + first and the
 * next. */
struct taps {
    int64_t first;
    float here, next; /* weights of the two */
};

static struct taps taps_of(double shift)
{
    double at = -shift, whole = floor(at);
    float part = (float)(at - whole);
    return (struct taps){(int64_t)whole, 1 - part, part};
}

/* 0 outside and for a line that never came. */
static float weight_of_line(const struct window *w, const uint8_t *line_valid, int64_t line)
{
    return line >= 0 && line < w->n_lines && line_valid[line] ? 1 : 0;
}

static void weigh_depths(const struct window *w, struct taps taps, float *weights)
{
    for (int64_t d = 0; d < w->depth; d++) {
        int64_t at = d + taps.first;
        weights[d] = (at >= 0 && at < w->depth ? taps.here : 0) +
                     (at + 1 >= 0 && at + 1 < w->depth ? taps.next : 0);
    }
}

/* Line `line` of the moved B-scan, times its weights. The margins of the scratch stay zero. */
static float move_line(const struct window *w, const float *values, const uint8_t *line_valid,
                       uint32_t line, struct taps lines, struct taps depths, float *to)
{
    const int64_t at = (int64_t)line + lines.first;
    const float here = lines.here * weight_of_line(w, line_valid, at);
    const float next = lines.next * weight_of_line(w, line_valid, at + 1);
    const size_t n = w->depth;
    if (!(here + next > 0) || depths.first < -(int64_t)n || depths.first >= (int64_t)n) {
        memset(to, 0, n * sizeof(*to));
        return 0;
    }
    const float *first = values + (here > 0 ? at : at + 1) * (int64_t)n;
    const float *second = values + (next > 0 ? at + 1 : at) * (int64_t)n;
    if (depths.first == 0 && !(depths.next > 0)) { /* not moved in depth */
        blend(to, first, here, second, next, n);
        return here + next;
    }
    float *middle = w->scratch + 2 * n; /* margins of two lines before and behind it */
    blend(middle, first, here, second, next, n);
    blend(to, middle + depths.first, depths.here, middle + depths.first + 1, depths.next, n);
    return here + next;
}

/* Of A-lines that take turns, from what is kept. */
static void sum_anew(struct window *w)
{
    const uint32_t n_lines = (w->n_lines + N_ANEW - 1) / N_ANEW;
    for (uint32_t i = 0; i < n_lines; i++) {
        const size_t at = (size_t)w->next_sum * w->depth;
        memset(w->sum + at, 0, w->depth * sizeof(*w->sum));
        for (uint32_t k = 0; k < w->n; k++)
            add_values(w->sum + at, w->frames + k * pixels_of(w) + at, w->depth);
        w->next_sum = (w->next_sum + 1) % w->n_lines;
    }
}

/* Adds a B-scan, [M][D], line_valid [M] 0 or 1, moved by a shift; the oldest goes when the window
 * is full. */
static void add_to_window(struct window *w, const float *values, const uint8_t *line_valid,
                          struct shift shift)
{
    const struct taps lines = taps_of(shift.lines), depths = taps_of(shift.depth);
    if (w->n == w->n_most && !w->frames)
        clear_window(w);
    const bool is_full = w->n == w->n_most;
    float *frame = w->frames ? w->frames + w->next * pixels_of(w) : NULL, *moved = w->scratch;
    float *line_weights = w->line_weights + (size_t)w->next * w->n_lines;
    float *depth_weights = w->depth_weights + (size_t)w->next * w->depth;
    float *new_weights = w->scratch + 4 * (size_t)w->depth;
    weigh_depths(w, depths, new_weights);
    for (uint32_t j = 0; j < w->n_lines; j++) {
        const size_t at = (size_t)j * w->depth;
        float part = move_line(w, values, line_valid, j, lines, depths, moved);
        if (is_full) {
            replace_values(w->sum + at, moved, frame + at, w->depth);
        } else {
            add_values(w->sum + at, moved, w->depth);
            if (frame)
                memcpy(frame + at, moved, w->depth * sizeof(*frame));
        }
        weigh_pixels(w->weight + at, new_weights, part, depth_weights,
                     is_full ? line_weights[j] : 0, w->depth);
        line_weights[j] = part;
    }
    memcpy(depth_weights, new_weights, w->depth * sizeof(*depth_weights));
    w->n += w->n < w->n_most;
    w->next = (w->next + 1) % w->n_most;
    if (w->frames)
        sum_anew(w);
}

/* ---- the picture that is registered ----
 * From a B-scan's intensity: binned, as decibels, and prepared as all that is matched
 * (analysis/align/prepare.h).
 *
 *     begin -> { add an A-line, in order ... } -> end */

/* Of an empty one too. */
static void finish_prepare(struct prepare *p)
{
    oct_picture_finish(&p->picture);
    free(p->scratch);
    free(p->n_added);
}

/* Chooses bins. */
static enum oct_err init_prepare(struct prepare *p, uint32_t n_lines, uint32_t depth,
                                 struct oct_error *err)
{
    *p = (struct prepare){.n_lines = n_lines, .depth = depth, .bin_lines = 1, .bin_depth = 1};
    /* Depth first: its pixels are the finer ones. */
    while ((uint64_t)(n_lines / p->bin_lines) * (depth / p->bin_depth) > MOST_PIXELS) {
        bool may_depth = p->bin_depth < MOST_BIN && depth / (2 * p->bin_depth) >= 64;
        bool may_lines = p->bin_lines < MOST_BIN && n_lines / (2 * p->bin_lines) >= 64;
        if (!may_depth && !may_lines)
            break;
        if (may_depth && (p->bin_depth <= p->bin_lines || !may_lines))
            p->bin_depth *= 2;
        else
            p->bin_lines *= 2;
    }
    const uint32_t height = n_lines / p->bin_lines, width = depth / p->bin_depth;
    const enum oct_err e = oct_picture_init(&p->picture, height, width, false, err);
    p->scratch = malloc(((size_t)height + 1) * width * sizeof(*p->scratch));
    p->n_added = calloc(height, 1);
    if (!e && !(p->scratch && p->n_added))
        return oct_fail(err, OCT_E_NO_MEMORY, "average: out of memory");
    return e;
}

static float *row_of(struct prepare *p, int64_t y)
{
    return p->picture.pixels + (size_t)y * p->picture.width;
}

static void begin_prepare(struct prepare *p)
{
    memset(p->picture.pixels, 0,
           (size_t)p->picture.height * p->picture.width * sizeof(*p->picture.pixels));
    memset(p->n_added, 0, p->picture.height);
}

/* intensity [D], finite. An A-line that never came is not added: where a row has none it says
 * nothing, neither for nor against a shift. */
static void add_to_prepare(struct prepare *p, uint32_t line, const float *intensity)
{
    const uint32_t y = line / p->bin_lines;
    if (y >= p->picture.height)
        return;
    add_bins(row_of(p, y), intensity, p->picture.width, p->bin_depth);
    p->n_added[y]++;
}

OCT_WIDE static void add_row(float *restrict to, const float *restrict from, float weight,
                             int64_t n)
{
    for (int64_t x = 0; x < n; x++)
        to[x] += weight * from[x];
}

/* Rows without A-lines become the mean of the others, so that the background has nothing from
 * there; later they are 0. Rows of fewer A-lines are as bright as others. */
static void mend_rows(struct prepare *p)
{
    const int64_t height = p->picture.height, width = p->picture.width;
    float *mean = p->scratch + height * width;
    int64_t n = 0;
    memset(mean, 0, (size_t)width * sizeof(*mean));
    for (int64_t y = 0; y < height; y++) {
        const float short_db = p->n_added[y] ? 10 * log10f((float)p->bin_lines / p->n_added[y]) : 0;
        for (int64_t x = 0; x < width && p->n_added[y] < p->bin_lines; x++)
            row_of(p, y)[x] += short_db;
        n += p->n_added[y] > 0;
        add_row(mean, row_of(p, y), p->n_added[y] > 0, width);
    }
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width && p->n_added[y] == 0 && n > 0; x++)
            row_of(p, y)[x] = mean[x] / (float)n;
}

static enum oct_err end_prepare(struct prepare *p, struct oct_error *err)
{
    const size_t n = (size_t)p->picture.height * p->picture.width;
    to_db(p->scratch, p->picture.pixels, n);
    memcpy(p->picture.pixels, p->scratch, n * sizeof(*p->scratch));
    mend_rows(p);
    const enum oct_err e = oct_align_prepare(&p->picture, err);
    for (int64_t y = 0; y < p->picture.height; y++)
        if (p->n_added[y] == 0)
            memset(row_of(p, y), 0, p->picture.width * sizeof(float));
    return e;
}

/* ---- the state ---- */

static bool has_blocks(const struct oct_analysis *a)
{
    return a->settings.repeats > 1;
}

/* 1: there is nothing to average. */
static uint32_t n_of_window(const struct oct_average_settings *s)
{
    return s->repeats > 1 ? s->repeats : s->bscans;
}

static bool is_db(const struct oct_analysis *a)
{
    return a->input.quantity == OCT_QUANTITY_INTENSITY_DB;
}

static void begin_anew(struct oct_analysis *a)
{
    clear_window(&a->window);
    a->n_in_a_row = 0;
}

static void reset_window(struct oct_analysis *a)
{
    a->n_resets += a->window.n > 0;
    begin_anew(a);
}

/* ---- a B-scan comes in ---- */

/* A line without any light never came: zeros have none. Adds the intensity to the picture that is
 * registered. */
static void bring_in_line(struct oct_analysis *a, uint32_t j)
{
    const bool in_db = a->settings.domain == OCT_AVERAGE_DB;
    const uint32_t depth = a->input.dims[1];
    float *to = a->values + (size_t)j * depth;
    const float *intensity = to;
    convert(to, in_db, a->bscan->values + (size_t)j * depth, is_db(a), depth);
    if (in_db && a->rigid) {
        convert(a->line, false, to, in_db, depth);
        intensity = a->line;
    }
    const float least = in_db ? -119.99f : 1.002e-12f;
    a->line_valid[j] = a->bscan->info.missing_lines == 0 || any_above(to, depth, least);
    if (a->rigid && a->line_valid[j])
        add_to_prepare(&a->prepare, j, intensity);
}

static enum oct_err bring_in(struct oct_analysis *a)
{
    if (a->rigid)
        begin_prepare(&a->prepare);
    for (uint32_t j = 0; j < a->input.dims[0]; j++)
        bring_in_line(a, j);
    return a->rigid ? end_prepare(&a->prepare, a->err) : OCT_OK;
}

static double to_step(double px)
{
    return round(px / STEP_PX) * STEP_PX;
}

enum match { MATCHES, DIFFERS, NOT_COMPARED };

/* Sets score and shift of the B-scan that was brought in. */
static enum oct_err compare(struct oct_analysis *a, enum match *match)
{
    a->score = NAN;
    a->shift = (struct shift){.lines = 0};
    *match = NOT_COMPARED;
    if (a->rigid && !a->has_reference)
        begin_anew(a);
    if (!a->rigid || a->window.n == 0)
        return OCT_OK;
    struct oct_shift found;
    const enum oct_err e = oct_rigid_find(a->rigid, &a->prepare.picture, &found, a->err);
    if (e)
        return e;
    a->score = found.score;
    *match = DIFFERS;
    if (!found.is_match || !(found.score >= a->settings.min_score))
        return OCT_OK;
    a->shift.lines = to_step(found.dy * a->prepare.bin_lines);
    a->shift.depth = to_step(found.dx * a->prepare.bin_depth);
    if (fabs(a->shift.lines) <= a->settings.max_shift_px &&
        fabs(a->shift.depth) <= a->settings.max_shift_px)
        *match = MATCHES;
    return OCT_OK;
}

/* Counts a B-scan out; true: enough of that, it is the first of a new window after all. */
static bool reject(struct oct_analysis *a)
{
    a->n_rejected++;
    if (a->window.n == 1) { /* the one before it goes instead */
        begin_anew(a);
        return true;
    }
    if (++a->n_in_a_row < OCT_AVERAGE_MOST_REJECTED)
        return false;
    reset_window(a);
    return true;
}

/* ---- the image ---- */

static void write_line(struct oct_analysis *a, uint32_t line, const float *mean)
{
    const uint32_t depth = a->input.dims[1];
    const size_t at = (size_t)line * depth;
    const bool in_db = a->settings.domain == OCT_AVERAGE_DB;
    float *shown = a->line + depth;
    if (is_db(a) != in_db)
        convert(shown, is_db(a), mean, in_db, depth);
    else
        memcpy(shown, mean, depth * sizeof(*shown)); /* NaN as it is */
    if (a->form.type == OCT_SAMPLE_F32)
        memcpy((float *)a->now.pixels + at, shown, depth * sizeof(*shown));
    else
        to_u8((uint8_t *)a->now.pixels + at, shown, depth, (float)a->now.lo, (float)a->now.hi);
}

/* A line that no B-scan of the window has is NaN. */
static void add_to_reference(struct oct_analysis *a, uint32_t line, const float *mean)
{
    const uint32_t depth = a->input.dims[1];
    float *intensity = a->line + depth;
    if (!any_above(mean, depth, -1000))
        return;
    convert(intensity, false, mean, a->settings.domain == OCT_AVERAGE_DB, depth);
    add_to_prepare(&a->prepare, line, intensity);
}

/* The mean becomes the image, where it is given now, and the reference of the next B-scan, where
 * one follows: without contrast there is none. */
static enum oct_err use_mean(struct oct_analysis *a, bool is_image, bool is_reference)
{
    const uint32_t depth = a->input.dims[1];
    float *mean = a->line;
    is_reference = is_reference && a->rigid;
    if (is_reference)
        begin_prepare(&a->prepare);
    for (uint32_t j = 0; j < a->input.dims[0] && (is_image || is_reference); j++) {
        const size_t at = (size_t)j * depth;
        mean_of(mean, a->window.sum + at, a->window.weight + at, depth);
        if (is_image)
            write_line(a, j, mean);
        if (is_reference)
            add_to_reference(a, j, mean);
    }
    a->is_shown = is_image;
    if (!is_reference)
        return OCT_OK;
    enum oct_err e = end_prepare(&a->prepare, a->err);
    e = e ? e : oct_rigid_set_reference(a->rigid, &a->prepare.picture, a->err);
    a->has_reference = e == OCT_OK;
    return e == OCT_E_ARG ? OCT_OK : e;
}

/* Says of the newest B-scan what became of it. */
static void note_numbers(struct oct_analysis *a, const struct oct_bscan_info *info)
{
    a->now.info = *info;
    a->now.numbers[OCT_AVERAGE_AVERAGED] = a->window.n;
    a->now.numbers[OCT_AVERAGE_REJECTED] = (double)a->n_rejected;
    a->now.numbers[OCT_AVERAGE_RESETS] = (double)a->n_resets;
    a->now.numbers[OCT_AVERAGE_SCORE] = a->score;
    a->now.numbers[OCT_AVERAGE_SHIFT_LINES] = a->shift.lines;
    a->now.numbers[OCT_AVERAGE_SHIFT_DEPTH] = a->shift.depth;
}

/* ---- blocks ---- */

static bool is_same_block(const struct oct_analysis *a, const struct oct_bscan_info *info)
{
    return info->volume == a->newest.volume &&
           info->bscan / a->settings.repeats == a->newest.bscan / a->settings.repeats;
}

/* The mean of what has come, unless `now` has it. */
static void show_window(struct oct_analysis *a)
{
    if (!a->is_shown)
        use_mean(a, true, false);
}

/* The block before was not whole: it is given as far as it came. */
static void leave_block(struct oct_analysis *a)
{
    if (a->window.n > 0 && !a->is_given) {
        show_window(a);
        struct made made = a->now;
        a->now = a->before;
        a->before = made;
        a->before.is_due = true;
    }
    a->is_given = false;
    begin_anew(a);
}

/* ---- the contract's functions ---- */

/* Whether it is the last of a block, after which none is registered onto it. */
static bool is_last_of_block(const struct oct_analysis *a, const struct oct_bscan_info *info)
{
    return has_blocks(a) && info->bscan % a->settings.repeats + 1 == a->settings.repeats;
}

/* What became of a B-scan that was brought in. */
static enum oct_err judge_bscan(struct oct_analysis *a, const struct oct_image_frame *bscan,
                                bool is_flyback)
{
    enum match match;
    enum oct_err e = compare(a, &match);
    if (e)
        return e;
    const bool is_torn = bscan->info.missing_lines > a->input.dims[0] / MISSING_SHARE;
    const bool is_new_place =
        is_flyback &&
        (match == DIFFERS || (match == MATCHES && a->score < SAME_PLACE * a->score_before));
    a->n_rejected += is_torn;
    if (!is_torn && is_new_place)
        reset_window(a);
    if (is_torn || (!is_new_place && match == DIFFERS && !reject(a))) {
        a->shift = (struct shift){NAN, NAN}; /* left out: nothing moved it */
        return OCT_OK;
    }
    a->score_before = match == MATCHES && !is_new_place ? a->score : NAN;
    if (a->window.n == 0)
        a->shift = (struct shift){.lines = 0};
    add_to_window(&a->window, a->values, a->line_valid, a->shift);
    a->n_in_a_row = 0;
    a->now.lo = bscan->lo;
    a->now.hi = bscan->hi;
    const bool is_last = is_last_of_block(a, &bscan->info);
    return use_mean(a, !has_blocks(a) || is_last, !is_last);
}

static enum oct_err average_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                                 struct oct_error *err)
{
    const struct oct_bscan_info *info = &bscan->info;
    if (!a->is_on)
        return OCT_OK;
    if (has_blocks(a) && a->any && !is_same_block(a, info))
        leave_block(a);
    const bool is_flyback =
        !has_blocks(a) && a->any && info->volume != a->newest.volume && a->n_bscans > 1;
    if (is_flyback && !a->rigid)
        reset_window(a);
    a->any = true;
    a->newest = *info;
    a->bscan = bscan;
    a->err = err;
    enum oct_err e = bring_in(a);
    e = e ? e : judge_bscan(a, bscan, is_flyback);
    if (e)
        return e;
    note_numbers(a, info);
    a->now.is_due = a->window.n > 0 && (!has_blocks(a) || is_last_of_block(a, info));
    if (a->now.is_due)
        show_window(a);
    a->is_given = a->is_given || a->now.is_due;
    return OCT_OK;
}

static void fill_result(const struct oct_analysis *a, struct made *made,
                        struct oct_image_frame *result)
{
    memcpy(result->pixels, made->pixels, oct_image_form_bytes(&a->form));
    memcpy(result->numbers, made->numbers, sizeof(result->numbers));
    result->info = made->info;
    result->lo = made->lo;
    result->hi = made->hi;
    made->is_due = false;
}

static enum oct_err average_take(struct oct_analysis *a, struct oct_image_frame *result,
                                 struct oct_error *err)
{
    (void)err;
    if (a->before.is_due)
        fill_result(a, &a->before, result);
    else if (a->now.is_due)
        fill_result(a, &a->now, result);
    else
        return OCT_E_AGAIN;
    return OCT_OK;
}

static void average_end(struct oct_analysis *a)
{
    if (!a->is_on || !has_blocks(a))
        return;
    a->now.is_due = a->window.n > 0 && !a->is_given;
    if (a->now.is_due)
        show_window(a);
    a->is_given = true;
}

static void average_reset(struct oct_analysis *a)
{
    a->any = a->is_given = false;
    a->now.is_due = a->before.is_due = false;
    if (a->is_on)
        reset_window(a);
}

static bool average_is_at_rest(const struct oct_analysis *a)
{
    return !a->is_on;
}

/* ---- life ---- */

static enum oct_err check_settings(const struct oct_average_settings *s, struct oct_error *err)
{
    const enum oct_err e = oct_params_check(&oct_average_params, s, "average", err);
    if (e || (s->repeats >= 1 && s->repeats <= OCT_AVERAGE_MOST_BSCANS))
        return e;
    return oct_fail(err, OCT_E_CONFIG, "average: scan.repeats is %u: it takes 1 to %u", s->repeats,
                    OCT_AVERAGE_MOST_BSCANS);
}

enum oct_err oct_average_check(const struct oct_average_settings *settings, uint32_t n_lines,
                               uint32_t depth, struct oct_error *err)
{
    const uint32_t n_most = n_of_window(settings), least = OCT_PICTURE_LEAST_SIDE;
    const double there = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    const double bytes = (double)n_lines * depth * (settings->repeats > 1 ? 16 : 4.0 * n_most + 16);
    enum oct_err e = check_settings(settings, err);
    if (e || n_most < 2)
        return e;
    if (!(bytes <= SHARE_OF_MEMORY * there))
        return oct_fail(err, OCT_E_CONFIG,
                        "average: %u B-scans of %u x %u take %.1f GB, more than a quarter of this "
                        "machine's memory: lower %s",
                        n_most, n_lines, depth, bytes * 1e-9,
                        settings->repeats > 1 ? "scan.lines" : "average.bscans");
    if (settings->registration == OCT_AVERAGE_RIGID && (n_lines < least || depth < least))
        return oct_fail(err, OCT_E_CONFIG,
                        "average: a B-scan of %u x %u is too small to be registered (%u at least): "
                        "set average.register to none",
                        n_lines, depth, least);
    return OCT_OK;
}

/* What depends on settings. */
static void finish_parts(struct oct_analysis *a)
{
    finish_window(&a->window);
    finish_prepare(&a->prepare);
    oct_rigid_destroy(a->rigid);
    free(a->values);
    free(a->line_valid);
    free(a->line);
    free(a->now.pixels);
    free(a->before.pixels);
}

static uint32_t bins_of(double px, uint32_t bin, uint32_t n)
{
    double bins = ceil(px / bin);
    return bins < n - 1 ? (uint32_t)bins : n - 1;
}

static enum oct_err make_rigid(struct oct_analysis *a, struct oct_error *err)
{
    enum oct_err e = init_prepare(&a->prepare, a->input.dims[0], a->input.dims[1], err);
    if (e)
        return e;
    const struct oct_picture *picture = &a->prepare.picture;
    const struct oct_rigid_setup setup = {
        .height = picture->height,
        .width = picture->width,
        .max_dy = bins_of(a->settings.max_shift_px, a->prepare.bin_lines, picture->height),
        .max_dx = bins_of(a->settings.max_shift_px, a->prepare.bin_depth, picture->width),
        .min_overlap = LEAST_OVERLAP,
        .backend = "cpu",
        .plans_ahead = true,
    };
    return oct_rigid_create(&a->rigid, &setup, err);
}

static enum oct_err make_parts(struct oct_analysis *a, struct oct_error *err)
{
    const uint32_t n_lines = a->input.dims[0], depth = a->input.dims[1];
    const size_t bytes = oct_image_form_bytes(&a->form);
    enum oct_err e = oct_average_check(&a->settings, n_lines, depth, err);
    if (e || n_of_window(&a->settings) < 2)
        return e;
    e = init_window(&a->window, n_lines, depth, n_of_window(&a->settings), has_blocks(a), err);
    if (!e && a->settings.registration == OCT_AVERAGE_RIGID)
        e = make_rigid(a, err);
    if (e)
        return e;
    a->values = oct_aligned_alloc(64, (size_t)n_lines * depth, sizeof(*a->values));
    a->line_valid = malloc(n_lines);
    a->line = oct_aligned_alloc(64, 2 * (size_t)depth, sizeof(*a->line));
    a->now.pixels = malloc(bytes);
    a->before.pixels = malloc(bytes);
    if (!a->values || !a->line_valid || !a->line || !a->now.pixels || !a->before.pixels)
        return oct_fail(err, OCT_E_NO_MEMORY, "average: out of memory");
    a->is_on = true;
    return OCT_OK;
}

/* The window goes on where only what a B-scan must reach to come in has changed. */
static bool needs_parts_anew(const struct oct_average_settings *old,
                             const struct oct_average_settings *new_ones)
{
    return old->bscans != new_ones->bscans || old->registration != new_ones->registration ||
           old->domain != new_ones->domain || old->max_shift_px < new_ones->max_shift_px ||
           old->max_shift_px > new_ones->max_shift_px;
}

static enum oct_err average_configure(struct oct_analysis *a, const void *settings,
                                      struct oct_error *err)
{
    struct oct_average_settings wanted = *(const struct oct_average_settings *)settings;
    enum oct_err e = check_settings(&wanted, err);
    if (e)
        return e;
    wanted.repeats = a->settings.repeats;
    if (!needs_parts_anew(&a->settings, &wanted)) {
        a->settings = wanted;
        return OCT_OK;
    }
    struct oct_analysis next = {.input = a->input,
                                .form = a->form,
                                .n_bscans = a->n_bscans,
                                .settings = wanted,
                                .any = a->any,
                                .newest = a->newest,
                                .n_rejected = a->n_rejected,
                                .n_resets = a->n_resets,
                                .score = a->score,
                                .score_before = a->score_before,
                                .shift = a->shift};
    e = make_parts(&next, err);
    if (e) {
        finish_parts(&next);
        return e;
    }
    finish_parts(a);
    *a = next;
    return OCT_OK;
}

static void average_destroy(struct oct_analysis *a)
{
    if (!a)
        return;
    finish_parts(a);
    free(a);
}

static void describe(struct oct_analysis *a, const struct oct_analysis_setup *setup)
{
    const uint32_t repeats = a->settings.repeats;
    a->form = (struct oct_image_form){
        .name = "average",
        .quantity = setup->input->quantity,
        .type = setup->input->type,
        .rank = 2,
        .dims = {setup->input->dims[0], setup->input->dims[1]},
        .spacing_um = {setup->spacing.line_um, setup->spacing.depth_um},
        .axes = {"line", "depth"},
        .bscans_an_image = repeats > 1 ? repeats : 0,
        .numbers = numbers,
        .n_numbers = sizeof(numbers) / sizeof(numbers[0]),
        .at_root = true,
    };
}

static enum oct_err average_create(struct oct_analysis **out,
                                   const struct oct_analysis_setup *setup,
                                   struct oct_image_form *form, struct oct_error *err)
{
    *out = NULL;
    enum oct_err e = check_settings(setup->settings, err);
    if (e)
        return e;
    struct oct_analysis *a = calloc(1, sizeof(*a));
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "average: out of memory");
    a->input = *setup->input;
    a->n_bscans = setup->n_bscans;
    a->settings = *(const struct oct_average_settings *)setup->settings;
    describe(a, setup);
    e = make_parts(a, err);
    if (e) {
        average_destroy(a);
        return e;
    }
    *form = a->form;
    *out = a;
    return OCT_OK;
}

static void average_join(void *settings, const struct oct_analysis_session *session)
{
    /* Blocks are of neighbours: interleaved repeats are none. */
    ((struct oct_average_settings *)settings)->repeats =
        session->scan.interleave > 1 ? 1 : session->scan.repeats;
}

static enum oct_err average_check(const void *settings, const struct oct_analysis_setup *setup,
                                  struct oct_error *err)
{
    return oct_average_check(settings, setup->input->dims[0], setup->input->dims[1], err);
}

/* By a window, or by repeats. */
static bool average_is_asked(const void *settings)
{
    const struct oct_average_settings *s = settings;
    return s->bscans > 1 || s->repeats > 1;
}

const struct oct_analysis_ops oct_average_cpu = {
    .name = "average",
    .backend = "cpu",
    .meaning = "The mean of the last B-scans, registered; or of the repeats of each place.",
    .input = OCT_STAGE_VALUES,
    .settings_bytes = sizeof(struct oct_average_settings),
    .keys = {{.params = &oct_average_params}},
    .section = "The live average of B-scans: topic and dataset `average`.",
    .join = average_join,
    .check = average_check,
    .is_asked = average_is_asked,
    .most_behind = 2,
    .create = average_create,
    .run =
        {
            .push = average_push,
            .take = average_take,
            .end = average_end,
            .reset = average_reset,
            .configure = average_configure,
            .is_at_rest = average_is_at_rest,
            .destroy = average_destroy,
        },
};
