#include "analysis/cells/median.h"

#include "analysis/cells/way.h"
#include "pipeline/base/aligned.h"

#include <stdlib.h>
#include <string.h>

#define BINS 2048u
#define COPIES 4u        /* of neighbours that fall into one bin none waits for the other */
#define ROWS 16u         /* of a piece */
#define BINS_BETWEEN 64u /* two looks whether pictures wait */

/* Bits of a float without sign, 31 in all, from the highest: they order floats as integers. */
static const unsigned shifts[3] = {20, 9, 0};
static const unsigned widths[3] = {11, 11, 9};

struct worker {
    uint32_t counts[COPIES][BINS]; /* 0 between passes */
    uint32_t n_valid, least;       /* the least above `found` */
};

struct oct_cells_median {
    struct oct_workers *workers;
    unsigned n_workers;
    struct worker *worker; /* [n_workers] */
    const struct oct_cells_gradient *gradient;
    const uint8_t *valid;
    unsigned pass;
    uint64_t rank, n_equal; /* of the value among those of its bin, and how many it has */
    uint32_t found;         /* the bits that the passes before found, the lower ones 0 */
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

static void count(struct worker *w, const struct oct_cells_median *m, const float *g,
                  const uint8_t *valid, uint32_t n)
{
    const unsigned shift = shifts[m->pass], until = shift + widths[m->pass];
    const uint32_t mask = (1u << widths[m->pass]) - 1;
    for (uint32_t x = 0; x < n; x++) {
        const uint32_t bits = to_bits(g[x]);
        if ((bits >> until) == (m->found >> until) && (!valid || valid[x]))
            w->counts[x % COPIES][(bits >> shift) & mask]++;
    }
}

static void count_rows(void *context, unsigned piece, unsigned worker)
{
    const struct oct_cells_median *m = context;
    const struct oct_cells_gradient *g = m->gradient;
    struct worker *w = &m->worker[worker];
    for (uint32_t y = piece * ROWS; y < (piece + 1) * ROWS && y < g->height; y++) {
        oct_cells_way_row(m->workers, worker, y, g->width);
        const float *gx = g->values + y * g->row, *gy = gx + g->plane;
        const uint8_t *valid = m->valid ? m->valid + (size_t)y * g->width : NULL;
        if (m->pass == 0 && !valid) {
            count_first(w, gx, gy, g->width);
            continue;
        }
        count(w, m, gx, valid, g->width);
        count(w, m, gy, valid, g->width);
        for (uint32_t x = 0; m->pass == 0 && x < g->width; x++)
            w->n_valid += valid[x] != 0;
    }
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
        oct_cells_way_row(m->workers, worker, y, g->width);
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

/* The next bits of the value of that rank, counted from 0 among those whose bits so far are
 * `found`; the rank becomes that within its bin, and all bins are emptied. */
static void narrow(void *context, unsigned piece, unsigned worker)
{
    struct oct_cells_median *m = context;
    unsigned bin = 0;
    (void)piece;
    for (m->n_equal = bin_of(m, 0); m->rank >= m->n_equal && bin + 1 < BINS;) {
        m->rank -= m->n_equal;
        m->n_equal = bin_of(m, ++bin);
        if (bin % BINS_BETWEEN == 0)
            oct_workers_give_way(m->workers, worker);
    }
    m->found |= bin << shifts[m->pass];
    for (unsigned i = 0; i < m->n_workers; i++)
        memset(m->worker[i].counts, 0, sizeof(m->worker[i].counts));
}

static double to_value(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

double oct_cells_median_run(struct oct_cells_median *m, const struct oct_cells_gradient *gradient,
                            const uint8_t *valid)
{
    uint64_t n_valid = 0;
    m->gradient = gradient;
    m->valid = valid;
    m->found = 0;
    for (unsigned i = 0; i < m->n_workers; i++)
        m->worker[i].n_valid = 0;
    for (m->pass = 0; m->pass < 3; m->pass++) {
        oct_workers_run(m->workers, n_pieces(m), count_rows, m);
        for (unsigned i = 0; i < m->n_workers && m->pass == 0; i++)
            n_valid += m->worker[i].n_valid;
        if (n_valid == 0)
            return 0;
        if (m->pass == 0)
            m->rank = n_valid - 1; /* the lower one of the two middle values of 2 n_valid */
        oct_workers_run(m->workers, 1, narrow, m);
    }
    if (m->rank + 1 < m->n_equal)
        return to_value(m->found);
    uint32_t least = UINT32_MAX;
    for (unsigned i = 0; i < m->n_workers; i++)
        m->worker[i].least = UINT32_MAX;
    oct_workers_run(m->workers, n_pieces(m), least_of_rows, m);
    for (unsigned i = 0; i < m->n_workers; i++)
        least = m->worker[i].least < least ? m->worker[i].least : least;
    return (to_value(m->found) + to_value(least)) / 2;
}
