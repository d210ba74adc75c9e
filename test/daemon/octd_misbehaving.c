/* octd with analyses that misbehave and the example `mean`: the daemon's own main, and this table
 * instead of analysis/analyses.c. For test_analyses.py. */
#include "analysis/analyses.h"
#include "analysis/average/average.h"
#include "analysis/enface/enface.h"
#include "analysis/quality/quality.h"
#include "test/analysis/mean.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum kind { SLEEPER, HANGER, FAILER, NONSENSE };

struct oct_analysis {
    enum kind kind;
    bool has_result;
};

static void sleep_s(time_t seconds)
{
    struct timespec t = {.tv_sec = seconds};
    while (nanosleep(&t, &t) != 0)
        ;
}

static enum oct_err push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                         struct oct_error *err)
{
    (void)bscan;
    if (a->kind == FAILER)
        return oct_fail(err, OCT_E_FORMAT, "it fails as it should");
    if (a->kind == SLEEPER)
        sleep_s(10);
    if (a->kind == HANGER)
        sleep_s(100000);
    a->has_result = true;
    return OCT_OK;
}

static enum oct_err take(struct oct_analysis *a, struct oct_image_frame *result,
                         struct oct_error *err)
{
    (void)err;
    if (!a->has_result)
        return OCT_E_AGAIN;
    a->has_result = false;
    *(float *)result->pixels = 0;
    if (a->kind == NONSENSE)
        result->dims[0] = UINT32_MAX;
    return OCT_OK;
}

static void reset(struct oct_analysis *a)
{
    a->has_result = false;
}

static void destroy(struct oct_analysis *a)
{
    free(a);
}

static enum oct_err create(struct oct_analysis **out, enum kind kind, const char *name,
                           struct oct_image_form *form, struct oct_error *err)
{
    static const char *const labels[] = {"nothing"};
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory");
    (*out)->kind = kind;
    *form = (struct oct_image_form){.quantity = OCT_QUANTITY_NUMBERS,
                                    .type = OCT_SAMPLE_F32,
                                    .rank = 1,
                                    .dims = {1},
                                    .axes = {"column"},
                                    .labels = labels};
    snprintf(form->name, sizeof(form->name), "%s", name);
    return OCT_OK;
}

#define MISBEHAVING(lower, kind, wanted)                                                           \
    static enum oct_err create_##lower(struct oct_analysis **out,                                  \
                                       const struct oct_analysis_setup *setup,                     \
                                       struct oct_image_form *form, struct oct_error *err)         \
    {                                                                                              \
        (void)setup;                                                                               \
        return create(out, kind, #lower, form, err);                                               \
    }                                                                                              \
    static const struct oct_analysis_ops lower = {                                                 \
        .name = #lower,                                                                            \
        .backend = "cpu",                                                                          \
        .input = wanted,                                                                           \
        .create = create_##lower,                                                                  \
        .run = {.push = push, .take = take, .reset = reset, .destroy = destroy},                   \
    }
MISBEHAVING(sleeper, SLEEPER, OCT_STAGE_PICTURES);
MISBEHAVING(hanger, HANGER, OCT_STAGE_VALUES);
MISBEHAVING(failer, FAILER, OCT_STAGE_PICTURES);
MISBEHAVING(nonsense, NONSENSE, OCT_STAGE_PICTURES);

static enum oct_err create_unborn(struct oct_analysis **out, const struct oct_analysis_setup *setup,
                                  struct oct_image_form *form, struct oct_error *err)
{
    (void)setup, (void)form;
    *out = NULL;
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory, as it says");
}

static const struct oct_analysis_ops unborn = {
    .name = "unborn",
    .backend = "cpu",
    .create = create_unborn,
    .run = {.push = push, .take = take, .reset = reset, .destroy = destroy},
};

const struct oct_analysis_ops *const oct_analyses[] = {
    &oct_enface_cpu, &oct_quality_cpu, &oct_average_cpu, &sleeper, &hanger,
    &failer,         &nonsense,        &oct_mean_cpu,    &unborn,
};
const unsigned oct_n_analyses = sizeof(oct_analyses) / sizeof(oct_analyses[0]);

const struct oct_analysis_ops *oct_analysis_find(const char *name)
{
    for (unsigned i = 0; i < oct_n_analyses; i++)
        if (strcmp(oct_analyses[i]->name, name) == 0)
            return oct_analyses[i];
    return NULL;
}

void oct_analysis_names(char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "those of the test");
}
