/* The reconstruction engines there are, and their selection. The contract that each of them fulfils
 * is pipeline/flow/engine.h. */
#ifndef OCT_KERNELS_ENGINES_H
#define OCT_KERNELS_ENGINES_H

#include "kernels/recon/tables.h"

/* Picks the engine for "auto", "cpu" or "cuda" and creates it (kernels/select.c). *why is a
 * line for the log that says which and why, in a buffer of why_bytes. OCT_E_CONFIG: unknown name or
 * a name this build does not have; OCT_E_BACKEND: asked for, but the device does not answer. */
enum oct_err oct_engine_select(const char *backend, const struct oct_plan *plan,
                               const struct oct_engine_options *options,
                               const struct oct_engine_ops **ops, struct oct_engine **engine,
                               char *why, size_t why_bytes, struct oct_error *err);

#endif
