#include "analysis/select.h"

#include "pipeline/base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Either twin, until the first fails for good: itself an analysis, so that a stage need not know.
 * What create needs is kept, as the second twin is created late. */
struct oct_analysis {
    const struct oct_analysis_ops *first, *second;
    struct oct_analysis_setup setup;
    struct oct_image_form input, form;
    char *gpus;
    void *settings;
    struct oct_analysis *twin; /* of `now` */
    _Atomic(const struct oct_analysis_ops *) now;
};

static void failover_destroy(struct oct_analysis *a)
{
    if (!a)
        return;
    if (a->twin)
        atomic_load(&a->now)->run.destroy(a->twin);
    free(a->gpus);
    free(a->settings);
    free(a);
}

/* The device is gone. OCT_OK: the second twin stands. */
static enum oct_err change_twins(struct oct_analysis *a, const struct oct_error *why,
                                 struct oct_error *err)
{
    struct oct_image_form form;
    const struct oct_analysis_ops *now = atomic_load(&a->now);
    if (now == a->second)
        return oct_fail(err, OCT_E_BACKEND, "%s", why->text);
    now->run.destroy(a->twin);
    a->twin = NULL;
    atomic_store(&a->now, a->second);
    enum oct_err e = a->second->create(&a->twin, &a->setup, &form, err);
    if (!e)
        oct_log(OCT_LOG_WARNING, "analysis %s: %s; the %s goes on", a->second->name, why->text,
                strcmp(a->second->backend, "cpu") == 0 ? "CPU" : a->second->backend);
    return e;
}

static enum oct_err no_twin(const struct oct_analysis *a, struct oct_error *err)
{
    return oct_fail(err, OCT_E_BACKEND, "%s: the GPU has failed and the CPU's part did not start",
                    a->second->name);
}

static enum oct_err failover_push(struct oct_analysis *a, const struct oct_image_frame *bscan,
                                  struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    if (!a->twin)
        return no_twin(a, err);
    enum oct_err e = atomic_load(&a->now)->run.push(a->twin, bscan, &why);
    if (e == OCT_E_BACKEND) {
        e = change_twins(a, &why, err);
        return e ? e : a->second->run.push(a->twin, bscan, err);
    }
    return e ? oct_fail(err, e, "%s", why.text) : OCT_OK;
}

static enum oct_err failover_take(struct oct_analysis *a, struct oct_image_frame *result,
                                  struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    if (!a->twin)
        return no_twin(a, err);
    enum oct_err e = atomic_load(&a->now)->run.take(a->twin, result, &why);
    if (e == OCT_E_BACKEND) { /* this B-scan's result is lost, the next has the other twin */
        enum oct_err c = change_twins(a, &why, err);
        return c ? c : oct_fail(err, OCT_E_IO, "%s", why.text);
    }
    return e && e != OCT_E_AGAIN ? oct_fail(err, e, "%s", why.text) : e;
}

static void failover_end(struct oct_analysis *a)
{
    const struct oct_stage_ops *run = &atomic_load(&a->now)->run;
    if (a->twin && run->end)
        run->end(a->twin);
}

static void failover_reset(struct oct_analysis *a)
{
    if (a->twin)
        atomic_load(&a->now)->run.reset(a->twin);
}

static enum oct_err failover_configure(struct oct_analysis *a, const void *settings,
                                       struct oct_error *err)
{
    const struct oct_stage_ops *run = &atomic_load(&a->now)->run;
    if (!a->twin)
        return no_twin(a, err);
    enum oct_err e = run->configure ? run->configure(a->twin, settings, err) : OCT_OK;
    if (!e && a->settings)
        memcpy(a->settings, settings, a->second->settings_bytes);
    return e;
}

static bool failover_is_at_rest(const struct oct_analysis *a)
{
    const struct oct_stage_ops *run = &atomic_load(&((struct oct_analysis *)a)->now)->run;
    return a->twin && run->is_at_rest && run->is_at_rest(a->twin);
}

static const char *failover_running(const struct oct_analysis *a)
{
    return atomic_load(&((struct oct_analysis *)a)->now)->backend;
}

static const struct oct_stage_ops failover_ops = {
    .push = failover_push,
    .take = failover_take,
    .end = failover_end,
    .reset = failover_reset,
    .configure = failover_configure,
    .is_at_rest = failover_is_at_rest,
    .running = failover_running,
    .destroy = failover_destroy,
};

static enum oct_err keep_setup(struct oct_analysis *a, const struct oct_analysis_setup *setup,
                               struct oct_error *err)
{
    a->setup = *setup;
    a->input = *setup->input;
    a->setup.input = &a->input;
    a->gpus = strdup(setup->gpus ? setup->gpus : "");
    a->setup.gpus = a->gpus;
    if (a->first->settings_bytes && (a->settings = malloc(a->first->settings_bytes)))
        memcpy(a->settings, setup->settings, a->first->settings_bytes);
    a->setup.settings = a->settings;
    if (!a->gpus || (a->first->settings_bytes && !a->settings))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", a->first->name);
    return OCT_OK;
}

static enum oct_err create_failover(struct oct_analysis_choice *choice,
                                    const struct oct_analysis_entry *entry,
                                    const struct oct_analysis_setup *setup, struct oct_error *err)
{
    struct oct_analysis *a = calloc(1, sizeof(*a));
    if (!a)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", entry->cpu->name);
    a->first = entry->cuda;
    a->second = entry->cpu;
    atomic_store(&a->now, a->first);
    enum oct_err e = keep_setup(a, setup, err);
    if (!e)
        e = a->first->create(&a->twin, &a->setup, &choice->form, err);
    if (e) {
        failover_destroy(a);
        return e;
    }
    choice->ops = &failover_ops;
    choice->analysis = a;
    return OCT_OK;
}

enum oct_err oct_analysis_select(struct oct_analysis_choice *choice,
                                 const struct oct_analysis_entry *entry, const char *backend,
                                 const struct oct_analysis_setup *setup, struct oct_error *err)
{
    const bool wants_gpu = strcmp(backend, "cpu") != 0;
    struct oct_error no_gpu = {.text = "it has no CUDA part"};
    *choice = (struct oct_analysis_choice){.input = entry->cpu->input,
                                           .settings_bytes = entry->cpu->settings_bytes,
                                           .most_behind = entry->cpu->most_behind};
    if (entry->cpu->most_behind_of)
        choice->most_behind = entry->cpu->most_behind_of(setup->settings);
    if (wants_gpu && entry->cuda) {
        enum oct_err e = create_failover(choice, entry, setup, &no_gpu);
        if (!e) {
            snprintf(choice->why, sizeof(choice->why), "analysis %s on cuda", entry->cuda->name);
            return OCT_OK;
        }
        if (e != OCT_E_BACKEND)
            return oct_fail(err, e, "%s", no_gpu.text);
    }
    choice->ops = &entry->cpu->run;
    enum oct_err e = entry->cpu->create(&choice->analysis, setup, &choice->form, err);
    if (!e)
        snprintf(choice->why, sizeof(choice->why), "analysis %s on cpu, %.200s", entry->cpu->name,
                 wants_gpu ? no_gpu.text : "asked for");
    return e;
}
