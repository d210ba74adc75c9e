#include "kernels/device/cuda_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kernel_names[] = {[OCT_CUDA_FUSED] = "fused", [OCT_CUDA_PLAIN] = "plain"};

static bool find_kernels(const char *name, enum oct_cuda_kernels *kernels)
{
    for (int i = OCT_CUDA_FUSED; i <= OCT_CUDA_PLAIN; i++)
        if (strcmp(name, kernel_names[i]) == 0) {
            *kernels = (enum oct_cuda_kernels)i;
            return true;
        }
    return false;
}

enum oct_err oct_cuda_check_options(const struct oct_engine_options *options, struct oct_error *err)
{
    static const char *const simd[] = {"auto", "avx512", "avx2", "plain"};
    bool known = !options->simd;
    for (size_t i = 0; i < sizeof(simd) / sizeof(simd[0]); i++)
        known = known || strcmp(options->simd, simd[i]) == 0;
    if (!known)
        return oct_fail(err, OCT_E_CONFIG, "pipeline.simd is %s: use auto, avx512, avx2 or plain",
                        options->simd);
    const char *cuda = options->cuda;
    enum oct_cuda_kernels kernels;
    if (cuda && strcmp(cuda, "auto") && !find_kernels(cuda, &kernels))
        return oct_fail(err, OCT_E_CONFIG, "CUDA kernels '%s': use auto, fused or plain", cuda);
    return OCT_OK;
}

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

static enum oct_err choose_kernels(struct oct_cuda_choice *choice, const struct oct_plan *plan,
                                   const char *wanted, struct oct_error *err)
{
    choice->kernels = OCT_CUDA_FUSED;
    bool automatic = !wanted || !find_kernels(wanted, &choice->kernels);
    for (unsigned i = 0; i < choice->n_gpus; i++) {
        enum oct_err e = oct_cuda_can_run(choice->devices[i], plan, choice->kernels, err);
        if (!e)
            continue;
        if (!automatic || choice->kernels == OCT_CUDA_PLAIN)
            return e;
        choice->kernels = OCT_CUDA_PLAIN;
        i = (unsigned)-1; /* all of them run the same */
    }
    return OCT_OK;
}

/* The first device that can run the kernels; the first one's reason where none can. */
static enum oct_err choose_first(struct oct_cuda_choice *choice, const struct oct_plan *plan,
                                 const char *wanted, unsigned n_there, struct oct_error *err)
{
    enum oct_err first = OCT_OK;
    for (unsigned device = 0; device < n_there; device++) {
        struct oct_error why = {.text = ""};
        choice->n_gpus = 1;
        choice->devices[0] = device;
        enum oct_err e = choose_kernels(choice, plan, wanted, &why);
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

enum oct_err oct_cuda_describe(const struct oct_cuda_choice *choice, unsigned n_streams,
                               unsigned max_batch, char *text, size_t text_bytes,
                               struct oct_error *err)
{
    size_t room = text_bytes, at = 0;
    for (unsigned i = 0; i < choice->n_gpus && at < room; i++) {
        char name[128];
        enum oct_err e = oct_cuda_name(choice->devices[i], name, sizeof(name), err);
        if (e)
            return e;
        int length =
            snprintf(text + at, room - at, "%sGPU %u: %s", i ? ", " : "", choice->devices[i], name);
        at += length > 0 ? (size_t)length : 0;
    }
    if (at < room)
        snprintf(text + at, room - at, "; %s kernels, %u streams, batches of %u",
                 kernel_names[choice->kernels], n_streams, max_batch);
    return OCT_OK;
}

enum oct_err oct_cuda_choose(struct oct_cuda_choice *choice, const struct oct_plan *plan,
                             const struct oct_engine_options *options, struct oct_error *err)
{
    char why[256];
    unsigned n_there = oct_cuda_count(why, sizeof(why));
    if (n_there == 0)
        return oct_fail(err, OCT_E_BACKEND, "no GPU answers: %s", why);
    if (!options->gpus || !*options->gpus)
        return choose_first(choice, plan, options->cuda, n_there, err);
    enum oct_err e = read_gpus(choice, options->gpus, n_there, err);
    return e ? e : choose_kernels(choice, plan, options->cuda, err);
}
