#include "kernels/device/cuda_choice.h"

#include "kernels/device/cuda_device.h"

#include <stdio.h>
#include <stdlib.h>

/* "0,1": devices by number, each once. */
static enum oct_err read_gpus(struct oct_cuda_choice *choice, const char *gpus, unsigned n_there,
                              struct oct_error *err)
{
    choice->n_gpus = 0;
    for (const char *at = gpus;; at++) {
        char *end;
        unsigned long number = strtoul(at, &end, 10);
        if (end == at || *at < '0' || *at > '9' || (*end && *end != ','))
            return oct_fail(err, OCT_E_CONFIG,
                            "pipeline.gpus is '%s': give device numbers, e.g. 0,1", gpus);
        if (number >= n_there)
            return oct_fail(err, OCT_E_CONFIG,
                            "pipeline.gpus is '%s': this machine has %u GPU%s, counted from 0",
                            gpus, n_there, n_there == 1 ? "" : "s");
        for (unsigned i = 0; i < choice->n_gpus; i++)
            if (choice->devices[i] == number)
                return oct_fail(err, OCT_E_CONFIG, "pipeline.gpus is '%s': %lu stands twice", gpus,
                                number);
        if (choice->n_gpus == OCT_CUDA_MAX_GPUS)
            return oct_fail(err, OCT_E_CONFIG, "pipeline.gpus is '%s': at most %u", gpus,
                            OCT_CUDA_MAX_GPUS);
        choice->devices[choice->n_gpus++] = (unsigned)number;
        if (!*end)
            return OCT_OK;
        at = end;
    }
}

static enum oct_err all_answer(void *context, const struct oct_cuda_choice *choice,
                               struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    (void)context;
    for (unsigned i = 0; i < choice->n_gpus && !e; i++)
        e = oct_cuda_answers(choice->devices[i], err);
    return e;
}

enum oct_err oct_cuda_choose(struct oct_cuda_choice *choice, const char *gpus,
                             enum oct_err (*can_do)(void *context,
                                                    const struct oct_cuda_choice *choice,
                                                    struct oct_error *err),
                             void *context, struct oct_error *err)
{
    char no_gpu[256];
    unsigned n_there = oct_cuda_count(no_gpu, sizeof(no_gpu));
    if (!can_do)
        can_do = all_answer;
    if (n_there == 0)
        return oct_fail(err, OCT_E_BACKEND, "no GPU answers: %s", no_gpu);
    if (gpus && *gpus) {
        enum oct_err e = read_gpus(choice, gpus, n_there, err);
        return e ? e : can_do(context, choice, err);
    }
    enum oct_err first = OCT_OK;
    for (unsigned device = 0; device < n_there; device++) {
        struct oct_error why = {.text = ""};
        *choice = (struct oct_cuda_choice){.n_gpus = 1, .devices = {device}};
        enum oct_err e = can_do(context, choice, &why);
        if (!e)
            return OCT_OK;
        if (first)
            continue;
        first = e;
        if (err)
            *err = why;
    }
    return first;
}

enum oct_err oct_cuda_choice_describe(const struct oct_cuda_choice *choice, char *text,
                                      size_t text_bytes, struct oct_error *err)
{
    size_t at = 0;
    for (unsigned i = 0; i < choice->n_gpus && at < text_bytes; i++) {
        char name[128];
        enum oct_err e = oct_cuda_name(choice->devices[i], name, sizeof(name), err);
        if (e)
            return e;
        int length = snprintf(text + at, text_bytes - at, "%sGPU %u: %s", i ? ", " : "",
                              choice->devices[i], name);
        at += length > 0 ? (size_t)length : 0;
    }
    return OCT_OK;
}
