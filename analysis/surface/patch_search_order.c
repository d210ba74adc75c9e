#include "analysis/surface/patch_search_index.h"

#include <stdlib.h>

#define MOST_DEPTH 64u

struct key {
    float value;
    uint32_t number;
};

struct span {
    uint32_t from, n;
};

/* The coordinate in which these patches differ most. */
static unsigned widest(const uint32_t *order, const float *coordinates, uint32_t n)
{
    double sums[OCT_PATCH_BOX] = {0}, squares[OCT_PATCH_BOX] = {0}, most = -1;
    unsigned which = 0;
    for (uint32_t i = 0; i < n; i++)
        for (unsigned c = 0; c < OCT_PATCH_BOX; c++) {
            const double x = (double)coordinates[(size_t)order[i] * OCT_PATCH_COORDINATES + c];
            sums[c] += x;
            squares[c] += x * x;
        }
    for (unsigned c = 0; c < OCT_PATCH_BOX; c++) {
        const double spread = squares[c] - sums[c] * sums[c] / n;
        if (spread > most) {
            most = spread;
            which = c;
        }
    }
    return which;
}

/* Puts the `left` smallest first: Hoare's selection. Equal values stop both sides, so that many of
 * them are halved as well. */
static void halve(struct key *keys, uint32_t n, uint32_t left)
{
    uint32_t first = 0, last = n - 1;
    while (first < last) {
        const float pivot = keys[first + (last - first) / 2].value;
        uint32_t i = first, j = last;
        for (;;) {
            while (keys[i].value < pivot)
                i++;
            while (keys[j].value > pivot)
                j--;
            if (i >= j)
                break;
            const struct key swap = keys[i];
            keys[i++] = keys[j];
            keys[j--] = swap;
        }
        /* Keys before i are at most the pivot, those past j at least; where the two meet, it is. */
        if (left < i)
            last = j;
        else if (left > j + 1)
            first = i == j ? i + 1 : i;
        else
            return;
    }
}

static void split(uint32_t *order, const float *coordinates, struct key *keys, uint32_t n,
                  uint32_t left)
{
    const unsigned c = widest(order, coordinates, n);
    for (uint32_t i = 0; i < n; i++)
        keys[i] = (struct key){coordinates[(size_t)order[i] * OCT_PATCH_COORDINATES + c], order[i]};
    halve(keys, n, left);
    for (uint32_t i = 0; i < n; i++)
        order[i] = keys[i].number;
}

enum oct_err oct_patch_order(uint32_t *order, const float *coordinates, uint32_t n,
                             struct oct_error *err)
{
    struct key *keys = calloc(n, sizeof(*keys));
    struct span stack[MOST_DEPTH];
    unsigned depth = 1;
    if (!keys)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the order of %u patches", n);
    stack[0] = (struct span){0, n};
    while (depth > 0) {
        const struct span s = stack[--depth];
        if (s.n <= OCT_PATCH_BLOCK)
            continue;
        const uint32_t n_blocks = (s.n + OCT_PATCH_BLOCK - 1) / OCT_PATCH_BLOCK;
        const uint32_t left = n_blocks / 2 * OCT_PATCH_BLOCK;
        split(order + s.from, coordinates, keys, s.n, left);
        stack[depth++] = (struct span){s.from + left, s.n - left};
        stack[depth++] = (struct span){s.from, left};
    }
    free(keys);
    return OCT_OK;
}
