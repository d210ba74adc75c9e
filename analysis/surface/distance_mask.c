#include "analysis/surface/distance.h"
#include "kernels/device/workers.h"
#include "pipeline/base/aligned.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NOTHING INT32_MAX /* squared distance: no voxel of the other kind on this line */
#define MOST_EDGE 16384u  /* 3 * 16383^2 fits into an int32_t */

struct transform {
    const uint8_t *mask;
    const uint32_t *dims;
    double reach;
    float *phi;
    int32_t *squares; /* [n_b][n_j][n_d], to the nearest voxel of the other kind */
    void **scratch;   /* [threads] struct envelope, and what it points to */
};

/* The lower envelope of the parabolas value[i] + (x - i)^2 of a line. */
struct envelope {
    int32_t *value, *result; /* [longest] */
    int32_t *at;             /* [longest], of the parabolas in the envelope */
    double *from;            /* [longest], where each begins */
};

/* result[x] = min over i of value[i] + (x - i)^2; NOTHING where all values are. */
static void transform_line(const struct envelope *e, int32_t n)
{
    int32_t last = -1;
    for (int32_t i = 0; i < n; i++) {
        double from = -INFINITY;
        if (e->value[i] == NOTHING)
            continue;
        for (; last >= 0; last--) {
            const int32_t k = e->at[last];
            const double rise = (double)e->value[i] - e->value[k];
            from = (rise + (double)i * i - (double)k * k) / (2.0 * (i - k));
            if (from > e->from[last])
                break;
            from = -INFINITY;
        }
        last++;
        e->at[last] = i;
        e->from[last] = from;
    }
    if (last < 0) {
        memcpy(e->result, e->value, (size_t)n * sizeof(*e->result));
        return;
    }
    for (int32_t x = 0, k = 0; x < n; x++) {
        while (k < last && e->from[k + 1] <= x)
            k++;
        const int32_t away = x - e->at[k];
        e->result[x] = e->value[e->at[k]] + away * away;
    }
}

/* A line of voxels that lie `step` apart: for each kind the voxels of that kind keep what they have
 * and those of the other are 0, which only the other voxels take part in. */
static void transform_kinds(const struct transform *t, const struct envelope *e, size_t first,
                            size_t step, uint32_t n)
{
    for (int kind = 0; kind < 2; kind++) {
        for (uint32_t i = 0; i < n; i++) {
            const size_t at = first + i * step;
            e->value[i] = (t->mask[at] != 0) == kind ? t->squares[at] : 0;
        }
        transform_line(e, (int32_t)n);
        /* Of the other kind the squares stay as they are until their own turn. */
        for (uint32_t i = 0; i < n; i++)
            if ((t->mask[first + i * step] != 0) == kind)
                t->squares[first + i * step] = e->result[i];
    }
}

/* A B-scan: along d, then along j. */
static void transform_bscan(void *context, unsigned b, unsigned worker)
{
    const struct transform *t = context;
    const uint32_t n_j = t->dims[1], n_d = t->dims[2];
    const size_t first = (size_t)b * n_j * n_d;
    for (size_t i = first; i < first + (size_t)n_j * n_d; i++)
        t->squares[i] = NOTHING;
    for (uint32_t j = 0; j < n_j; j++)
        transform_kinds(t, t->scratch[worker], first + (size_t)j * n_d, 1, n_d);
    for (uint32_t d = 0; d < n_d; d++)
        transform_kinds(t, t->scratch[worker], first + d, n_d, n_j);
}

/* Along b, for all depths of an A-line, and the root. */
static void transform_across(void *context, unsigned j, unsigned worker)
{
    const struct transform *t = context;
    const uint32_t n_b = t->dims[0], n_d = t->dims[2];
    const size_t step = (size_t)t->dims[1] * n_d;
    for (uint32_t d = 0; d < n_d; d++) {
        const size_t first = (size_t)j * n_d + d;
        transform_kinds(t, t->scratch[worker], first, step, n_b);
        for (size_t at = first, i = 0; i < n_b; i++, at += step) {
            const double away = fmin(sqrt(t->squares[at]) - 0.5, t->reach);
            t->phi[at] = (float)(t->mask[at] ? -away : away);
        }
    }
}

static bool has_both(const uint8_t *mask, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!mask[i] != !mask[0])
            return true;
    return false;
}

/* One block a thread: the envelope, then its lines. */
static void *create_envelope(uint32_t longest)
{
    const size_t n = longest;
    char *memory = malloc(sizeof(struct envelope) + n * (sizeof(double) + 3 * sizeof(int32_t)));
    if (!memory)
        return NULL;
    struct envelope *e = (struct envelope *)(void *)memory;
    e->from = (double *)(void *)(memory + sizeof(*e));
    e->value = (int32_t *)(void *)(e->from + n);
    e->result = e->value + n;
    e->at = e->result + n;
    return memory;
}

static enum oct_err check(const uint8_t *mask, const uint32_t dims[3], double reach,
                          struct oct_error *err)
{
    for (unsigned i = 0; i < 3; i++)
        if (dims[i] < 1 || dims[i] >= MOST_EDGE)
            return oct_fail(err, OCT_E_ARG,
                            "a mask of %u x %u x %u voxels: 1 to %u along each axis", dims[0],
                            dims[1], dims[2], MOST_EDGE - 1);
    if (!(reach > 0))
        return oct_fail(err, OCT_E_ARG, "a reach of %g voxels: more than 0", reach);
    if (!has_both(mask, (size_t)dims[0] * dims[1] * dims[2]))
        return oct_fail(err, OCT_E_ARG, "the mask has no border: all its voxels are %s",
                        mask[0] ? "set" : "0");
    return OCT_OK;
}

enum oct_err oct_distance_of_mask(const uint8_t *mask, const uint32_t dims[3], double reach,
                                  struct oct_workers *workers, float *phi, struct oct_error *err)
{
    const size_t n_threads = workers ? oct_workers_n_threads(workers) + 1 : 1;
    const uint32_t wider = dims[0] > dims[1] ? dims[0] : dims[1];
    const uint32_t longest = dims[2] > wider ? dims[2] : wider;
    struct transform t = {.mask = mask, .dims = dims, .reach = reach, .phi = phi};
    enum oct_err e = check(mask, dims, reach, err);
    if (e)
        return e;
    const size_t n = (size_t)dims[0] * dims[1] * dims[2];
    bool is_there = true;
    t.squares = oct_aligned_alloc(64, n, sizeof(*t.squares));
    t.scratch = calloc(n_threads, sizeof(*t.scratch));
    for (size_t i = 0; t.scratch && i < n_threads; i++)
        is_there = (t.scratch[i] = create_envelope(longest)) && is_there;
    if (t.squares && t.scratch && is_there) {
        oct_workers_run(workers, dims[0], transform_bscan, &t);
        oct_workers_run(workers, dims[1], transform_across, &t);
    } else {
        e = oct_fail(err, OCT_E_NO_MEMORY,
                     "the distances of a mask of %u x %u x %u voxels take %.2f GB", dims[0],
                     dims[1], dims[2], (double)n * sizeof(*t.squares) * 1e-9);
    }
    for (size_t i = 0; t.scratch && i < n_threads; i++)
        free(t.scratch[i]);
    free((void *)t.scratch);
    free(t.squares);
    return e;
}
