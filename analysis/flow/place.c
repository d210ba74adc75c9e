#include "analysis/flow/place.h"

#include "kernels/device/workers.h"
#include "numeric/order.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846
#define MOST_BANDS 4u
#define BANDS_OF(method) ((method) == OCT_FLOW_SSADA ? MOST_BANDS : 1u)
#define ROW_MARGIN OCT_FLOW_MARGIN
#define STRIP_LINES 60u /* of a piece of work, beside which those of the window are summed again */
enum { SAME = OCT_FLOW_SAME, BOTH, INTENSITY, N_SUMS = OCT_FLOW_N_SUMS };

/* A repeat of an A-line, moved: planes and power, [bands]. Of methods but `complex`. */
struct moved {
    float *re, *im, *power[MOST_BANDS];
    bool came;
    unsigned repeat;
    uint32_t first, end; /* depths */
};

/* What a window holds of each repeat, or pair, and the row that follows, which many windows of a
 * place share. */
struct weighed {
    float taps[OCT_FLOW_MOST_REPEATS], *row;
    bool is_known;
};

/* Memory of a worker: rows with margins, zeros but for what a line writes between them. */
struct scratch {
    float *memory;
    struct moved moved[2];
    float *same, *both, *intensity, *re, *im; /* what is smoothed along the depth */
    float *smooth[2];                         /* what is smoothed */
    float *count;                             /* repeats of a line */
    struct weighed weighed[2];                /* pairs and repeats of a window */
    float *isnr, *score;
    /* The lines that the window reaches, line j in place j % n_ring. */
    float *ring; /* [N_SUMS][n_ring][stride] smoothed along the depth */
    struct sums *sums;
};
enum { N_ROWS = 2 * (2 + MOST_BANDS) + 12 };

/* What an A-line's sums are of. */
struct sums {
    uint64_t repeats, pairs; /* bit r: repeat r came; bit r: so did r + 1 */
    uint32_t first, end;     /* depths that a pair has */
};

/* What is true of an A-line. */
struct line {
    struct sums sums;
    double snr;
    uint32_t n_tissue, n_looked, n_bright;
};

struct oct_flow_place {
    struct oct_flow_place_setup setup;
    struct oct_flow_optics optics;
    const struct oct_flow_kernels *k;
    struct oct_flow_window window;
    unsigned n_bands, n_band_taps;
    float band_taps[OCT_FLOW_MOST_RADIUS + 1];
    float *band_re, *band_im; /* [bands][stride] exp(-2 pi i d K_k) */
    size_t stride;
    uint32_t look_step; /* depths from one voxel that is looked at to the next */
    unsigned n_scratches;
    struct scratch *scratch; /* [n_scratches] */
    struct line *line;       /* [M] */
    uint32_t n_ring;
    float *isnr;        /* [M][stride] */
    float *bright;      /* [M][D / look_step + 1] */
    float *share;       /* [2][R][stride] where pairs and repeats are, smoothed */
    double (*alike)[2]; /* [M][R] of a pair: |sum of B_r conj B_r-1|, and its mean power */
    float *d, *z, *projected, *intensity; /* [M][D] */

    /* Of the place at hand. */
    const struct oct_flow_bscan *const *repeats;
    int32_t lines[OCT_FLOW_MOST_REPEATS], depths[OCT_FLOW_MOST_REPEATS];
    struct oct_flow_found found;
    double samples; /* Q */
};

static uint64_t bit(unsigned i)
{
    return UINT64_C(1) << i;
}

static float *ring_row(const struct oct_flow_place *p, const struct scratch *s, unsigned sum,
                       uint32_t j)
{
    return s->ring + ((size_t)sum * p->n_ring + j % p->n_ring) * p->stride;
}

/* ---- life ---- */

static void finish_scratches(struct oct_flow_place *p)
{
    for (unsigned i = 0; i < p->n_scratches && p->scratch; i++) {
        free(p->scratch[i].memory);
        free(p->scratch[i].ring);
        free(p->scratch[i].sums);
    }
    free(p->scratch);
}

static bool init_scratch(struct scratch *s, size_t stride, uint32_t n_ring)
{
    s->memory = oct_aligned_calloc(64, N_ROWS * stride, sizeof(float));
    s->ring = oct_aligned_calloc(64, N_SUMS * n_ring * stride, sizeof(float));
    s->sums = calloc(n_ring, sizeof(*s->sums));
    if (!s->memory || !s->ring || !s->sums)
        return false;
    float *at = s->memory + ROW_MARGIN;
    float **rows[N_ROWS] = {&s->same, &s->both,           &s->intensity,      &s->re,
                            &s->im,   &s->smooth[0],      &s->smooth[1],      &s->count,
                            &s->isnr, &s->weighed[0].row, &s->weighed[1].row, &s->score};
    unsigned n = 12;
    for (unsigned i = 0; i < 2; i++) {
        rows[n++] = &s->moved[i].re;
        rows[n++] = &s->moved[i].im;
        for (unsigned band = 0; band < MOST_BANDS; band++)
            rows[n++] = &s->moved[i].power[band];
    }
    for (unsigned i = 0; i < N_ROWS; i++)
        *rows[i] = at + i * stride;
    return true;
}

/* The bands of SSADA: a Gaussian over k of a quarter of the band's width, full at half maximum, is
 * one over the depth, turned about its middle. */
static void init_bands(struct oct_flow_place *p)
{
    const double *turns = p->optics.turns, width = (turns[1] - turns[0]) / MOST_BANDS;
    p->n_bands = BANDS_OF(p->setup.method);
    if (p->n_bands == 1)
        return;
    p->n_band_taps = oct_flow_taps(sqrt(2 * log(2)) / (PI * width), p->band_taps);
    for (unsigned band = 0; band < p->n_bands; band++)
        for (uint32_t d = 0; d < p->setup.depth; d++) {
            const double turn = 2 * PI * fmod((turns[0] + (band + 0.5) * width) * d, 1);
            p->band_re[band * p->stride + d] = (float)cos(turn);
            p->band_im[band * p->stride + d] = (float)-sin(turn);
        }
}

static bool alloc_place(struct oct_flow_place *p)
{
    const struct oct_flow_place_setup *s = &p->setup;
    const size_t m = s->n_lines, n = m * s->depth;
    const bool has_bands = s->method == OCT_FLOW_SSADA;
    bool is_whole = true;
    p->line = calloc(m, sizeof(*p->line));
    p->isnr = oct_aligned_calloc(64, m * p->stride, sizeof(float));
    p->bright = malloc(m * (s->depth / p->look_step + 1) * sizeof(float));
    p->share = oct_aligned_calloc(64, 2 * s->n_repeats * p->stride, sizeof(float));
    p->alike = calloc(m * s->n_repeats, sizeof(*p->alike));
    p->d = malloc((n + 16) * sizeof(float)); /* whole registers are read behind the last */
    if (!s->show) {
        p->z = malloc((n + 16) * sizeof(float));
        p->projected = s->projection > 0 ? malloc((n + 16) * sizeof(float)) : p->z;
        p->intensity = malloc(n * sizeof(float));
        is_whole = p->z && p->projected && p->intensity;
    }
    p->band_re = has_bands ? calloc(MOST_BANDS * p->stride, sizeof(float)) : NULL;
    p->band_im = has_bands ? calloc(MOST_BANDS * p->stride, sizeof(float)) : NULL;
    p->scratch = calloc(p->n_scratches, sizeof(*p->scratch));
    for (unsigned i = 0; i < p->n_scratches && p->scratch && is_whole; i++)
        is_whole = init_scratch(&p->scratch[i], p->stride, p->n_ring);
    return p->line && p->isnr && p->bright && p->share && p->alike && p->d && p->scratch &&
           is_whole && (!has_bands || (p->band_re && p->band_im));
}

enum oct_err oct_flow_place_create(struct oct_flow_place **place,
                                   const struct oct_flow_place_setup *setup, struct oct_error *err)
{
    struct oct_flow_place *p = calloc(1, sizeof(*p));
    *place = NULL;
    if (p) {
        p->setup = *setup;
        p->optics = *setup->optics;
        p->k = oct_flow_kernels_best();
        p->stride = oct_flow_stride(setup->depth);
        p->look_step = oct_flow_look_step(setup->n_lines, setup->depth);
        p->n_scratches = setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1;
        oct_flow_window_init(&p->window, setup->sigma_lines, setup->sigma_depth);
        p->n_ring = 2 * p->window.n_lines - 1;
    }
    if (!p || !alloc_place(p)) {
        oct_flow_place_destroy(p);
        return oct_fail(err, OCT_E_NO_MEMORY, "flow: out of memory for places of %u x %u",
                        setup->n_lines, setup->depth);
    }
    init_bands(p);
    *place = p;
    return OCT_OK;
}

void oct_flow_place_destroy(struct oct_flow_place *p)
{
    if (!p)
        return;
    finish_scratches(p);
    free(p->line);
    free(p->isnr);
    free(p->bright);
    free(p->share);
    free(p->alike);
    free(p->d);
    if (p->projected != p->z)
        free(p->projected);
    free(p->z);
    free(p->intensity);
    free(p->band_re);
    free(p->band_im);
    free(p);
}

/* ---- where repeats lie ---- */

/* Whole shifts onto the first, as sums of those between neighbours. */
static enum oct_err register_repeats(struct oct_flow_place *p, struct oct_error *err)
{
    const struct oct_flow_bscan *before = NULL;
    double lines = 0, depths = 0;
    for (unsigned r = 0; r < p->setup.n_repeats; r++) {
        const struct oct_flow_bscan *b = p->repeats[r];
        struct oct_flow_shift shift = {0, 0, 0};
        p->found.shift[r][0] = p->found.shift[r][1] = NAN;
        if (!b)
            continue;
        const enum oct_err e =
            before ? oct_flow_shift_find(before, b, p->setup.workers, &shift, err) : OCT_OK;
        if (e)
            return e;
        p->found.shift[r][0] = lines += shift.lines;
        p->found.shift[r][1] = depths += shift.depth;
        p->lines[r] = (int32_t)lround(lines);
        p->depths[r] = (int32_t)lround(depths);
        before = b;
    }
    return OCT_OK;
}

/* The depths of repeat r that lie in the picture once it is moved; *end is at least *first. */
static void range_of(const struct oct_flow_place *p, unsigned r, uint32_t *first, uint32_t *end)
{
    const int64_t depth = p->setup.depth, shift = p->depths[r];
    const int64_t from = shift > 0 ? shift : 0, to = shift < 0 ? depth + shift : depth;
    *first = (uint32_t)(from < depth ? from : depth);
    *end = (uint32_t)(to > *first ? to : *first);
}

static void pair_range(const struct oct_flow_place *p, unsigned r, uint32_t *first, uint32_t *end)
{
    uint32_t a, b;
    range_of(p, r, first, end);
    range_of(p, r + 1, &a, &b);
    *first = *first > a ? *first : a;
    *end = *end < b ? *end : b;
    *end = *end > *first ? *end : *first;
}

/* Where pairs and repeats are along the depth, smoothed as what they add to. */
static void share_depths(struct oct_flow_place *p)
{
    const unsigned n = p->setup.n_repeats;
    float *row = p->scratch[0].same;
    for (unsigned i = 0; i < 2 * n; i++) {
        const unsigned r = i % n;
        uint32_t first = 0, end = 0;
        if (i >= n && p->repeats[r])
            range_of(p, r, &first, &end);
        else if (i < n && r + 1 < n && p->repeats[r] && p->repeats[r + 1])
            pair_range(p, r, &first, &end);
        for (uint32_t d = 0; d < p->setup.depth; d++)
            row[d] = d >= first && d < end;
        p->k->smooth(row, p->window.depth, p->window.n_depth, p->setup.depth,
                     p->share + i * p->stride);
    }
}

/* ---- sums of an A-line ---- */

/* Repeats of an A-line that came, one after another. */
struct chain {
    unsigned first, n; /* repeats */
    struct oct_flow_line line[OCT_FLOW_MOST_REPEATS];
    float turn[OCT_FLOW_MOST_REPEATS][2];
};

/* Notes that line j has the pair of repeat r and the one before; returns its mean power. */
static double note_pair(const struct oct_flow_place *p, struct sums *sums, unsigned r, uint32_t j)
{
    uint32_t first, end;
    pair_range(p, r - 1, &first, &end);
    if (end > first) {
        sums->pairs |= bit(r - 1);
        sums->first = first < sums->first ? first : sums->first;
        sums->end = end > sums->end ? end : sums->end;
    }
    return 0.5 * (double)(p->repeats[r]->power[(int64_t)j - p->lines[r]] +
                          p->repeats[r - 1]->power[(int64_t)j - p->lines[r - 1]]);
}

/* Line j of repeat r from depth d of the picture on. */
static struct oct_flow_line line_at(const struct oct_flow_place *p, unsigned r, uint32_t j,
                                    uint32_t d)
{
    return oct_flow_bscan_line(p->repeats[r], (uint32_t)((int64_t)j - p->lines[r]),
                               (ptrdiff_t)d - p->depths[r]);
}

static bool line_came(const struct oct_flow_place *p, unsigned r, uint32_t j)
{
    const struct oct_flow_bscan *b = p->repeats[r];
    const int64_t from = (int64_t)j - p->lines[r];
    return b && from >= 0 && from < b->n_lines && b->power[from] > 0;
}

/* Step 3 of a pair. */
static double turn_pair(const struct oct_flow_place *p, unsigned r, uint32_t j, float turn[2])
{
    uint32_t first, end;
    float sum[2];
    pair_range(p, r - 1, &first, &end);
    p->k->cross(line_at(p, r - 1, j, first), line_at(p, r, j, first), end - first, sum);
    const float length = hypotf(sum[0], sum[1]);
    turn[0] = length > 0 ? sum[0] / length : 1;
    turn[1] = length > 0 ? sum[1] / length : 0;
    return (double)length;
}

/* Depths from .. to - 1, which not all repeats of the chain have. */
static void join_border(const struct oct_flow_place *p, struct scratch *s, struct chain *chain,
                        uint32_t j, uint32_t from, uint32_t to)
{
    for (uint32_t d = from; d < to; d++)
        for (unsigned i = 0, n = 0; i <= chain->n; i++) {
            uint32_t first = 0, end = 0;
            if (i < chain->n)
                range_of(p, chain->first + i, &first, &end);
            if (d >= first && d < end) {
                chain->line[n++] = line_at(p, chain->first + i, j, d);
                continue;
            }
            if (n > 0)
                p->k->join(chain->line, (const float(*)[2])(chain->turn + i - n), n, 1, s->same + d,
                           s->both + d, s->intensity + d);
            n = 0;
        }
}

/* Steps 3 and 4 of the repeats of a chain: their sums, where all of them are at once. */
static void join_chain(const struct oct_flow_place *p, struct scratch *s, struct chain *chain,
                       uint32_t j)
{
    uint32_t first = 0, end = p->setup.depth;
    for (unsigned i = 0; i < chain->n; i++) {
        uint32_t its_first, its_end;
        range_of(p, chain->first + i, &its_first, &its_end);
        first = first > its_first ? first : its_first;
        end = end < its_end ? end : its_end;
    }
    end = end > first ? end : first;
    for (unsigned i = 0; i < chain->n && end > first; i++)
        chain->line[i] = line_at(p, chain->first + i, j, first);
    if (end > first)
        p->k->join(chain->line, (const float(*)[2])chain->turn, chain->n, end - first,
                   s->same + first, s->both + first, s->intensity + first);
    join_border(p, s, chain, j, 0, first);
    join_border(p, s, chain, j, end, p->setup.depth);
}

/* The sums of line j, of `complex`. alike: [R], NULL: nobody asks. */
static void join_repeats(const struct oct_flow_place *p, struct scratch *s, uint32_t j,
                         struct sums *sums, double (*alike)[2])
{
    struct chain chain = {.n = 0};
    for (unsigned r = 0; r < p->setup.n_repeats; r++) {
        double pair[2] = {0, 0};
        const bool came = line_came(p, r, j);
        if (came && chain.n > 0) {
            pair[0] = turn_pair(p, r, j, chain.turn[chain.n]);
            pair[1] = note_pair(p, sums, r, j);
        }
        if (alike)
            memcpy(alike[r], pair, sizeof(pair));
        if (came) {
            chain.first = chain.n ? chain.first : r;
            chain.n++;
            sums->repeats |= bit(r);
        }
        if (chain.n && (!came || r + 1 == p->setup.n_repeats)) {
            join_chain(p, s, &chain, j);
            chain.n = 0;
        }
    }
}

/* The parts of the spectrum, each by its own power. */
static void split_bands(const struct oct_flow_place *p, struct scratch *s, struct moved *m,
                        struct oct_flow_line line, uint32_t n)
{
    const uint32_t whole = p->setup.depth;
    for (unsigned band = 0; band < p->n_bands; band++) {
        const struct oct_flow_line turn = {p->band_re + band * p->stride,
                                           p->band_im + band * p->stride};
        const struct oct_flow_line smooth = {s->smooth[0], s->smooth[1]};
        memset(s->re, 0, whole * sizeof(float));
        memset(s->im, 0, whole * sizeof(float));
        p->k->product(line, turn, n, s->re + m->first, s->im + m->first);
        p->k->smooth(s->re, p->band_taps, p->n_band_taps, whole, s->smooth[0]);
        p->k->smooth(s->im, p->band_taps, p->n_band_taps, whole, s->smooth[1]);
        p->k->turn(smooth, (const float[2]){1, 0}, whole, s->re, s->im, m->power[band]);
    }
}

/* Repeat r of line j, moved onto the first one's place. */
static void move_line(const struct oct_flow_place *p, struct scratch *s, struct moved *m,
                      const struct moved *before, unsigned r, uint32_t j, double alike[2])
{
    float sum[2];
    m->repeat = r;
    m->came = line_came(p, r, j);
    if (!m->came)
        return;
    range_of(p, r, &m->first, &m->end);
    const uint32_t n = m->end - m->first;
    const struct oct_flow_line line = line_at(p, r, j, m->first);
    if (before->came && before->repeat + 1 == r) {
        uint32_t first, end;
        pair_range(p, r - 1, &first, &end);
        p->k->cross(
            (struct oct_flow_line){before->re + first, before->im + first},
            (struct oct_flow_line){line.re + (first - m->first), line.im + (first - m->first)},
            end - first, sum);
        alike[0] = hypot((double)sum[0], (double)sum[1]);
    }
    p->k->turn(line, (const float[2]){1, 0}, n, m->re + m->first, m->im + m->first,
               m->power[0] + m->first);
    p->k->add(m->power[0] + m->first, n, s->intensity + m->first);
    if (p->n_bands > 1)
        split_bands(p, s, m, line, n);
}

static void add_cdv(const struct oct_flow_place *p, struct scratch *s, struct oct_flow_line a,
                    struct oct_flow_line b, uint32_t first, uint32_t n)
{
    const uint32_t depth = p->setup.depth;
    memset(s->re, 0, depth * sizeof(float));
    memset(s->im, 0, depth * sizeof(float));
    p->k->product(a, b, n, s->re + first, s->im + first);
    p->k->smooth(s->re, p->window.depth, p->window.n_depth, depth, s->smooth[0]);
    p->k->smooth(s->im, p->window.depth, p->window.n_depth, depth, s->smooth[1]);
    p->k->modulus(s->smooth[0], s->smooth[1], depth, s->same);
}

static void add_pair(const struct oct_flow_place *p, struct scratch *s, const struct moved *a,
                     const struct moved *b)
{
    uint32_t first, end;
    pair_range(p, a->repeat, &first, &end);
    const uint32_t n = end - first;
    const struct oct_flow_line of_a = {a->re + first, a->im + first};
    const struct oct_flow_line of_b = {b->re + first, b->im + first};
    switch (p->setup.method) {
    case OCT_FLOW_COMPLEX: /* join_repeats */
        break;
    case OCT_FLOW_CDV:
        add_cdv(p, s, of_a, of_b, first, n);
        p->k->powers(a->power[0] + first, b->power[0] + first, n, s->both + first);
        break;
    case OCT_FLOW_SSADA:
    case OCT_FLOW_AMPLITUDE:
        for (unsigned band = 0; band < p->n_bands; band++)
            p->k->amplitudes(a->power[band] + first, b->power[band] + first,
                             1.0f / (float)p->n_bands, n, s->same + first, s->both + first);
        break;
    }
}

/* The same of the other methods. */
static void add_repeats(const struct oct_flow_place *p, struct scratch *s, uint32_t j,
                        struct sums *sums, double (*alike)[2])
{
    struct moved *before = &s->moved[0], *now = &s->moved[1];
    before->came = false;
    for (unsigned r = 0; r < p->setup.n_repeats; r++) {
        double pair[2] = {0, 0};
        move_line(p, s, now, before, r, j, pair);
        if (now->came && before->came && before->repeat + 1 == r) {
            add_pair(p, s, before, now);
            pair[1] = note_pair(p, sums, r, j);
        }
        if (alike)
            memcpy(alike[r], pair, sizeof(pair));
        if (!now->came)
            continue;
        sums->repeats |= bit(r);
        struct moved *next = before;
        before = now;
        now = next;
    }
}

static void keep_intensity(const struct oct_flow_place *p, struct scratch *s, uint32_t j,
                           uint64_t repeats)
{
    const uint32_t depth = p->setup.depth;
    memset(s->count, 0, depth * sizeof(float));
    for (unsigned r = 0; r < p->setup.n_repeats; r++) {
        uint32_t first = 0, end = 0;
        if (repeats & bit(r))
            range_of(p, r, &first, &end);
        for (uint32_t d = first; d < end; d++)
            s->count[d] += 1;
    }
    p->k->mean(s->intensity, s->count, depth, p->intensity + (size_t)j * depth);
}

/* The sums of line j, smoothed along the depth, into the ring. is_own: not a neighbour's. */
static void sum_line(struct oct_flow_place *p, struct scratch *s, uint32_t j, bool is_own)
{
    const uint32_t depth = p->setup.depth;
    const struct oct_flow_window *w = &p->window;
    struct sums *sums = &s->sums[j % p->n_ring];
    float *rows[N_SUMS] = {s->same, s->both, s->intensity};
    double(*alike)[2] = is_own ? p->alike + (size_t)j * p->setup.n_repeats : NULL;
    *sums = (struct sums){.first = depth};
    for (unsigned i = 0; i < N_SUMS; i++)
        memset(rows[i], 0, depth * sizeof(float));
    if (p->setup.method == OCT_FLOW_COMPLEX)
        join_repeats(p, s, j, sums, alike);
    else
        add_repeats(p, s, j, sums, alike);
    if (is_own && p->intensity)
        keep_intensity(p, s, j, sums->repeats);
    for (unsigned i = 0; i < N_SUMS; i++)
        if (i == SAME && p->setup.method == OCT_FLOW_CDV) /* smooth already */
            memcpy(ring_row(p, s, i, j), rows[i], depth * sizeof(float));
        else
            p->k->smooth(rows[i], w->depth, w->n_depth, depth, ring_row(p, s, i, j));
}

/* ---- the window along A-lines, and what follows from the sums ---- */

/* The lines of the window about line j from *first on, and their taps. */
static void look_around(const struct oct_flow_place *p, const struct scratch *s, uint32_t j,
                        struct oct_flow_sums *around, uint32_t *first)
{
    const uint32_t radius = p->window.n_lines - 1;
    const uint32_t end = j + radius < p->setup.n_lines ? j + radius + 1 : p->setup.n_lines;
    around->n = 0;
    *first = j > radius ? j - radius : 0;
    for (uint32_t i = *first; i < end; i++, around->n++) {
        around->taps[around->n] = p->window.lines[i < j ? j - i : i - j];
        for (unsigned sum = 0; sum < N_SUMS; sum++)
            around->rows[sum][around->n] = ring_row(p, s, sum, i);
    }
}

/* The pairs that the window of a line from `first` on holds, or 1 over its repeats. */
static const float *weigh(const struct oct_flow_place *p, struct scratch *s,
                          const struct oct_flow_sums *around, uint32_t first, bool repeats)
{
    const float *rows[OCT_FLOW_MOST_REPEATS];
    float taps[OCT_FLOW_MOST_REPEATS] = {0};
    const unsigned n = p->setup.n_repeats;
    struct weighed *weighed = &s->weighed[repeats];
    for (unsigned r = 0; r < n; r++) {
        rows[r] = p->share + ((repeats ? n : 0) + r) * p->stride;
        for (unsigned i = 0; i < around->n; i++) {
            const struct sums *sums = &s->sums[(first + i) % p->n_ring];
            if ((repeats ? sums->repeats : sums->pairs) & bit(r))
                taps[r] += around->taps[i];
        }
    }
    bool is_known = weighed->is_known;
    for (unsigned r = 0; r < n; r++)
        is_known = is_known && !(fabsf(taps[r] - weighed->taps[r]) > 0);
    if (is_known)
        return weighed->row;
    memcpy(weighed->taps, taps, sizeof(taps));
    weighed->is_known = true;
    p->k->combine(rows, taps, n, p->setup.depth, weighed->row);
    for (uint32_t d = 0; d < p->setup.depth && repeats; d++)
        weighed->row[d] = 1 / weighed->row[d];
    return weighed->row;
}

/* Voxels that are looked at. */
static void look_at_line(struct oct_flow_place *p, uint32_t j, const float *d, const float *isnr)
{
    struct line *line = &p->line[j];
    const uint32_t step = p->look_step, start = (step - (uint32_t)(j % step)) % step;
    float *bright = p->bright + (size_t)j * (p->setup.depth / step + 1);
    for (uint32_t at = start; at < line->sums.end; at += step) {
        if (at < line->sums.first)
            continue;
        line->n_looked++;
        if (isnr[at] < OCT_FLOW_TISSUE) {
            line->snr += (double)(1 / isnr[at]);
            line->n_tissue++;
        }
        if (isnr[at] < OCT_FLOW_BRIGHT)
            bright[line->n_bright++] = d[at];
    }
}

/* d and isnr of line j, of which the ring has all neighbours. */
static void judge_line(struct oct_flow_place *p, struct scratch *s, uint32_t j)
{
    const uint32_t depth = p->setup.depth;
    const float noise = (float)p->found.noise;
    const bool has_noise = p->setup.method == OCT_FLOW_COMPLEX || p->setup.method == OCT_FLOW_CDV;
    struct line *line = &p->line[j];
    float *d = p->d + (size_t)j * depth, *isnr = p->isnr + (size_t)j * p->stride;
    *line = (struct line){.sums = s->sums[j % p->n_ring]};
    const uint32_t first = line->sums.pairs ? line->sums.first : depth, end = line->sums.end;
    if (line->sums.pairs) {
        struct oct_flow_sums around;
        uint32_t first_line;
        look_around(p, s, j, &around, &first_line);
        const float *weight = weigh(p, s, &around, first_line, false);
        const float *share = weigh(p, s, &around, first_line, true);
        p->k->judge(&around, weight, share, noise, has_noise ? noise : 0, depth, d, isnr);
        look_at_line(p, j, d, isnr);
    }
    for (uint32_t at = 0; at < first; at++)
        d[at] = NAN;
    for (uint32_t at = end > first ? end : first; at < depth; at++)
        d[at] = NAN;
}

/* A strip of lines: each is judged as soon as those that its window reaches are summed. */
static void judge_strip(void *context, unsigned piece, unsigned worker)
{
    struct oct_flow_place *p = context;
    struct scratch *s = &p->scratch[worker];
    const uint32_t radius = p->window.n_lines - 1, n_lines = p->setup.n_lines;
    const uint32_t first = piece * STRIP_LINES;
    const uint32_t end = first + STRIP_LINES < n_lines ? first + STRIP_LINES : n_lines;
    uint32_t next = first;
    for (uint32_t j = first > radius ? first - radius : 0; next < end; j++) {
        if (j < n_lines)
            sum_line(p, s, j, j >= first && j < end);
        if (j >= first + radius)
            judge_line(p, s, next++);
    }
}

/* z of line j, and less what lies above, where they are kept or into rows of the worker's. */
static void score_line(const struct oct_flow_place *p, struct scratch *s, uint32_t j, float *z,
                       float *projected)
{
    const uint32_t depth = p->setup.depth;
    const double bulk = p->found.bulk, least = bulk > OCT_FLOW_LEAST_SD ? bulk : OCT_FLOW_LEAST_SD;
    const uint64_t pairs = p->line[j].sums.pairs;
    const double n = __builtin_popcountll(pairs), m = __builtin_popcountll(pairs & pairs >> 1);
    const double share = n > 0 ? (n + m / 2) / (n * n) / p->samples : 1;
    const float *d = p->d + (size_t)j * depth, *isnr = p->isnr + (size_t)j * p->stride;
    p->k->score(d, isnr, (float)bulk, (float)share, (float)least, depth, z);
    if (projected == z)
        return;
    memcpy(projected, z, depth * sizeof(*z));
    p->k->project(d, projected, isnr, depth, (uint32_t)p->setup.projection_px + 1, (float)bulk,
                  (float)p->setup.projection, s->same);
    memset(s->same, 0, (depth + ROW_MARGIN) * sizeof(*s->same));
}

static void score_lines(void *context, unsigned piece, unsigned worker)
{
    struct oct_flow_place *p = context;
    struct scratch *s = &p->scratch[worker];
    const uint32_t depth = p->setup.depth;
    for (uint32_t j = piece * OCT_FLOW_LINES;
         j < (piece + 1) * OCT_FLOW_LINES && j < p->setup.n_lines; j++) {
        const size_t at = (size_t)j * depth;
        if (p->z) {
            score_line(p, s, j, p->z + at, p->projected + at);
            continue;
        }
        float *projected = p->setup.projection > 0 ? s->isnr : s->score;
        score_line(p, s, j, s->score, projected);
        p->setup.show(p->setup.context, j, p->d + at, projected);
    }
}

/* ---- a place ---- */

/* b, and what the tissue's light is. */
static void look_at_place(struct oct_flow_place *p)
{
    const size_t row = p->setup.depth / p->look_step + 1;
    size_t n_bright = 0, n_tissue = 0, n_looked = 0;
    double snr = 0;
    for (uint32_t j = 0; j < p->setup.n_lines; j++) {
        const struct line *line = &p->line[j];
        memmove(p->bright + n_bright, p->bright + j * row, line->n_bright * sizeof(float));
        n_bright += line->n_bright;
        n_tissue += line->n_tissue;
        n_looked += line->n_looked;
        snr += line->snr;
    }
    p->found.tissue = n_looked ? (double)n_tissue / (double)n_looked : 0;
    p->found.snr_db = n_tissue ? 10 * log10(snr / (double)n_tissue) : NAN;
    if (n_bright * p->look_step < OCT_FLOW_LEAST_BRIGHT)
        return;
    const float low = oct_floats_select(p->bright, n_bright, (n_bright - 1) / 2);
    const float high = oct_floats_select(p->bright, n_bright, n_bright / 2);
    p->found.bulk = fmax(0, 0.5 * ((double)low + (double)high));
}

/* A blink leaves nothing of a pair: the share that the worst one lost. */
static double worst_pair(const struct oct_flow_place *p)
{
    double worst = 0;
    for (unsigned r = 1; r < p->setup.n_repeats; r++) {
        double same = 0, both = 0, noise = 0;
        for (uint32_t j = 0; j < p->setup.n_lines; j++) {
            const double *alike = p->alike[(size_t)j * p->setup.n_repeats + r];
            same += alike[0];
            both += alike[1];
            noise += alike[1] > 0 ? p->found.noise * p->setup.depth : 0;
        }
        if (both - noise > OCT_FLOW_LEAST_LIGHT * both)
            worst = fmax(worst, 1 - same / (both - noise));
    }
    return worst;
}

static bool are_identical(const struct oct_flow_place *p)
{
    const struct oct_flow_bscan *before = NULL;
    bool any = false;
    for (unsigned r = 0; r < p->setup.n_repeats; r++) {
        const struct oct_flow_bscan *b = p->repeats[r];
        if (b && before && !oct_flow_bscan_is_same(before, b))
            return false;
        any = any || (b && before && b->has_lines);
        before = b ? b : before;
    }
    return any;
}

static void measure_noise(struct oct_flow_place *p)
{
    uint32_t block;
    const double found = oct_flow_noise_find(p->repeats, p->setup.n_repeats, &block);
    double rho2[OCT_FLOW_LAGS];
    p->found.noise = fmax(p->setup.noise > 0 ? p->setup.noise : found, 1e-12);
    if (!p->optics.has_rho)
        oct_flow_noise_correlate(p->repeats, p->setup.n_repeats, block, rho2);
    p->samples = oct_flow_noise_samples(p->setup.sigma_lines, p->setup.sigma_depth,
                                        p->optics.has_rho ? p->optics.rho2 : rho2);
}

static unsigned count_pairs(const struct oct_flow_place *p)
{
    unsigned n = 0;
    for (unsigned r = 1; r < p->setup.n_repeats; r++)
        n += p->repeats[r - 1] && p->repeats[r];
    return n;
}

enum oct_err oct_flow_place_find(struct oct_flow_place *p,
                                 const struct oct_flow_bscan *const *repeats,
                                 struct oct_flow_found *found, struct oct_error *err)
{
    const unsigned n_pieces = oct_flow_pieces(p->setup.n_lines);
    p->repeats = repeats;
    p->found = (struct oct_flow_found){
        .d = p->d, .z = p->z, .projected = p->projected, .intensity = p->intensity};
    p->found.n_pairs = count_pairs(p);
    p->found.identical = are_identical(p);
    const enum oct_err e = register_repeats(p, err);
    if (e)
        return e;
    measure_noise(p);
    share_depths(p);
    for (unsigned i = 0; i < p->n_scratches; i++)
        p->scratch[i].weighed[0].is_known = p->scratch[i].weighed[1].is_known = false;
    oct_workers_run(p->setup.workers, (p->setup.n_lines + STRIP_LINES - 1) / STRIP_LINES,
                    judge_strip, p);
    look_at_place(p);
    oct_workers_run(p->setup.workers, n_pieces, score_lines, p);
    p->found.moved =
        p->found.bulk > p->setup.max_bulk || worst_pair(p) > 0.5 * (1 + p->setup.max_bulk);
    *found = p->found;
    return OCT_OK;
}
