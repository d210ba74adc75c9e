#include "analysis/align/matcher.h"

#include <string.h>

enum oct_err oct_matcher_select(const struct oct_matcher_ops **ops, struct oct_matcher **matcher,
                                const char *backend, const struct oct_matcher_setup *setup,
                                struct oct_error *err)
{
    *ops = &oct_matcher_cpu;
    *matcher = NULL;
    if (backend && strcmp(backend, "cuda") == 0)
        return oct_fail(err, OCT_E_BACKEND, "registration has no CUDA engine: use backend cpu");
    return oct_matcher_cpu.create(matcher, setup, err);
}
