#include "analysis/cells/median.h"

#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"
#include "pipeline/base/wide.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BINS 2048u
#define COPIES 4u /* of neighbours that fall into one bin none waits for the other */
#define ROWS 16u  /* of a piece */
#define BLOCK 16u /* values of which none, mostly, lies where it is sought */

/* Bits of a float without sign, 31 in all, from the highest: they order floats as integers. */
static const unsigned shifts[3] = {20, 9, 0};
static const unsigned widths[3] = {11, 11, 9};
#define AROUND (1u << 19) /* half of the range of bits that pass 1 counts: a median within 3 % */

struct worker {
    uint32_t counts[COPIES][BINS]; /* 0 between passes */
    uint32_t n_valid, n_below;     /* n_below: values less than `found` */
    uint32_t least;                /* the least above `found` */
};

struct oct_cells_median {
    struct oct_workers *workers;
    unsigned n_workers;
    struct worker *worker; /* [n_workers] */
    const struct oct_cells_gradient *gradient;
    const uint8_t *valid;
    unsigned pass;
    uint64_t n_valid, n_below; /* of all workers: pixels, which are half the values; values */
    uint64_t rank, n_equal;    /* of the value among those of its bin, and how many it has */
    uint32_t found;            /* the least bits that the passes before leave */
    uint32_t expected;         /* of the picture before; 0: none */
    uint32_t next;             /* the least value counted above `found`; UINT32_MAX: none */
};

struct oct_cells_median *oct_cells_median_create(struct oct_workers *workers)
{
    struct oct_cells_median *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->workers = workers;
    m->n_workers = workers ? oct_workers_n_threads(workers) + 1 : 1;
    m->worker = oct_aligned_calloc(64, m->n_workers, sizeof(*m->worker));
    if (!m->worker) {
        free(m);
        return NULL;
    }
    return m;
}

void oct_cells_median_destroy(struct oct_cells_median *median)
{
    if (!median)
        return;
    free(median->worker);
    free(median);
}

static uint32_t to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits & 0x7fffffff;
}

static void count_first(struct worker *w, const float *gx, const float *gy, uint32_t n)
{
    for (uint32_t x = 0; x < n; x++) {
        w->counts[x % 2][to_bits(gx[x]) >> shifts[0]]++;
        w->counts[2 + x % 2][to_bits(gy[x]) >> shifts[0]]++;
    }
    w->n_valid += n;
}

/* How many of a block are less than `least`, and whether any lies within `range` from it. */
OCT_WIDE static uint32_t sift(const float *g, uint32_t n_blocks, uint32_t least, uint32_t range,
                              uint8_t *any)
{
    uint32_t below[BLOCK] = {0}, sum = 0;
    for (uint32_t k = 0; k < n_blocks; k++) {
        uint32_t hits = 0;
        for (uint32_t i = 0; i < BLOCK; i++) {
            const uint32_t bits = to_bits(g[k * BLOCK + i]);
            below[i] += bits < least;
            hits |= bits - least < range;
        }
        any[k] = (uint8_t)hits;
    }
    for (uint32_t i = 0; i < BLOCK; i++)
        sum += below[i];
    return sum;
}

static uint32_t range_of(const struct oct_cells_median *m)
{
    return 1u << (shifts[m->pass] + widths[m->pass]);
}

static void count(struct worker *w, const struct oct_cells_median *m, const float *g,
                  const uint8_t *valid, uint32_t n)
{
    const unsigned shift = shifts[m->pass];
    const uint32_t range = range_of(m);
    for (uint32_t x = 0; x < n; x++) {
        const uint32_t bits = to_bits(g[x]), beyond = bits - m->found;
        if (valid && !valid[x])
            continue;
        w->n_below += bits < m->found;
        if (beyond < range)
            w->counts[x % COPIES][beyond >> shift]++;
    }
}

/* All valid: blocks without a value in the range are passed over. */
static void count_all(struct worker *w, const struct oct_cells_median *m, const float *g,
                      uint32_t n)
{
    const unsigned shift = shifts[m->pass];
    const uint32_t range = range_of(m);
    uint8_t any[64];
    while (n >= BLOCK) {
        const uint32_t n_blocks = n / BLOCK < sizeof(any) ? n / BLOCK : sizeof(any);
        w->n_below += sift(g, n_blocks, m->found, range, any);
        for (uint32_t k = 0; k < n_blocks; k++)
            for (uint32_t i = 0; any[k] && i < BLOCK; i++) {
                const uint32_t beyond = to_bits(g[k * BLOCK + i]) - m->found;
                if (beyond < range)
                    w->counts[i % COPIES][beyond >> shift]++;
            }
        g += n_blocks * BLOCK;
        n -= n_blocks * BLOCK;
    }
    count(w, m, g, NULL, n);
}

static void count_row(struct worker *w, const struct oct_cells_median *m, uint32_t y)
{
    const struct oct_cells_gradient *g = m->gradient;
    const float *gx = g->values + y * g->row, *gy = gx + g->plane;
    const uint8_t *valid = m->valid ? m->valid + (size_t)y * g->width : NULL;
    if (m->pass == 0 && !valid) {
        count_first(w, gx, gy, g->width);
    } else if (!valid) {
        count_all(w, m, gx, g->width);
        count_all(w, m, gy, g->width);
        w->n_valid += g->width;
    } else {
        count(w, m, gx, valid, g->width);
        count(w, m, gy, valid, g->width);
        for (uint32_t x = 0; x < g->width; x++)
            w->n_valid += valid[x] != 0;
    }
}

static void count_rows(void *context, unsigned piece, unsigned worker)
{
    const struct oct_cells_median *m = context;
    const struct oct_cells_gradient *g = m->gradient;
    for (uint32_t y = piece * ROWS; y < (piece + 1) * ROWS && y < g->height; y++)
        count_row(&m->worker[worker], m, y);
}

static uint32_t least_above(const float *g, const uint8_t *valid, uint32_t n, uint32_t found)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t x = 0; x < n; x++) {
        const uint32_t bits = !valid || valid[x] ? to_bits(g[x]) : 0;
        const uint32_t above = bits > found ? bits : UINT32_MAX;
        least = above < least ? above : least;
    }
    return least;
}

static void least_of_rows(void *context, unsigned piece, unsigned worker)
{
    const struct oct_cells_median *m = context;
    const struct oct_cells_gradient *g = m->gradient;
    struct worker *w = &m->worker[worker];
    for (uint32_t y = piece * ROWS; y < (piece + 1) * ROWS && y < g->height; y++) {
        const uint8_t *valid = m->valid ? m->valid + (size_t)y * g->width : NULL;
        for (unsigned i = 0; i < 2; i++) {
            const uint32_t least =
                least_above(g->values + y * g->row + i * g->plane, valid, g->width, m->found);
            w->least = least < w->least ? least : w->least;
        }
    }
}

static unsigned n_pieces(const struct oct_cells_median *m)
{
    return (m->gradient->height + ROWS - 1) / ROWS;
}

static uint64_t bin_of(const struct oct_cells_median *m, unsigned bin)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < m->n_workers; i++)
        for (unsigned c = 0; c < COPIES; c++)
            n += m->worker[i].counts[c][bin];
    return n;
}

/* The bin of the value of that rank, counted from 0 among the values counted, and the rank within
 * it. A rank beyond all of them ends in the last bin. */
static unsigned find_bin(struct oct_cells_median *m)
{
    unsigned bin = 0;
    for (m->n_equal = bin_of(m, 0); m->rank >= m->n_equal && bin + 1 < BINS;) {
        m->rank -= m->n_equal;
        m->n_equal = bin_of(m, ++bin);
    }
    return bin;
}

/* The least value that the last pass counted in the bins after this one. */
static uint32_t next_in_bins(struct oct_cells_median *m, unsigned bin)
{
    const uint32_t first = m->found;
    while (++bin < 1u << widths[2])
        if (bin_of(m, bin) > 0)
            return first + bin;
    return UINT32_MAX;
}

/* After a pass: moves `found` to the bin of the value sought. Empties all bins. */
static void narrow(struct oct_cells_median *m)
{
    const unsigned bin = find_bin(m);
    if (m->pass == 2 && m->rank + 1 >= m->n_equal)
        m->next = next_in_bins(m, bin);
    m->found += bin << shifts[m->pass];
    for (unsigned i = 0; i < m->n_workers; i++)
        memset(m->worker[i].counts, 0, sizeof(m->worker[i].counts));
}

static double to_value(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

static void count_picture(struct oct_cells_median *m, unsigned pass)
{
    m->pass = pass;
    m->n_valid = m->n_below = 0;
    for (unsigned i = 0; i < m->n_workers; i++)
        m->worker[i].n_valid = m->worker[i].n_below = 0;
    oct_workers_run(m->workers, n_pieces(m), count_rows, m);
    for (unsigned i = 0; i < m->n_workers; i++) {
        m->n_valid += m->worker[i].n_valid;
        m->n_below += m->worker[i].n_below;
    }
}

/* Passes 0 and 1 in one, around the median of the picture before. False: this one's is not there.
 * The bins are empty afterwards in either case. */
static bool start_near(struct oct_cells_median *m)
{
    if (m->expected < AROUND)
        return false;
    m->found = m->expected - AROUND;
    count_picture(m, 1);
    const bool is_above = m->n_below < m->n_valid;
    m->rank = is_above ? m->n_valid - 1 - m->n_below : 0;
    narrow(m);
    return is_above && m->rank < m->n_equal;
}

/* The same from nothing. False: no pixel is valid. */
static bool start(struct oct_cells_median *m)
{
    m->found = 0;
    count_picture(m, 0);
    if (m->n_valid == 0)
        return false;
    m->rank = m->n_valid - 1; /* the lower one of the two middle values of 2 n_valid */
    narrow(m);
    count_picture(m, 1);
    narrow(m);
    return true;
}

/* The least value above `found` of the whole picture. */
static uint32_t next_in_picture(struct oct_cells_median *m)
{
    uint32_t least = UINT32_MAX;
    for (unsigned i = 0; i < m->n_workers; i++)
        m->worker[i].least = UINT32_MAX;
    oct_workers_run(m->workers, n_pieces(m), least_of_rows, m);
    for (unsigned i = 0; i < m->n_workers; i++)
        least = m->worker[i].least < least ? m->worker[i].least : least;
    return least;
}

double oct_cells_median_run(struct oct_cells_median *m, const struct oct_cells_gradient *gradient,
                            const uint8_t *valid)
{
    m->gradient = gradient;
    m->valid = valid;
    if (!start_near(m) && !start(m))
        return 0;
    count_picture(m, 2);
    narrow(m);
    m->expected = m->found;
    if (m->rank + 1 < m->n_equal)
        return to_value(m->found);
    if (m->next == UINT32_MAX)
        m->next = next_in_picture(m);
    return (to_value(m->found) + to_value(m->next)) / 2;
}
