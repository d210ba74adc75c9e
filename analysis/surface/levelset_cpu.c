#include "analysis/surface/levelset_band.h"
#include "pipeline/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct oct_levelset_engine {
    struct oct_levelset_setup setup;
    const struct oct_levelset_band_ops *ops;
    struct oct_levelset_band *band;
};

/* Of a[first .. end - 1], the place-th in order is at its place, smaller ones before. */
static void select_place(float *a, uint64_t first, uint64_t end, uint64_t place)
{
    while (end - first > 1) {
        const float pivot = a[first + (end - 1 - first) / 2];
        uint64_t i = first, j = end - 1;
        for (;; i++, j--) {
            while (a[i] < pivot)
                i++;
            while (a[j] > pivot)
                j--;
            if (i >= j)
                break;
            const float swap = a[i];
            a[i] = a[j];
            a[j] = swap;
        }
        /* a[first .. j] <= pivot <= a[j + 1 .. end - 1], and neither is empty. */
        if (place <= j)
            end = j + 1;
        else
            first = j + 1;
    }
}

double oct_levelset_median(float *values, uint64_t n)
{
    if (n == 0)
        return 0;
    const uint64_t middle = (n - 1) / 2;
    select_place(values, 0, n, middle);
    if (n % 2 == 1)
        return (double)values[middle];
    float next = values[middle + 1];
    for (uint64_t i = middle + 2; i < n; i++)
        next = values[i] < next ? values[i] : next;
    return ((double)values[middle] + (double)next) / 2;
}

static void destroy(struct oct_levelset_engine *engine)
{
    if (!engine)
        return;
    engine->ops->destroy(engine->band);
    free(engine);
}

static enum oct_err check(const struct oct_levelset_setup *setup, struct oct_error *err)
{
    const uint32_t *dims = setup->dims;
    const enum oct_err e = oct_levelset_params_check(&setup->params, err);
    if (e != OCT_OK)
        return e;
    for (unsigned i = 0; i < 3; i++)
        if (dims[i] < setup->params.patch || dims[i] >= 16384)
            return oct_fail(err, OCT_E_ARG,
                            "level set: a box of %u x %u x %u voxels; give sides of %u to 16383",
                            dims[0], dims[1], dims[2], setup->params.patch);
    if ((uint64_t)dims[0] * dims[1] * dims[2] > OCT_LEVELSET_MOST_VOXELS)
        return oct_fail(err, OCT_E_ARG,
                        "level set: a box of %u x %u x %u voxels; %llu are the most", dims[0],
                        dims[1], dims[2], (unsigned long long)OCT_LEVELSET_MOST_VOXELS);
    return OCT_OK;
}

static enum oct_err create(struct oct_levelset_engine **engine,
                           const struct oct_levelset_setup *setup, struct oct_error *err)
{
    *engine = NULL;
    enum oct_err e = check(setup, err);
    if (e != OCT_OK)
        return e;
    struct oct_levelset_engine *l = calloc(1, sizeof(*l));
    if (!l)
        return oct_fail(err, OCT_E_NO_MEMORY, "level set: out of memory");
    l->setup = *setup;
    l->ops = setup->params.weights == OCT_LEVELSET_LOCAL ? &oct_levelset_local : &oct_levelset_full;
    e = l->ops->create(&l->band, setup, err);
    if (e != OCT_OK)
        destroy(l);
    else
        *engine = l;
    return e;
}

static bool is_finite(const float *phi, uint64_t n)
{
    float product = 0; /* what is not finite times 0 is not 0 */
    for (uint64_t i = 0; i < n; i++)
        product += phi[i] * 0;
    return product == 0;
}

static void run(struct oct_levelset_engine *l, struct oct_levelset_report *report)
{
    const struct oct_levelset_params *p = &l->setup.params;
    report->c2 = p->c2;
    if (!(p->c2 > 0)) {
        report->base = l->ops->base(l->band);
        report->c2 = p->beta * report->base;
    }
    if (!(report->c2 > 0))
        return;
    for (unsigned i = 0; i < p->steps; i++) {
        report->largest_sum = l->ops->sums(l->band, report->c2, report);
        if (!(report->largest_sum > 0))
            return;
        l->ops->move(l->band, p->common_step ? 1 / report->largest_sum : 0);
    }
}

static enum oct_err denoise(struct oct_levelset_engine *l, const float *phi, float *result,
                            struct oct_levelset_report *report, struct oct_error *err)
{
    const uint64_t begin = oct_clock_ns();
    const uint32_t *dims = l->setup.dims;
    const uint64_t n = (uint64_t)dims[0] * dims[1] * dims[2];
    struct oct_levelset_report found = {0};
    if (!is_finite(phi, n))
        return oct_fail(err, OCT_E_ARG, "level set: a distance is not a finite number");
    const enum oct_err e = l->ops->load(l->band, phi, &found, err);
    if (e != OCT_OK)
        return e;
    run(l, &found);
    if (result != phi)
        memcpy(result, phi, n * sizeof(*phi));
    l->ops->result(l->band, result);
    found.seconds = (double)(oct_clock_ns() - begin) * 1e-9;
    if (report)
        *report = found;
    return OCT_OK;
}

const struct oct_levelset_ops oct_levelset_cpu = {
    .name = "cpu",
    .create = create,
    .denoise = denoise,
    .destroy = destroy,
};
