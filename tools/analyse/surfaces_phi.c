/* octctl surfaces --phi: the level set of the first layer as it was found, and what the steps of
 * levelset.h make of it. */
#include "analysis/surface/distance.h"
#include "formats/results.h"
#include "tools/analyse/surfaces_files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct box {
    uint32_t dims[3];
    double origin_px;    /* depth of its first voxel, as aligned */
    float *heights;      /* [V][M] in the box */
    float *before, *phi; /* [dims] */
    struct oct_levelset_report report;
};

static enum oct_err no_memory(struct oct_error *err)
{
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a level set");
}

/* The nearest known height of the row, then of the column. */
static void fill_gaps(float *heights, size_t n, size_t step)
{
    size_t last = n;
    for (size_t i = 0; i < n; i++) {
        if (isnan(heights[i * step]))
            continue;
        const size_t first = last == n ? 0 : last + 1;
        for (size_t k = first; k < i; k++)
            heights[k * step] =
                last == n || 2 * k >= last + i ? heights[i * step] : heights[last * step];
        last = i;
    }
    for (size_t k = last == n ? n : last + 1; k < n; k++)
        heights[k * step] = heights[last * step];
}

/* The heights as aligned, and the box that holds them with a margin. */
static enum oct_err make_box(struct box *box, const struct oct_surfaces_run *run, double margin,
                             struct oct_error *err)
{
    const float *found = run->found[oct_surfaces_run_first(run)];
    const size_t m = run->n_lines, n = run->n_bscans * m;
    double least = INFINITY, most = -INFINITY;
    box->heights = calloc(n + 1, sizeof(float));
    if (!box->heights)
        return no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const double at = (double)found[i] + run->surfaces.shift_px[i / m];
        box->heights[i] = (float)at;
        least = isnan(at) ? least : fmin(least, at);
        most = isnan(at) ? most : fmax(most, at);
    }
    if (!(least <= most))
        return oct_fail(err, OCT_E_FORMAT, "--phi: the layer was not found anywhere");
    for (size_t b = 0; b < run->n_bscans; b++)
        fill_gaps(box->heights + b * m, m, 1);
    for (size_t j = 0; j < m; j++)
        fill_gaps(box->heights + j, run->n_bscans, m);
    box->origin_px = floor(least) - margin;
    box->dims[0] = run->n_bscans;
    box->dims[1] = run->n_lines;
    box->dims[2] = (uint32_t)(ceil(most) - box->origin_px + margin) + 1;
    for (size_t i = 0; i < n; i++)
        box->heights[i] -= (float)box->origin_px;
    return OCT_OK;
}

static enum oct_err denoise(struct box *box, const struct oct_surfaces_run *run,
                            struct oct_error *err)
{
    const struct oct_levelset_ops *ops;
    struct oct_levelset_engine *engine;
    struct oct_levelset_setup setup = {
        .params = run->params, .workers = run->workers, .gpus = run->gpus};
    memcpy(setup.dims, box->dims, sizeof(setup.dims));
    const double noise = run->denoised[oct_surfaces_run_first(run)].noise_px;
    if (run->given->strength > 0 && noise > 0)
        setup.params.beta *= pow(run->given->strength / noise, 2);
    enum oct_err e = oct_levelset_select(&ops, &engine, run->backend, &setup, err);
    if (e)
        return e;
    e = ops->denoise(engine, box->before, box->phi, &box->report, err);
    ops->destroy(engine);
    return e;
}

static enum oct_err make_phi(struct box *box, const struct oct_surfaces_run *run,
                             struct oct_error *err)
{
    const double reach = oct_surfaces_reach(&run->params);
    enum oct_err e = make_box(box, run, reach + 1, err);
    if (e)
        return e;
    const size_t n = (size_t)box->dims[0] * box->dims[1] * box->dims[2];
    box->before = calloc(n + 1, sizeof(float));
    box->phi = calloc(n + 1, sizeof(float));
    if (!box->before || !box->phi)
        return no_memory(err);
    e = oct_distance_of_heights(box->heights, box->dims, reach, run->workers, box->before, err);
    return e ? e : denoise(box, run, err);
}

static enum oct_err write_phi(const struct box *box, const double um[3],
                              const struct oct_levelset_params *params, const char *path,
                              bool force, struct oct_error *err)
{
    static const char *const axes[3] = {"bscan", "line", "depth"};
    static const char *const names[2] = {"/phi_before", "/phi"};
    const float *const volumes[2] = {box->before, box->phi};
    const uint64_t dims[3] = {box->dims[0], box->dims[1], box->dims[2]};
    struct oct_results *f;
    const enum oct_err e = oct_results_create(&f, path, "level-set", force, err);
    if (e)
        return e;
    for (unsigned i = 0; i < 2; i++) {
        const unsigned dataset = oct_results_dataset(f, names[i], OCT_RESULTS_F32, 3, dims, "px");
        oct_results_write(f, dataset, volumes[i]);
        oct_results_text(f, names[i], "sign", "negative in the tissue");
        oct_results_number(f, names[i], "origin_px", box->origin_px);
        oct_results_axes(f, dataset, axes, um);
    }
    oct_surfaces_write_levelset(f, params);
    oct_results_number(f, NULL, "c2", box->report.c2);
    oct_results_count(f, NULL, "n_band", box->report.n_band);
    return oct_results_publish(f, err);
}

enum oct_err oct_surfaces_report_phi(void *report, const char *path, bool force,
                                     struct oct_error *err)
{
    const struct oct_surfaces_run *run = ((const struct oct_surfaces_report *)report)->run;
    struct box box = {.heights = NULL};
    enum oct_err e = make_phi(&box, run, err);
    e = e ? e : write_phi(&box, run->um, &run->params, path, force, err);
    free(box.heights);
    free(box.before);
    free(box.phi);
    return e;
}
