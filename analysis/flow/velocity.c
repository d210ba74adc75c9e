#include "analysis/flow/velocity.h"

#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_MEDIAN 512u /* depths that a median is of, about */
#define ROUNDS 2u
#define STRIP 40u /* rows of a piece of work, beside which those of the window are turned again */
#define TILE 128u /* depths at a time: what the window holds of them fits the first cache */
#define AHEAD 2u  /* rows from the one at hand to that which is fetched */
#define UM_PER_MM 1e3

/* Maps of a pair, then the same of all pairs. */
enum { RE = OCT_FLOW_RE, IM = OCT_FLOW_IM, POWER = OCT_FLOW_POWER, N_OF_PAIR = OCT_FLOW_N_PAIR };
enum { RAD = N_OF_PAIR, N_ROWS, N_MAPS = 2 * N_OF_PAIR };

/* What is multiplied: line j of `next`, moved, with line j of `first`, or lines of one B-scan. */
struct pair {
    const struct oct_flow_bscan *first, *next;
    int32_t lines, depth; /* what moves `next` onto `first` */
    bool is_one;          /* both are one B-scan */
};

struct oct_flow_velocity {
    struct oct_flow_velocity_setup setup;
    const struct oct_flow_kernels *k;
    struct oct_flow_window window;
    size_t stride;
    uint32_t n_rows; /* of results */
    float *map;      /* [N_MAPS][n_rows][stride] smoothed along the depth */
    float **scratch; /* [workers] N_ROWS rows with margins, then a tile's window (tile_row) */
    unsigned n_scratches;
    double *phase, *more; /* [n_rows] phi so far, and what the round at hand adds, or dark */
    double *came;         /* [2][n_rows] products of A-lines in a row, and of all pairs */
    double *turn;         /* [n_rows][2] exp(-i phi) */

    /* At hand. */
    struct pair pair;
    int32_t moved_lines, moved_depth; /* of its first B-scan, onto that of the place */
    unsigned from; /* the first of the maps that become velocities: 0 or N_OF_PAIR */
    double per_rad;
    float *v;
};

static float *map_row(const struct oct_flow_velocity *v, unsigned map, uint32_t j)
{
    return v->map + ((size_t)map * v->n_rows + j) * v->stride;
}

static float *scratch_row(const struct oct_flow_velocity *v, unsigned worker, unsigned row)
{
    return v->scratch[worker] + row * v->stride + OCT_FLOW_MARGIN;
}

/* Rows that the windows of a strip reach. */
static uint32_t n_tile_rows(const struct oct_flow_velocity *v)
{
    return STRIP + 2 * (v->window.n_lines - 1);
}

/* Of those; maps RE, IM, POWER. */
static float *tile_row(const struct oct_flow_velocity *v, unsigned worker, unsigned map,
                       uint32_t row)
{
    return v->scratch[worker] + N_ROWS * v->stride + ((size_t)map * n_tile_rows(v) + row) * TILE;
}

/* ---- life ---- */

enum oct_err oct_flow_velocity_create(struct oct_flow_velocity **velocity,
                                      const struct oct_flow_velocity_setup *setup,
                                      struct oct_error *err)
{
    struct oct_flow_velocity *v = calloc(1, sizeof(*v));
    bool is_whole = v != NULL;
    *velocity = NULL;
    if (v) {
        v->setup = *setup;
        v->k = oct_flow_kernels_best();
        v->stride = oct_flow_stride(setup->depth);
        v->n_rows = setup->n_lines;
        v->n_scratches = setup->workers ? oct_workers_n_threads(setup->workers) + 1 : 1;
        oct_flow_window_init(&v->window, setup->sigma_lines, setup->sigma_depth);
        v->map = oct_aligned_calloc(64, (size_t)N_MAPS * v->n_rows * v->stride, sizeof(float));
        v->scratch = calloc(v->n_scratches, sizeof(*v->scratch));
        v->phase = calloc(6 * (size_t)v->n_rows, sizeof(*v->phase));
        v->more = v->phase + v->n_rows;
        v->came = v->more + v->n_rows;
        v->turn = v->came + 2 * (size_t)v->n_rows;
        is_whole = v->map && v->scratch && v->phase;
    }
    for (unsigned i = 0; is_whole && i < v->n_scratches; i++) {
        v->scratch[i] = oct_aligned_calloc(
            64, N_ROWS * v->stride + (size_t)N_OF_PAIR * n_tile_rows(v) * TILE, sizeof(float));
        is_whole = v->scratch[i] != NULL;
    }
    if (is_whole) {
        *velocity = v;
        return OCT_OK;
    }
    oct_flow_velocity_destroy(v);
    return oct_fail(err, OCT_E_NO_MEMORY, "velocity: out of memory for B-scans of %u x %u",
                    setup->n_lines, setup->depth);
}

void oct_flow_velocity_destroy(struct oct_flow_velocity *v)
{
    if (!v)
        return;
    for (unsigned i = 0; v->scratch && i < v->n_scratches; i++)
        free(v->scratch[i]);
    free(v->scratch);
    free(v->map);
    free(v->phase);
    free(v);
}

/* ---- products ---- */

/* Adds next conj first of two A-lines to a row, the mean of their powers, and to `sum` the first
 * over the depth. */
static bool add_product(const struct oct_flow_velocity *v, uint32_t first, int64_t next,
                        float *rows[N_ROWS], double sum[2])
{
    const struct pair *p = &v->pair;
    const int64_t depth = v->setup.depth, shift = p->depth;
    float own[2];
    if (next < 0 || next >= p->next->n_lines || !(p->first->power[first] > 0) ||
        !(p->next->power[next] > 0) || shift >= depth || shift <= -depth)
        return false;
    const int64_t from = shift > 0 ? shift : 0, end = shift < 0 ? depth + shift : depth;
    v->k->add_pair(oct_flow_bscan_line(p->next, (uint32_t)next, from - shift),
                   oct_flow_bscan_line(p->first, first, from), (uint32_t)(end - from),
                   rows[RE] + from, rows[IM] + from, rows[POWER] + from, own);
    sum[0] += (double)own[0];
    sum[1] += (double)own[1];
    return true;
}

/* A-lines of which row j is a product. */
static void lines_of(const struct oct_flow_velocity *v, uint32_t j, uint32_t *first, int64_t *next)
{
    *first = v->pair.is_one ? j * v->setup.line_repeats : j;
    *next = v->pair.is_one ? (int64_t)*first + 1 : (int64_t)j - v->pair.lines;
}

/* And how many pairs from these on are summed in it. */
static uint32_t n_pairs(const struct oct_flow_velocity *v)
{
    return v->pair.is_one && v->setup.line_repeats > 1 ? v->setup.line_repeats - 1 : 1;
}

/* Row j of products. Returns how many A-lines it has. */
static unsigned make_row(const struct oct_flow_velocity *v, uint32_t j, float *rows[N_ROWS],
                         double sum[2])
{
    uint32_t first;
    int64_t next;
    unsigned n = 0;
    lines_of(v, j, &first, &next);
    for (unsigned i = RE; i <= POWER; i++)
        memset(rows[i], 0, v->setup.depth * sizeof(float));
    for (uint32_t i = 0; i < n_pairs(v); i++)
        n += add_product(v, first + i, next + i, rows, sum);
    return n;
}

/* The median of arg z about the phase of its sum. Of long lines some depths are left out. */
static double guess_phase(const struct oct_flow_velocity *v, float *rows[N_ROWS],
                          const double sum[2])
{
    const uint32_t depth = v->setup.depth, step = (depth + MOST_MEDIAN - 1) / MOST_MEDIAN;
    const double phase = atan2(sum[1], sum[0]);
    const float turn[2] = {(float)cos(phase), (float)-sin(phase)};
    const uint32_t n =
        v->k->angles((struct oct_flow_line){rows[RE], rows[IM]}, turn, depth, step, rows[RAD]);
    return phase + (double)v->k->median_angle(rows[RAD], n);
}

static bool has_row(const struct oct_flow_velocity *v, unsigned piece, uint32_t i, uint32_t *j)
{
    *j = piece * OCT_FLOW_LINES + i;
    return i < OCT_FLOW_LINES && *j < v->n_rows;
}

static void begin_rows(void *context, unsigned piece, unsigned worker)
{
    struct oct_flow_velocity *v = context;
    const struct oct_flow_window *w = &v->window;
    float *rows[N_ROWS];
    uint32_t j;
    for (unsigned i = 0; i < N_ROWS; i++)
        rows[i] = scratch_row(v, worker, i);
    for (uint32_t i = 0; has_row(v, piece, i, &j); i++) {
        double sum[2] = {0, 0};
        v->came[j] = make_row(v, j, rows, sum);
        for (unsigned map = RE; map <= POWER; map++)
            v->k->smooth(rows[map], w->depth, w->n_depth, v->setup.depth, map_row(v, map, j));
        v->phase[j] = v->came[j] > 0 ? guess_phase(v, rows, sum) : 0;
    }
}

/* ---- the window along A-lines ---- */

/* A window about depths d .. d + n - 1 of row j, and what is summed of them. */
struct view {
    struct oct_flow_around around;
    uint32_t j, d, n;
    double sum[2];
};

/* A tile of a row is too short for the processor to see that the next row's follows. */
static void fetch(const float *row, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 64 / sizeof(*row))
        __builtin_prefetch(row + i);
}

/* Depths of row j of the maps from v->from on, turned by what its phase is so far, into a row of a
 * worker's; beyond the borders zeros. */
static void turn_tile(const struct oct_flow_velocity *v, int64_t j, uint32_t d, uint32_t n,
                      unsigned worker, uint32_t row)
{
    float *to[N_OF_PAIR];
    for (unsigned map = RE; map <= POWER; map++)
        to[map] = tile_row(v, worker, map, row);
    if (j < 0 || j >= v->n_rows) {
        for (unsigned map = RE; map <= POWER; map++)
            memset(to[map], 0, TILE * sizeof(float));
        return;
    }
    const double *own = v->turn + 2 * j;
    const float turn[2] = {v->from > 0 ? 1 : (float)own[0], v->from > 0 ? 0 : (float)own[1]};
    const struct oct_flow_line from = {map_row(v, v->from + RE, (uint32_t)j) + d,
                                       map_row(v, v->from + IM, (uint32_t)j) + d};
    for (unsigned map = RE; map <= (v->v ? POWER : IM) && j + AHEAD < v->n_rows; map++)
        fetch(map_row(v, v->from + map, (uint32_t)j + AHEAD) + d, n);
    v->k->turn_to(from, turn, n, to[RE], to[IM]);
    if (v->v)
        memcpy(to[POWER], map_row(v, v->from + POWER, (uint32_t)j) + d, n * sizeof(float));
}

/* Slides the window along the rows of a strip, a tile of depths after another. */
static void slide(const struct oct_flow_velocity *v, unsigned piece, unsigned worker,
                  void (*look)(const struct oct_flow_velocity *v, struct view *at),
                  double sum[STRIP][2])
{
    const uint32_t radius = v->window.n_lines - 1, depth = v->setup.depth, first = piece * STRIP;
    const uint32_t n_rows = first + STRIP < v->n_rows ? STRIP : v->n_rows - first;
    for (uint32_t d = 0; d < depth; d += TILE)
        for (uint32_t i = 0; i < n_rows + 2 * radius; i++) {
            const uint32_t n = d + TILE < depth ? TILE : depth - d, row = i - radius;
            turn_tile(v, (int64_t)first + i - radius, d, n, worker, i);
            if (i < 2 * radius)
                continue;
            struct view at = {
                .around = {{tile_row(v, worker, RE, row), tile_row(v, worker, IM, row),
                            tile_row(v, worker, POWER, row)},
                           TILE,
                           v->window.lines,
                           v->window.n_lines},
                .j = first + row - radius,
                .d = d,
                .n = n};
            look(v, &at);
            sum[row - radius][0] += at.sum[0];
            sum[row - radius][1] += at.sum[1];
        }
}

/* ---- the bulk phase ---- */

static void sum_tile(const struct oct_flow_velocity *v, struct view *at)
{
    const struct pair *p = &v->pair;
    float sum[2];
    uint32_t first;
    int64_t next;
    if (!(v->came[at->j] > 0))
        return;
    lines_of(v, at->j, &first, &next);
    const struct oct_flow_line a =
        oct_flow_bscan_line(p->next, (uint32_t)next, (ptrdiff_t)at->d - p->depth);
    const struct oct_flow_line b = oct_flow_bscan_line(p->first, first, at->d);
    if (at->j + AHEAD < v->n_rows) {
        const size_t ahead = AHEAD * (p->is_one ? v->setup.line_repeats : 1) * p->first->stride;
        fetch(b.re + ahead, at->n);
        fetch(b.im + ahead, at->n);
    }
    v->k->sum_near(&at->around, a, b, p->first->stride, n_pairs(v), at->n, sum);
    at->sum[0] = (double)sum[0];
    at->sum[1] = (double)sum[1];
}

/* What is left of the phase where nothing flows. */
static void sum_rows(void *context, unsigned piece, unsigned worker)
{
    struct oct_flow_velocity *v = context;
    double sum[STRIP][2] = {{0}};
    slide(v, piece, worker, sum_tile, sum);
    for (uint32_t i = 0, j = piece * STRIP; i < STRIP && j < v->n_rows; i++, j++)
        v->more[j] =
            fabs(sum[i][0]) + fabs(sum[i][1]) > 0 ? atan2(sum[i][1], sum[i][0]) - v->phase[j] : 0;
}

/* exp(-i phase) of all rows. */
static void make_turns(struct oct_flow_velocity *v)
{
    for (uint32_t j = 0; j < v->n_rows; j++) {
        v->turn[2 * (size_t)j] = cos(v->phase[j]);
        v->turn[2 * (size_t)j + 1] = -sin(v->phase[j]);
    }
}

static unsigned n_strips(const struct oct_flow_velocity *v)
{
    return (v->n_rows + STRIP - 1) / STRIP;
}

static void find_products(struct oct_flow_velocity *v, const struct pair *pair)
{
    v->pair = *pair;
    v->from = 0;
    v->v = NULL;
    oct_workers_run(v->setup.workers, oct_flow_pieces(v->n_rows), begin_rows, v);
    make_turns(v);
    for (unsigned round = 0; round < ROUNDS; round++) {
        oct_workers_run(v->setup.workers, n_strips(v), sum_rows, v);
        for (uint32_t j = 0; j < v->n_rows; j++)
            v->phase[j] += v->more[j];
        make_turns(v);
    }
}

/* ---- the speed ---- */

static void show_tile(const struct oct_flow_velocity *v, struct view *at)
{
    float *to = v->v + (size_t)at->j * v->setup.depth + at->d;
    if (v->came[(v->from > 0) * v->n_rows + at->j] > 0)
        v->k->speed(&at->around, (float)v->more[at->j], (float)v->setup.min_coherence,
                    (float)v->per_rad, at->n, to);
    else
        for (uint32_t d = 0; d < at->n; d++)
            to[d] = NAN;
}

static void show_rows(void *context, unsigned piece, unsigned worker)
{
    double sum[STRIP][2] = {{0}};
    slide(context, piece, worker, show_tile, sum);
}

/* Light of twice the noise, of as many products as the window about a row holds. */
static void find_dark(struct oct_flow_velocity *v, double noise)
{
    const uint32_t radius = v->window.n_lines - 1;
    const double *came = v->came + (v->from > 0) * v->n_rows;
    for (uint32_t j = 0; j < v->n_rows; j++) {
        const uint32_t end = j + radius < v->n_rows ? j + radius + 1 : v->n_rows;
        v->more[j] = 0;
        for (uint32_t i = j > radius ? j - radius : 0; i < end; i++)
            v->more[j] += 2 * noise * (double)v->window.lines[i < j ? j - i : i - j] * came[i];
    }
}

static void find_speed(struct oct_flow_velocity *v, unsigned from,
                       const struct oct_flow_bscan *const *bscans, unsigned n, double per_rad,
                       float *to)
{
    uint32_t block;
    v->from = from;
    v->per_rad = per_rad;
    v->v = to;
    find_dark(v, v->setup.noise > 0 ? v->setup.noise : oct_flow_noise_find(bscans, n, &block));
    oct_workers_run(v->setup.workers, n_strips(v), show_rows, v);
}

double oct_flow_mm_s_per_rad(const struct oct_flow_optics *optics, double tau_s)
{
    if (isnan(optics->rad_um))
        return -1;
    return tau_s > 0 ? 1 / (optics->rad_um * tau_s) / UM_PER_MM : NAN;
}

void oct_flow_velocity_lines(struct oct_flow_velocity *v, const struct oct_flow_bscan *bscan,
                             double per_rad, float *to)
{
    v->n_rows = v->setup.n_lines / v->setup.line_repeats;
    find_products(v, &(const struct pair){.first = bscan, .next = bscan, .is_one = true});
    find_speed(v, 0, &bscan, 1, per_rad, to);
}

/* Adds the maps of a pair to those of all, which lie where the first repeat does. */
static void add_rows(void *context, unsigned piece, unsigned worker)
{
    struct oct_flow_velocity *v = context;
    const int64_t depth = v->setup.depth, shift = v->moved_depth;
    const int64_t first = shift > 0 ? shift : 0, end = shift < 0 ? depth + shift : depth;
    uint32_t j;
    (void)worker;
    for (uint32_t i = 0; has_row(v, piece, i, &j); i++) {
        const int64_t line = (int64_t)j - v->moved_lines;
        if (line < 0 || line >= v->n_rows || !(v->came[line] > 0))
            continue;
        v->came[v->n_rows + j] += v->came[line];
        const float turn[2] = {(float)v->turn[2 * line], (float)v->turn[2 * line + 1]};
        float *re = map_row(v, RE, (uint32_t)line), *im = map_row(v, IM, (uint32_t)line);
        v->k->turn_to((struct oct_flow_line){re, im}, turn, v->setup.depth, re, im);
        for (unsigned map = RE; map <= POWER; map++) {
            const float *from = map_row(v, map, (uint32_t)line);
            float *to = map_row(v, N_OF_PAIR + map, j);
            for (int64_t d = first; d < end; d++)
                to[d] += from[d - shift];
        }
    }
}

enum oct_err oct_flow_velocity_bscans(struct oct_flow_velocity *v,
                                      const struct oct_flow_bscan *const *repeats, unsigned n,
                                      double per_rad, float *to, struct oct_error *err)
{
    double lines = 0, depth = 0; /* what moves a repeat onto the first */
    v->n_rows = v->setup.n_lines;
    memset(map_row(v, N_OF_PAIR, 0), 0, N_OF_PAIR * v->n_rows * v->stride * sizeof(float));
    memset(v->came + v->n_rows, 0, v->n_rows * sizeof(*v->came));
    for (unsigned r = 1; r < n; r++) {
        struct oct_flow_shift shift;
        struct pair pair = {repeats[r - 1], repeats[r], 0, 0, false};
        if (!pair.first || !pair.next)
            continue;
        const enum oct_err e =
            oct_flow_shift_find(pair.first, pair.next, v->setup.workers, &shift, err);
        if (e)
            return e;
        pair.lines = (int32_t)lround(shift.lines);
        pair.depth = (int32_t)lround(shift.depth);
        find_products(v, &pair);
        v->moved_lines = (int32_t)lround(lines);
        v->moved_depth = (int32_t)lround(depth);
        oct_workers_run(v->setup.workers, oct_flow_pieces(v->n_rows), add_rows, v);
        lines += shift.lines;
        depth += shift.depth;
    }
    find_speed(v, N_OF_PAIR, repeats, n, per_rad, to);
    return OCT_OK;
}
