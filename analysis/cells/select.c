#include "analysis/cells/engine.h"

#include <string.h>

enum oct_err oct_cells_engine_select(const struct oct_cells_engine_ops **ops,
                                     struct oct_cells_engine **engine, const char *backend,
                                     const struct oct_cells_engine_setup *setup,
                                     struct oct_error *err)
{
    *ops = NULL;
    *engine = NULL;
    if (strcmp(backend, "auto") != 0 && strcmp(backend, "cpu") != 0)
        return oct_fail(err, OCT_E_BACKEND, "cells: there is no engine \"%s\": use auto or cpu",
                        backend);
    *ops = &oct_cells_cpu_engine;
    return (*ops)->create(engine, setup, err);
}
