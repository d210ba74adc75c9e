#include "analysis/flow/velocity.h"

#include "kernels/device/workers.h"
#include "numeric/order.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_MEDIAN 512u /* depths that a median is of */
#define BINS 256u        /* of angles, in which a median is looked for */
#define ROUNDS 2u
#define UM_PER_MM 1e3

enum { RE, IM, POWER, N_OF_PAIR }; /* maps of a pair, then the same of all pairs */
enum { N_MAPS = 2 * N_OF_PAIR, N_ROWS = 6 };

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
    float **scratch; /* [workers] N_ROWS rows with margins */
    unsigned n_scratches;
    double *phase, *more; /* [n_rows] phi so far, and what the round at hand adds */
    double *came;         /* [2][n_rows] products of A-lines in a row, and of all pairs */
    double *turn;         /* [n_rows][2] exp(-i phi) */

    /* At hand. */
    struct pair pair;
    int32_t moved_lines, moved_depth; /* of its first B-scan, onto that of the place */
    unsigned from; /* the first of the maps that become velocities: 0 or N_OF_PAIR */
    double noise, per_rad;
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
        v->scratch[i] = oct_aligned_calloc(64, N_ROWS * v->stride, sizeof(float));
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

/* Adds next conj first of two A-lines to a row, and where `sum` is not NULL the mean of their
 * powers, and to `sum` that over the depth. */
static bool add_product(const struct oct_flow_velocity *v, uint32_t first, int64_t next,
                        float *rows[N_ROWS], double *sum)
{
    const struct pair *p = &v->pair;
    const int64_t depth = v->setup.depth, shift = p->depth;
    float own[2];
    if (next < 0 || next >= p->next->n_lines || !(p->first->power[first] > 0) ||
        !(p->next->power[next] > 0) || shift >= depth || shift <= -depth)
        return false;
    const int64_t from = shift > 0 ? shift : 0, end = shift < 0 ? depth + shift : depth;
    const uint32_t n = (uint32_t)(end - from);
    const struct oct_flow_line a = oct_flow_bscan_line(p->first, first, from);
    const struct oct_flow_line b = oct_flow_bscan_line(p->next, (uint32_t)next, from - shift);
    if (!sum) {
        v->k->add_product(b, a, n, rows[RE] + from, rows[IM] + from);
        return true;
    }
    v->k->add_pair(b, a, n, rows[RE] + from, rows[IM] + from, rows[POWER] + from, own);
    sum[0] += (double)own[0];
    sum[1] += (double)own[1];
    return true;
}

/* Row j of products: rows[RE], rows[IM], and with `sum` rows[POWER]. Returns how many A-lines it
 * has. */
static unsigned make_row(const struct oct_flow_velocity *v, uint32_t j, float *rows[N_ROWS],
                         double *sum)
{
    const uint32_t repeats = v->setup.line_repeats, depth = v->setup.depth;
    unsigned n = 0;
    for (unsigned i = RE; i <= (sum ? POWER : IM); i++)
        memset(rows[i], 0, depth * sizeof(float));
    if (!v->pair.is_one)
        return add_product(v, j, (int64_t)j - v->pair.lines, rows, sum);
    if (repeats == 1)
        return add_product(v, j, (int64_t)j + 1, rows, sum);
    for (uint32_t i = 0; i + 1 < repeats; i++)
        n += add_product(v, j * repeats + i, (int64_t)j * repeats + i + 1, rows, sum);
    return n;
}

static void take_rows(const struct oct_flow_velocity *v, unsigned worker, float *rows[N_ROWS])
{
    for (unsigned i = 0; i < N_ROWS; i++)
        rows[i] = scratch_row(v, worker, i);
}

static uint8_t bin_of(float rad)
{
    const int bin = (int)((rad + 3.14159274f) * (BINS / 6.2831855f));
    return (uint8_t)(bin < 0 ? 0 : bin < (int)BINS ? bin : (int)BINS - 1);
}

static double value_of_rank(const float *rad, const uint8_t *bin, uint32_t n,
                            const uint32_t n_of[BINS], uint32_t rank, float *room)
{
    unsigned own = 0;
    uint32_t n_in = 0;
    for (; rank >= n_of[own]; own++)
        rank -= n_of[own];
    for (uint32_t i = 0; i < n; i++) {
        room[n_in] = rad[i];
        n_in += bin[i] == own;
    }
    return (double)oct_floats_select(room, n_in, rank);
}

/* n <= MOST_MEDIAN; room: n + 1 values. */
static double median_angle(const float *rad, uint32_t n, float *room)
{
    uint32_t n_of[BINS] = {0};
    uint8_t bin[MOST_MEDIAN];
    for (uint32_t i = 0; i < n; i++)
        bin[i] = bin_of(rad[i]);
    for (uint32_t i = 0; i < n; i++)
        n_of[bin[i]]++;
    const double low = value_of_rank(rad, bin, n, n_of, (n - 1) / 2, room);
    return n % 2 ? low : 0.5 * (low + value_of_rank(rad, bin, n, n_of, n / 2, room));
}

/* The median of arg z about the phase of its sum. Of long lines some depths are left out. */
static double guess_phase(const struct oct_flow_velocity *v, float *rows[N_ROWS],
                          const double sum[2])
{
    const uint32_t depth = v->setup.depth, step = (depth + MOST_MEDIAN - 1) / MOST_MEDIAN;
    const double phase = atan2(sum[1], sum[0]);
    const float turn[2] = {(float)cos(phase), (float)-sin(phase)};
    uint32_t n = 0;
    for (uint32_t d = 0; d < depth; d += step, n++) {
        rows[3][n] = rows[RE][d] * turn[0] - rows[IM][d] * turn[1];
        rows[4][n] = rows[RE][d] * turn[1] + rows[IM][d] * turn[0];
    }
    v->k->angle(rows[3], rows[4], n, rows[5]);
    return phase + median_angle(rows[5], n, rows[3]);
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
    take_rows(v, worker, rows);
    for (uint32_t i = 0; has_row(v, piece, i, &j); i++) {
        double sum[2] = {0, 0};
        v->came[j] = make_row(v, j, rows, sum);
        for (unsigned map = RE; map <= POWER; map++)
            v->k->smooth(rows[map], w->depth, w->n_depth, v->setup.depth, map_row(v, map, j));
        v->phase[j] = v->came[j] > 0 ? guess_phase(v, rows, sum) : 0;
    }
}

/* ---- the bulk phase ---- */

/* The window along A-lines about row j of the maps from `from` on, each turned by what its phase is
 * so far. Returns how many products it holds. */
static double look_around(const struct oct_flow_velocity *v, uint32_t j, unsigned from,
                          struct oct_flow_turned *w)
{
    const uint32_t radius = v->window.n_lines - 1;
    const uint32_t end = j + radius < v->n_rows ? j + radius + 1 : v->n_rows;
    const double *came = v->came + (from > 0) * v->n_rows;
    double weight = 0;
    w->n = 0;
    for (uint32_t i = j > radius ? j - radius : 0; i < end; i++, w->n++) {
        const float tap = v->window.lines[i < j ? j - i : i - j];
        const double *turn = v->turn + 2 * (size_t)i;
        w->lines[w->n] = (struct oct_flow_line){map_row(v, from + RE, i), map_row(v, from + IM, i)};
        w->power[w->n] = map_row(v, from + POWER, i);
        w->power_taps[w->n] = tap;
        w->taps[w->n][0] = from > 0 ? tap : tap * (float)turn[0];
        w->taps[w->n][1] = from > 0 ? 0 : tap * (float)turn[1];
        weight += (double)tap * came[i];
    }
    return weight;
}

/* What is left of the phase where nothing flows. */
static void look_at_rows(void *context, unsigned piece, unsigned worker)
{
    struct oct_flow_velocity *v = context;
    float *rows[N_ROWS];
    uint32_t j;
    take_rows(v, worker, rows);
    for (uint32_t i = 0; has_row(v, piece, i, &j); i++) {
        float sum[2];
        v->more[j] = 0;
        if (!(v->came[j] > 0))
            continue;
        struct oct_flow_turned window;
        make_row(v, j, rows, NULL);
        look_around(v, j, 0, &window);
        v->k->sum_near(&window, (struct oct_flow_line){rows[RE], rows[IM]}, v->setup.depth, sum);
        if (sum[0] * sum[0] + sum[1] * sum[1] > 0)
            v->more[j] = atan2((double)sum[1], (double)sum[0]) - v->phase[j];
    }
}

/* exp(-i phase) of all rows. */
static void make_turns(struct oct_flow_velocity *v)
{
    for (uint32_t j = 0; j < v->n_rows; j++) {
        v->turn[2 * (size_t)j] = cos(v->phase[j]);
        v->turn[2 * (size_t)j + 1] = -sin(v->phase[j]);
    }
}

static void find_products(struct oct_flow_velocity *v, const struct pair *pair)
{
    const unsigned n_pieces = oct_flow_pieces(v->n_rows);
    v->pair = *pair;
    oct_workers_run(v->setup.workers, n_pieces, begin_rows, v);
    make_turns(v);
    for (unsigned round = 0; round < ROUNDS; round++) {
        oct_workers_run(v->setup.workers, n_pieces, look_at_rows, v);
        for (uint32_t j = 0; j < v->n_rows; j++)
            v->phase[j] += v->more[j];
        make_turns(v);
    }
}

/* ---- the speed ---- */

static void end_rows(void *context, unsigned piece, unsigned worker)
{
    struct oct_flow_velocity *v = context;
    const uint32_t depth = v->setup.depth;
    uint32_t j;
    (void)worker;
    for (uint32_t i = 0; has_row(v, piece, i, &j); i++) {
        float *to = v->v + (size_t)j * depth;
        struct oct_flow_turned window;
        const double weight = look_around(v, j, v->from, &window);
        v->k->speed(&window, (float)(2 * v->noise * weight), (float)v->setup.min_coherence,
                    (float)v->per_rad, depth, to);
        for (uint32_t d = 0; d < depth && !(v->came[(v->from > 0) * v->n_rows + j] > 0); d++)
            to[d] = NAN;
    }
}

static void find_speed(struct oct_flow_velocity *v, unsigned from,
                       const struct oct_flow_bscan *const *bscans, unsigned n, double per_rad,
                       float *to)
{
    uint32_t block;
    v->from = from;
    v->noise = v->setup.noise > 0 ? v->setup.noise : oct_flow_noise_find(bscans, n, &block);
    v->per_rad = per_rad;
    v->v = to;
    oct_workers_run(v->setup.workers, oct_flow_pieces(v->n_rows), end_rows, v);
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
        v->k->turn_own(map_row(v, RE, (uint32_t)line), map_row(v, IM, (uint32_t)line), turn,
                       v->setup.depth);
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
