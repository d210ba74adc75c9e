#include "test/analysis/mean.h"

#include <math.h>
#include <stdlib.h>

struct oct_analysis {
    size_t n_values; /* of a B-scan */
    float mean;
    bool has_result;
};

static enum oct_err mean_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                              struct oct_error *err)
{
    double sum = 0;
    size_t n = 0;
    (void)err;
    for (size_t i = 0; i < a->n_values; i++)
        if (isfinite(bscan->values[i])) {
            sum += (double)bscan->values[i];
            n++;
        }
    a->mean = n > 0 ? (float)(sum / (double)n) : NAN;
    a->has_result = true;
    return OCT_OK;
}

static enum oct_err mean_take(struct oct_analysis *a, struct oct_image_frame *result,
                              struct oct_error *err)
{
    (void)err;
    if (!a->has_result)
        return OCT_E_AGAIN;
    *(float *)result->pixels = a->mean;
    a->has_result = false;
    return OCT_OK;
}

static void mean_reset(struct oct_analysis *a)
{
    a->has_result = false;
}

static void mean_destroy(struct oct_analysis *a)
{
    free(a);
}

static enum oct_err mean_create(struct oct_analysis **out, const struct oct_analysis_setup *setup,
                                struct oct_image_form *form, struct oct_error *err)
{
    static const char *const db[] = {"mean_db"}, *const linear[] = {"mean_counts2"};
    struct oct_analysis *a = calloc(1, sizeof(*a));
    *out = a;
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "mean: out of memory");
    a->n_values = (size_t)setup->input->dims[0] * setup->input->dims[1];
    *form = (struct oct_image_form){
        .name = "mean",
        .quantity = OCT_QUANTITY_NUMBERS,
        .type = OCT_SAMPLE_F32,
        .rank = 1,
        .dims = {1},
        .spacing_um = {NAN},
        .axes = {"column"},
        .labels = setup->input->quantity == OCT_QUANTITY_INTENSITY_DB ? db : linear,
    };
    return OCT_OK;
}

const struct oct_analysis_ops oct_mean_cpu = {
    .name = "mean",
    .backend = "cpu",
    .meaning = "The mean of each B-scan.",
    .input = OCT_STAGE_VALUES,
    .create = mean_create,
    .run = {.push = mean_push, .take = mean_take, .reset = mean_reset, .destroy = mean_destroy},
};
