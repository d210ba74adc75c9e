/* The tables of the reconstruction engines; kernels/engines.h selects one. */
#ifndef OCT_KERNELS_RECON_TABLES_H
#define OCT_KERNELS_RECON_TABLES_H

#include "pipeline/flow/engine.h"

/* The CPU engine (kernels/recon/engine_cpu.c). Always there. */
extern const struct oct_engine_ops oct_engine_cpu;

/* The CUDA engine (kernels/recon/engine_cuda.c). Its create fails with OCT_E_CONFIG where this
 * build has none and with OCT_E_BACKEND and the reason where no GPU answers. */
extern const struct oct_engine_ops oct_engine_cuda;

/* The CUDA engine until its device fails, from then on the CPU engine
 * (kernels/recon/engine_failover.c). create succeeds only if the CUDA engine starts. */
extern const struct oct_engine_ops oct_engine_failover;

/* The same of any two engines: `then` takes over when a device of `first` has failed. */
struct oct_failover {
    const struct oct_engine_ops *first, *then;
    const char *first_is, *then_is; /* in messages: "GPU", "CPU" */
};

/* Makes an engine for the functions of oct_engine_failover other than create: the table of another
 * pair is a copy of it with name, create and memory of its own. *of is copied. */
enum oct_err oct_failover_create(struct oct_engine **engine, const struct oct_failover *of,
                                 const struct oct_plan *plan,
                                 const struct oct_engine_options *options, struct oct_error *err);

#endif
