/* The tests that every engine must pass, as cmocka groups over its table of functions: the CPU
 * engine runs them with each instruction set, another engine with its own options. */
#ifndef OCT_TEST_RIG_ENGINE_SUITE_H
#define OCT_TEST_RIG_ENGINE_SUITE_H

#include "pipeline/flow/engine.h"

/* n_variants ways to create the engine, e.g. one an instruction set. A variant that this machine
 * cannot run is named in a TAP comment; a test that no variant could run is skipped. */
struct oct_suite {
    const struct oct_engine_ops *ops;
    const struct oct_engine_options *variants;
    unsigned n_variants;
    bool
        is_slow; /* each picture takes its time: two variants share the displays, and the flow is of
                     fewer lines; OCT_LONG=1 leaves nothing out */
};

/* False with OCT_LONG=1. */
bool oct_suite_is_short(const struct oct_suite *suite);

/* Pictures against the oracle, contract 1.3 (engine_suite.c). Prints a line of worst differences a
 * case and variant. Returns the number of failed tests. */
int oct_suite_run_pictures(const struct oct_suite *suite);

/* The same with the recipes of nufft (engine_nufft.c), for an engine that takes it; or with some of
 * them, by their names: NULL at the end. names = NULL: with all. */
int oct_suite_run_nufft(const struct oct_suite *suite, const char *const *names);

/* The engine contract of pipeline/flow/engine.h: order, batches, loans, limits over time, refusals
 * (engine_flow.c). Returns the number of failed tests. */
int oct_suite_run_flow(const struct oct_suite *suite);

#endif
