#include "daemon/errand.h"

#include "pipeline/base/thread.h"

#include <stdio.h>

#include <cjson/cJSON.h>

static void *run_errand(void *argument)
{
    struct oct_errand *errand = argument;
    enum oct_err e = OCT_OK;
    if (errand->ops->prepare)
        e = errand->ops->prepare(errand->work, &errand->err);
    e = e ? e : oct_raw_tap_run(&errand->tap, &errand->err);
    atomic_store(&errand->is_taking, false);
    oct_thread_yield_to_others(); /* not earlier: a driver waits for what a tap reads */
    e = e ? e : errand->ops->compute(errand->work, &errand->cancelled, &errand->err);
    errand->err.code = e;
    atomic_store(&errand->is_done, true);
    return NULL;
}

static void free_work(struct oct_errand *errand)
{
    if (errand->work)
        errand->ops->destroy(errand->work);
    errand->work = NULL;
}

enum oct_err oct_errand_begin(struct oct_errand *errand, const struct oct_errand_ops *ops,
                              void *work, struct oct_ring *raw, unsigned n_bscans,
                              uint64_t timeout_us, struct oct_error *err)
{
    if (oct_errand_look(errand)) {
        ops->destroy(work);
        return oct_fail(err, OCT_E_STATE,
                        "%s is under way: wait until \"errand\" of the status is not pending",
                        errand->ops->name);
    }
    free_work(errand);
    errand->ops = ops;
    errand->work = work;
    errand->number++;
    errand->stopped_by = NULL;
    errand->err = (struct oct_error){.code = OCT_OK};
    errand->tap = (struct oct_raw_tap){
        .raw = raw,
        .n_bscans = n_bscans,
        .timeout_us = timeout_us,
        .cancelled = &errand->cancelled,
        .take = ops->take,
        .context = work,
    };
    atomic_store(&errand->cancelled, false);
    atomic_store(&errand->is_done, false);
    atomic_store(&errand->is_taking, true);
    enum oct_err e = oct_thread_start(&errand->thread, "octd-errand", run_errand, errand, ops->name,
                                      &errand->err);
    errand->runs = e == OCT_OK;
    if (e && err)
        *err = errand->err;
    return e;
}

bool oct_errand_look(struct oct_errand *errand)
{
    if (errand->runs && atomic_load(&errand->is_done)) {
        pthread_join(errand->thread, NULL);
        errand->runs = false;
        if (errand->err.code && errand->stopped_by)
            oct_fail(&errand->err, OCT_E_STATE, "%s: cancelled: %s", errand->ops->name,
                     errand->stopped_by);
    }
    return errand->runs;
}

bool oct_errand_leave(struct oct_errand *errand, const char *why)
{
    if (!errand->runs || !atomic_load(&errand->is_taking))
        return true;
    if (!errand->stopped_by)
        errand->stopped_by = why;
    atomic_store(&errand->cancelled, true);
    return false;
}

void oct_errand_finish(struct oct_errand *errand)
{
    if (errand->runs) {
        atomic_store(&errand->cancelled, true);
        pthread_join(errand->thread, NULL);
        errand->runs = false;
    }
    free_work(errand);
}

void oct_errand_describe(const struct oct_errand *errand, cJSON *reply)
{
    cJSON *object = cJSON_AddObjectToObject(reply, "errand");
    const bool is_known = errand->ops && !errand->runs;
    cJSON_AddStringToObject(object, "command", errand->ops ? errand->ops->name : "");
    cJSON_AddNumberToObject(object, "number", (double)errand->number);
    cJSON_AddBoolToObject(object, "pending", errand->runs);
    cJSON_AddNumberToObject(object, "bscans", (double)atomic_load(&errand->tap.n_taken));
    cJSON_AddNumberToObject(object, "of", errand->tap.n_bscans);
    cJSON_AddStringToObject(object, "error", is_known && errand->err.code ? errand->err.text : "");
    if (is_known && !errand->err.code)
        errand->ops->describe(errand->work, cJSON_AddObjectToObject(object, "result"));
}
