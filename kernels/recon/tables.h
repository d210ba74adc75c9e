/* The tables of the reconstruction engines; kernels/engines.h selects one. */
#ifndef OCT_KERNELS_RECON_TABLES_H
#define OCT_KERNELS_RECON_TABLES_H

#include "pipeline/flow/engine.h"

/* The CPU engine (kernels/recon/engine_cpu.c). Always there. */
extern const struct oct_engine_ops oct_engine_cpu;

/* The CUDA engine (kernels/recon/engine_cuda.c). Its create fails with OCT_E_CONFIG where this
 * build has none and with OCT_E_BACKEND and the reason where no GPU answers. */
extern const struct oct_engine_ops oct_engine_cuda;

/* Whether a GPU that hangs was left to itself in this process. Its driver's exit handlers may then
 * wait for ever: once everything is closed, leave by _exit. Any thread. */
bool oct_engine_left_hanging(void);

/* The CUDA engine until its device fails, from then on the CPU engine
 * (kernels/recon/engine_failover.c). create succeeds only if the CUDA engine starts. */
extern const struct oct_engine_ops oct_engine_failover;

#endif
